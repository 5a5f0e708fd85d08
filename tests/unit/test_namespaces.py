"""A namespace that is no name is refused before any work, and never shared by those without one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from memguard.errors import ErrorCode, InvalidInputError
from memguard.namespaces import _fill
from memguard.read.graph import create_read_guard
from memguard.testing import ScriptedChatModel
from memguard.write.graph import create_write_guard

TALK = {"messages": [("user", "I row.")]}


def write(namespace: Any, **context: Any) -> tuple[str, ...]:
    store = InMemoryStore()
    guard = create_write_guard(ScriptedChatModel(), store=store, namespace=namespace)
    try:
        return guard.invoke({"messages": []}, context=context)["writes"].namespace
    finally:
        assert not store.list_namespaces()


def giving(value: Any) -> Callable[[Runtime[Any]], Any]:
    return lambda _runtime: value


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        pytest.param("a{b", "a brace that is not closed", id="an open brace"),
        pytest.param(("m", "}"), "a brace that is not closed", id="a closing brace"),
        pytest.param(None, "got None", id="none"),
        pytest.param(5, "got 5", id="a number alone"),
        pytest.param(("m", None), "which is not a name", id="a label that is none"),
        pytest.param((), "has a blank label", id="no label"),
        pytest.param(giving(None), "got None", id="a function that gives none"),
        pytest.param(giving(("m", None)), "which is not a name", id="a function without a user"),
        pytest.param(
            giving(("m", ["a"])), "which is not a name", id="a function that gives a list"
        ),
        pytest.param(giving(("m", " ")), "has a blank label", id="a function that gives a blank"),
        pytest.param("{user}", "half a character", id="a lone surrogate"),
        pytest.param("{flag}", "is a bool, which is not a name", id="a truth value"),
        pytest.param(("m", True), "is a bool, which is not a name", id="a label that is a bool"),
        pytest.param("{x}{y}", "no text between two placeholders", id="nothing between"),
    ],
)
def test_what_is_no_namespace_is_refused(namespace: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        write(namespace, user="\ud800", flag=True, x="a", y="b")
    assert caught.value.code == ErrorCode.NAMESPACE_INVALID


@pytest.mark.parametrize(
    ("namespace", "labels"),
    [
        pytest.param(("m", 5), ("m", "5"), id="a number"),
        pytest.param(giving("whole"), ("whole",), id="a function that gives one label"),
        pytest.param(giving(["m", 7]), ("m", "7"), id="a function that gives a list of labels"),
        pytest.param(giving(("m", "{user}")), ("m", "{user}"), id="braces of a function"),
        pytest.param(("m{{}}", "{user}"), ("m{}", "ana"), id="doubled braces"),
    ],
)
def test_what_names_a_place_is_taken(namespace: Any, labels: tuple[str, ...]) -> None:
    assert write(namespace, user="ana") == labels


def test_a_read_from_nowhere_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidInputError, match="names no namespace") as caught:
        create_read_guard("local", store=InMemoryStore(), namespace=[])
    assert caught.value.code == ErrorCode.NAMESPACE_INVALID


@pytest.mark.parametrize(
    ("template", "values", "label"),
    [
        ("{a}-{b}", {"a": "acme", "b": "ana"}, "acme-ana"),
        # Data of earlier versions stays where it is: only the last value has the separator.
        ("{a}-{b}", {"a": "acme", "b": "7f-3c"}, "acme-7f-3c"),
        ("{a}-{b}", {"a": "ac-me", "b": "ana"}, "ac%2Dme-ana"),
        ("{a}-{b}", {"a": "ac%2Dme", "b": "ana"}, "ac%252Dme-ana"),
        ("u-{a}", {"a": "x-y%"}, "u-x-y%"),
        ("{a}{{}}{b}", {"a": "x}", "b": "y"}, "x%7D{}y"),
    ],
)
def test_a_label_with_two_placeholders_has_one_reading(
    template: str, values: dict[str, str], label: str
) -> None:
    assert _fill(template, values=values, template=template) == label


LABELS = st.text(alphabet="ab-:%2D{}", min_size=1, max_size=6)


@given(LABELS, LABELS, LABELS, LABELS, st.sampled_from(["-", "--", ":-", "%", "{{", "ab"]))
def test_two_users_never_share_a_label(a: str, b: str, c: str, d: str, separator: str) -> None:
    template = f"{{a}}{separator}{{b}}"
    one = _fill(template, values={"a": a, "b": b}, template=template)
    other = _fill(template, values={"a": c, "b": d}, template=template)
    assert (one == other) == ((a, b) == (c, d))
