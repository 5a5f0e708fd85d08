"""Hypothesis strategies for stores: hostile names, JSON values, filters and operations."""

from typing import Any, Literal

from hypothesis import strategies as st

LABELS = (
    "user1",
    "user10",
    "user_1",
    "User1",
    "user1 ",
    "user%",
    "user%31",
    "a/b",
    "*",
    "用户一",
    "e\u0301",
    "\u00e9",
)
KEYS = ("k", "K", "", "a/b", "k.0", "k\n", "\ud800", "日本")
WORDS = ("tea", "dog", "red", "blue", "train", "paris", "likes", "hates")
FIELDS = ("kind", "score", "meta", "tags", "odd key", "")


def any_label() -> st.SearchStrategy[str]:
    """Any label of a namespace: every text except the empty one."""
    return st.one_of(st.sampled_from(LABELS), st.text(min_size=1, max_size=12))


def any_namespace() -> st.SearchStrategy[tuple[str, ...]]:
    """Any namespace of an item."""
    return st.lists(any_label(), min_size=1, max_size=4).map(tuple)


def shared_namespace() -> st.SearchStrategy[tuple[str, ...]]:
    """A namespace that LangGraph's own stores accept too, often one that was used before."""
    # Few similar labels: operations on unrelated namespaces would reveal nothing.
    label = st.sampled_from(["user1", "user10", "User1", "user%", "用户一"])
    return st.lists(label, min_size=1, max_size=2).map(tuple)


def keys() -> st.SearchStrategy[str]:
    """A key, often one that was used before."""
    return st.one_of(st.sampled_from(KEYS[:3]), st.sampled_from(KEYS), st.text(max_size=6))


def json_scalar() -> st.SearchStrategy[Any]:
    """A leaf of a JSON value, without NaN, which is not equal to itself."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.just("unpaired \ud800"),
    )


def json_value() -> st.SearchStrategy[Any]:
    """Any JSON value."""
    return st.recursive(
        json_scalar(),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=6,
    )


def sentence() -> st.SearchStrategy[str]:
    """A few words, to embed or to search for."""
    return st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@st.composite
def item_value(draw: st.DrawFn) -> dict[str, Any]:
    """A value with fields to filter by, and usually with a text."""
    value: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "kind": st.sampled_from(["fact", "note", "FACT", ""]),
                "score": st.one_of(st.integers(0, 2), st.sampled_from([0.5, None, "2", True])),
                "meta": st.fixed_dictionaries({}, optional={"lang": st.sampled_from(["en", "de"])}),
                "tags": st.lists(st.sampled_from(["p", "q"]), max_size=2),
                "odd key": json_value(),
                "": json_value(),
            },
        )
    )
    # One item in five has no text, and so no vector.
    if draw(st.integers(0, 4)):
        value["text"] = draw(sentence())
    return value


def item_filter() -> st.SearchStrategy[dict[str, Any] | None]:
    """A filter with valid operators, which may compare values of different types."""
    operand = st.one_of(st.integers(0, 2), st.sampled_from([0.5, "2"]))
    ordered = st.dictionaries(
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), operand, min_size=1, max_size=2
    )
    equal = st.fixed_dictionaries({}, optional={"$eq": json_scalar(), "$ne": json_scalar()}).filter(
        bool
    )
    # A condition that fits the field, so that filters match some items and not others.
    conditions: dict[str, st.SearchStrategy[Any]] = {
        "kind": st.one_of(st.sampled_from(["fact", "note", None]), equal),
        "score": st.one_of(ordered, ordered, st.integers(0, 2), equal),
        "meta": st.fixed_dictionaries({"lang": st.sampled_from(["en", "de", None])}),
        "tags": st.lists(st.sampled_from(["p", "q"]), max_size=2),
        "odd key": equal,
        "": equal,
    }
    any_field = st.sampled_from(FIELDS).flatmap(
        lambda name: st.tuples(st.just(name), conditions[name])
    )
    fields: st.SearchStrategy[Any] = st.lists(any_field, min_size=1, max_size=2).map(dict)
    return st.one_of(st.none(), st.just({}), fields)


def indexing() -> st.SearchStrategy[Literal[False] | list[str] | None]:
    """The `index` argument of a put."""
    return st.sampled_from([None, None, None, False, ["text"], ["kind", "text"], ["tags[*]"]])
