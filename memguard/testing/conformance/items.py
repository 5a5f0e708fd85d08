"""Items: put, get, replace, delete, and values that come back equal."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memguard.errors import InvalidInputError
from memguard.testing.conformance.base import Calls, Suite

SPACE = ("memories", "ana")

# Texts that a file name, an SQL pattern or an encoding would confuse or reject.
KEYS = ("k", "K", "", " ", "a/b", "%", "Ключ", "a\nb", "k.0", "k\x00", "\ud800")

VALUES: tuple[dict[str, Any], ...] = (
    {},
    {"subject": None},
    {"tags": []},
    {"tags": ["p", "q"]},
    {"tags": ["a", 1, None, 2.5, False, {"deep": [[]]}]},
    {"o": {"a": 1}, "empty": {}},
    {"big": 2**70, "negative": -(2**64)},
    {"float": 0.1 + 0.2, "tiny": 5e-324, "infinite": math.inf},
    {"text": "line\nline\ttab \x00 nul"},
    {"text": "日本語 العربية \U0001f600 e\u0301"},
    {"text": "unpaired \ud800 surrogate"},
    {"chroma:document": "x", "$and": "y", "": "z"},
    {"text": "123", "other": "None", "third": "True"},
    {"ok": True, "no": False, "zero": 0},
)

REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"when": datetime(2026, 5, 1, tzinfo=UTC)}, "$.when"),
    ({"a": [{"raw": b"x"}]}, "$.a[0].raw"),
    ({"pair": (1, 2)}, "$.pair"),
    ({"set": {1}}, "$.set"),
    ({"map": {1: "x"}}, "$.map"),
)


class ItemTests(Suite):
    """One item at a time."""

    async def test_get_what_was_put(self, calls: Calls) -> None:
        """An item comes back with its value, key, namespace and times."""
        await calls.put(SPACE, "k", {"text": "likes tea", "n": 1})
        item = await calls.get(SPACE, "k")
        assert item is not None
        assert (item.value, item.key, item.namespace) == (
            {"text": "likes tea", "n": 1},
            "k",
            SPACE,
        )
        assert item.created_at.utcoffset() == timedelta(0)
        assert item.updated_at.utcoffset() == timedelta(0)

    async def test_missing_is_none(self, calls: Calls) -> None:
        """An item that was never put is `None`, whether or not its namespace exists."""
        assert await calls.get(("nowhere",), "k") is None
        await calls.put(SPACE, "k", {"text": "x"})
        assert await calls.get(SPACE, "other") is None
        assert await calls.get(("memories",), "k") is None

    async def test_values_come_back_equal(self, calls: Calls) -> None:
        """Every JSON value is preserved, with its types."""
        for number, value in enumerate(VALUES):
            await calls.put(SPACE, str(number), value)
        values = {item.key: item.value for item in await calls.search(SPACE, limit=len(VALUES))}
        for number, value in enumerate(VALUES):
            item = await calls.get(SPACE, str(number))
            assert item is not None
            assert item.value == value
            # 1, 1.0 and True are equal, so a changed type shows only here.
            assert repr(item.value) == repr(value)
            assert values[str(number)] == value

    async def test_nan_stays_nan(self, calls: Calls) -> None:
        """NaN is neither dropped nor turned into something else."""
        await calls.put(SPACE, "k", {"n": math.nan})
        item = await calls.get(SPACE, "k")
        assert item is not None
        assert math.isnan(item.value["n"])

    async def test_other_values_are_refused(self, calls: Calls) -> None:
        """A value that JSON would change is refused, with its path, and nothing is stored."""
        self.needs("refuses_values")
        for value, path in REFUSED:
            with pytest.raises(InvalidInputError) as caught:
                await calls.put(SPACE, "k", value)
            assert path in str(caught.value)
        assert await calls.get(SPACE, "k") is None

    async def test_put_replaces(self, calls: Calls) -> None:
        """A second put leaves nothing of the first."""
        await calls.put(SPACE, "k", {"text": "old", "extra": 1, "gone": None})
        await calls.put(SPACE, "k", {"text": "new"})
        item = await calls.get(SPACE, "k")
        assert item is not None
        assert item.value == {"text": "new"}
        assert len(await calls.search(SPACE)) == 1

    async def test_times(self, calls: Calls) -> None:
        """A replacement keeps `created_at` and moves `updated_at`."""
        self.needs("keeps_created_at")
        await calls.put(SPACE, "k", {"text": "old"})
        first = await calls.get(SPACE, "k")
        await calls.put(SPACE, "k", {"text": "new"})
        second = await calls.get(SPACE, "k")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at

    async def test_delete(self, calls: Calls) -> None:
        """A deleted item is gone from every read; deleting it again is not an error."""
        await calls.put(SPACE, "k", {"text": "x"})
        await calls.put(SPACE, "stays", {"text": "y"})
        await calls.delete(SPACE, "k")
        await calls.delete(SPACE, "k")
        await calls.delete(("nowhere",), "k")
        assert await calls.get(SPACE, "k") is None
        assert [item.key for item in await calls.search(SPACE, query="x")] == ["stays"]

    async def test_keys(self, calls: Calls) -> None:
        """Any text is a key, and different texts are different keys."""
        for key in KEYS:
            await calls.put(SPACE, key, {"text": key})
        for key in KEYS:
            item = await calls.get(SPACE, key)
            assert item is not None
            assert (item.key, item.value) == (key, {"text": key})
        items = await calls.search(SPACE, limit=2 * len(KEYS))
        assert sorted(item.key for item in items) == sorted(KEYS)

    async def test_values_are_copies(self, calls: Calls) -> None:
        """A caller that changes a value does not change the stored value."""
        self.needs("copies_values")
        value: dict[str, Any] = {"text": "x", "list": [1]}
        await calls.put(SPACE, "k", value)
        value["list"].append(2)
        item = await calls.get(SPACE, "k")
        assert item is not None
        item.value["list"].append(3)
        again = await calls.get(SPACE, "k")
        assert again is not None
        assert again.value == {"text": "x", "list": [1]}
