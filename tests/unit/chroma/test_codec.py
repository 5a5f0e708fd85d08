"""The pure parts of the Chroma store: namespaces, values, filters."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError, ListNamespacesOp, MatchCondition
from langgraph.store.memory import InMemoryStore

from memguard.chroma.values import (
    Address,
    Record,
    check_filter,
    check_labels,
    check_namespace,
    decode_namespace,
    encode_namespace,
    encode_value,
    from_microseconds,
    is_under,
    loads_record,
    matches,
    page_namespaces,
    select_namespaces,
    to_microseconds,
)
from memguard.errors import ErrorCode, InvalidInputError
from tests import strategies

HERE = Address(("a",), "k")


@given(strategies.any_namespace())
def test_namespace_comes_back(namespace: tuple[str, ...]) -> None:
    text = encode_namespace(namespace)
    assert text.isascii()
    assert decode_namespace(text) == namespace


@given(strategies.any_namespace(), strategies.any_namespace())
def test_two_namespaces_never_share_a_text(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (encode_namespace(one) == encode_namespace(other)) == (one == other)
    assert (Address(one, "k").row_id == Address(other, "k").row_id) == (one == other)


@given(strategies.any_namespace(), strategies.any_namespace())
def test_prefix_is_by_whole_labels(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert is_under(one + other, one)
    assert is_under(one, ())
    if len(other) > len(one):
        assert not is_under(one, other)


def test_labels() -> None:
    assert check_labels(("users", 7)) == ("users", "7")
    assert check_labels(["users", "a.b"]) == ("users", "a.b")
    refused: tuple[Any, ...] = (("a", ""), ("a", None), ("a", 1.5), ("a", True), "users", None)
    for namespace in refused:
        with pytest.raises(InvalidInputError) as caught:
            check_labels(namespace)
        assert caught.value.code is ErrorCode.NAMESPACE_INVALID
        assert isinstance(caught.value, InvalidNamespaceError)
    with pytest.raises(InvalidNamespaceError):
        check_namespace(())


@given(
    st.lists(strategies.shared_namespace(), max_size=6),
    st.lists(st.sampled_from(["user1", "User1", "*", "a/b"]), max_size=3).map(tuple),
    st.sampled_from(["prefix", "suffix"]),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_listing_as_langgraph_does(
    namespaces: list[tuple[str, ...]], path: tuple[str, ...], kind: Any, max_depth: int | None
) -> None:
    model = InMemoryStore()
    for each in namespaces:
        model.put(each, "k", {})
    conditions = (MatchCondition(kind, path),) if path else ()
    op = ListNamespacesOp(conditions, max_depth, 100, 0)
    ours = page_namespaces(select_namespaces(set(namespaces), conditions), op)
    assert ours == model.batch([op])[0]


@given(st.dictionaries(st.text(max_size=5), strategies.json_value(), max_size=4))
def test_value_comes_back(value: dict[str, Any]) -> None:
    record = Record(
        key="k\n",
        text=encode_value(value, address=HERE),
        created=1,
        updated=2,
        ttl=None,
        vectors=0,
        revision="r",
    )
    text = record.dumps()
    assert text.isascii()
    assert loads_record(text) == record
    assert repr(loads_record(text).value()) == repr(value)


@pytest.mark.parametrize(
    "bad",
    [(1,), {1}, b"x", object(), 1j, {1: 2}, 10**5000],
    ids=["(1,)", "set", "bytes", "object", "complex", "key", "huge"],
)
def test_other_values_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode_value({"a": [{"b": bad}]}, address=HERE)
    assert caught.value.code is ErrorCode.STORE_VALUE


def test_endless_value_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInputError, match="deep"):
        encode_value({"a": endless}, address=HERE)
    with pytest.raises(InvalidInputError):
        encode_value([1], address=HERE)


@given(st.integers(-(2**53), 2**53))
def test_moment_comes_back(count: int) -> None:
    count %= 2**55
    assert to_microseconds(from_microseconds(count)) == count


@given(strategies.item_value(), strategies.item_filter())
def test_filters_mean_what_langgraph_means(value: dict[str, Any], wanted: Any) -> None:
    model = InMemoryStore()
    model.put(("a",), "k", value)
    ours = matches(value, check_filter(wanted))
    try:
        theirs = bool(model.search(("a",), filter=wanted))
    except (TypeError, ValueError):
        return  # a comparison with what is no number: ours does not match, theirs raises
    assert ours == theirs


PLAIN: tuple[Any, ...] = (
    0,
    1,
    -1,
    0.5,
    True,
    None,
    "1",
    "",
    "fact",
    [],
    ["p"],
    [1, "p"],
    {},
    {"a": 1},
    {"a": {"b": []}},
)


@pytest.mark.parametrize("name", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", None])
def test_every_operator_on_every_kind(name: str | None) -> None:
    model = InMemoryStore()
    for number, value in enumerate(PLAIN):
        model.put((str(number),), "k", {"f": value})
    for operand in PLAIN:
        wanted: dict[str, Any] = {"f": operand if name is None else {name: operand}}
        for number, value in enumerate(PLAIN):
            try:
                theirs = bool(model.search((str(number),), filter=wanted))
                ours = matches({"f": value}, check_filter(wanted))
            except (TypeError, ValueError, InvalidInputError):
                continue  # LangGraph's order of what is no number
            assert (ours, value, wanted) == (theirs, value, wanted)


def test_comparisons_where_langgraph_raises() -> None:
    assert not matches({}, check_filter({"n": {"$gt": 1}}))
    assert not matches({"n": "abc"}, check_filter({"n": {"$gt": 1}}))
    assert not matches({"n": [1]}, check_filter({"n": {"$lt": 1}}))
    assert matches({"at": "2026-05-02"}, check_filter({"at": {"$gt": "2026-05-01"}}))
    assert not matches({"n": math.nan}, check_filter({"n": {"$gte": 0}}))


@pytest.mark.parametrize(
    "wanted",
    [["a"], {1: 2}, {"a": {"$in": []}}, {"a": {"$gt": {}}}, {"a": [{"$no": 1}]}, {"a": {1: 2}}],
)
def test_bad_filters(wanted: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_filter(wanted)
    assert caught.value.code is ErrorCode.STORE_FILTER


@pytest.mark.parametrize("in_list", [False, True])
def test_a_filter_that_is_nested_too_deeply_is_refused(in_list: bool) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep] if in_list else {"a": deep}
    assert not matches({"field": 1}, check_filter({"field": deep}))
    for _ in range(100_000):
        deep = [deep] if in_list else {"a": deep}
    with pytest.raises(InvalidInputError, match="200 levels"):
        check_filter({"field": deep})
