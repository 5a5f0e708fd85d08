"""Namespaces: isolation, listing, and unusual labels."""

from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError

from memguard.testing.conformance.base import Calls, Suite

# Pairs that a careless encoding confuses: prefixes, SQL wildcards, cases, forms of Unicode.
LABELS: tuple[str, ...] = (
    "user1",
    "user10",
    "user_1",
    "user%",
    "User1",
    "user1 ",
    " user1",
    "user1/notes",
    "user1%2Fnotes",
    "*",
    "用户一",
    "e\u0301",
    "\u00e9",
    "a\nb",
    "\U0001f600",
    "--",
)
DOTTED: tuple[Any, ...] = ("jo.doe@example.org", "jo_doe@example.org", ".", "..", "a.b", 7, -1)

SPACES: tuple[tuple[str, ...], ...] = (
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("ab",),
)


class NamespaceTests(Suite):
    """Which items a namespace contains."""

    async def test_users_are_apart(self, calls: Calls) -> None:
        """Each user finds exactly their own items, however similar the ids are."""
        await self._check_apart(calls, LABELS)

    async def test_any_id_is_a_label(self, calls: Calls) -> None:
        """E-mail addresses and numbers are labels too."""
        self.needs("any_label")
        await self._check_apart(calls, DOTTED)
        assert (await calls.get(("users", "7"), "k")) is not None

    async def test_tenants_are_apart(self, calls: Calls) -> None:
        """A tenant whose name starts like another's sees nothing of the other."""
        for tenant in ("acme", "acme-corp", "acm"):
            await calls.put((tenant, "x"), "k", {"text": f"secret of {tenant}"})
        for tenant in ("acme", "acme-corp", "acm"):
            items = await calls.search((tenant,), query="secret", limit=50)
            assert [item.namespace for item in items] == [(tenant, "x")]

    async def test_prefix_search(self, calls: Calls) -> None:
        """A search finds items at and below its namespace, compared by whole labels."""
        await _fill(calls)
        for prefix in [(), ("a",), ("a", "b"), ("a", "b", "d"), ("b",), ("a", "b", "c")]:
            expected = {space for space in SPACES if space[: len(prefix)] == prefix}
            for query in (None, "text"):
                items = await calls.search(prefix, query=query, limit=50)
                assert {item.namespace for item in items} == expected
        assert await calls.search(("A",)) == []

    async def test_refused(self, calls: Calls) -> None:
        """Empty namespaces, empty labels and LangGraph's own root are refused."""
        for namespace in ((), ("",), ("a", ""), ("langgraph", "x")):
            with pytest.raises(InvalidNamespaceError):
                await calls.put(namespace, "k", {"text": "x"})
        with pytest.raises(InvalidNamespaceError):
            await calls.search(("a", ""))

    async def test_listing(self, calls: Calls) -> None:
        """Namespaces are listed by prefix, suffix, wildcard and depth, in order and in pages."""
        await _fill(calls)
        assert await calls.namespaces() == sorted(SPACES)
        assert await calls.namespaces(prefix=("a", "b")) == sorted(
            space for space in SPACES if space[:2] == ("a", "b")
        )
        assert await calls.namespaces(suffix=("f",)) == [
            ("a", "b", "f"),
            ("a", "c", "f"),
            ("b", "a", "f"),
        ]
        assert await calls.namespaces(prefix=("*", "b", "d")) == [
            ("a", "b", "d", "e"),
            ("a", "b", "d", "i"),
        ]
        assert await calls.namespaces(suffix=("d", "*")) == [
            ("a", "b", "d", "e"),
            ("a", "b", "d", "i"),
        ]
        assert await calls.namespaces(prefix=("a",), suffix=("f",), max_depth=2) == [
            ("a", "b"),
            ("a", "c"),
        ]
        assert await calls.namespaces(prefix=("a", "b"), max_depth=3) == [
            ("a", "b", "c"),
            ("a", "b", "d"),
            ("a", "b", "f"),
        ]
        assert await calls.namespaces(limit=2, offset=3) == sorted(SPACES)[3:5]
        assert await calls.namespaces(prefix=("nowhere",)) == []

    async def test_emptied_namespace_is_not_listed(self, calls: Calls) -> None:
        """A namespace without items is not listed; a new item lists it again."""
        self.needs("drops_empty_namespaces")
        await calls.put(("a", "b"), "k", {"text": "x"})
        await calls.put(("a", "b"), "l", {"text": "y"})
        await calls.delete(("a", "b"), "k")
        assert await calls.namespaces() == [("a", "b")]
        await calls.delete(("a", "b"), "l")
        assert await calls.namespaces() == []
        await calls.put(("a", "b"), "k", {"text": "x"})
        assert await calls.namespaces() == [("a", "b")]

    async def test_count_and_delete_namespace(self, calls: Calls) -> None:
        """Both methods work on exactly one namespace, not on those below it."""
        self.needs("counts")
        await calls.put(("a",), "k", {"text": "x"})
        await calls.put(("a",), "many", {"tags": ["p", "q"]}, index=["tags[*]"])
        await calls.put(("a",), "plain", {"text": "z"}, index=False)
        await calls.put(("a", "b"), "k", {"text": "y"})
        await calls.put(("ab",), "k", {"text": "y"})
        assert await calls.count(("a",)) == 3
        assert await calls.count(("nowhere",)) == 0
        assert await calls.delete_namespace(("a",)) == 3
        assert await calls.delete_namespace(("a",)) == 0
        assert await calls.count(("a",)) == 0
        assert await calls.namespaces() == [("a", "b"), ("ab",)]
        assert len(await calls.search(())) == 2

    async def _check_apart(self, calls: Calls, labels: tuple[Any, ...]) -> None:
        for number, label in enumerate(labels):
            await calls.put(("users", label), "k", {"text": f"secret of {number}"})
        for number, label in enumerate(labels):
            space = ("users", label)
            item = await calls.get(space, "k")
            assert item is not None
            assert item.value == {"text": f"secret of {number}"}
            for query in (None, "secret"):
                items = await calls.search(space, query=query, limit=50)
                assert [other.value for other in items] == [item.value]
        listed = await calls.namespaces(prefix=("users",))
        assert listed == sorted(("users", str(label)) for label in labels)


async def _fill(calls: Calls) -> None:
    for space in SPACES:
        await calls.put(space, "k", {"text": "text"})
