"""The base of all suites: capabilities, calls through either surface, protected tests."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import pytest
from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem

Surface = Literal["sync", "async"]


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a store guarantees beyond LangGraph's interface; tests of the rest are skipped."""

    any_label: bool = False
    """Labels with dots, and integers, may be written."""
    keeps_created_at: bool = False
    """A put over an existing item keeps its `created_at`."""
    refuses_values: bool = False
    """A value that JSON cannot represent is refused with `InvalidInputError`."""
    refuses_filters: bool = False
    """An unknown operator is refused with `InvalidInputError`, even in an empty store."""
    counts: bool = False
    """The store has `count`, `delete_namespace` and their async forms."""
    unit_scores: bool = False
    """Scores lie in [0, 1]."""
    paged_unranked: bool = False
    """Pages continue over the items that have no vector."""
    drops_empty_namespaces: bool = False
    """A namespace without items is not listed."""
    copies_values: bool = False
    """A change to a value that was read does not change the stored value."""


class Calls:
    """Calls one store through one surface; sync methods run in a worker thread."""

    def __init__(self, store: BaseStore, *, surface: Surface) -> None:
        self.store = store
        self.surface = surface

    async def put(self, *args: Any, **kwargs: Any) -> None:
        """`put` or `aput`."""
        await self._call("put", *args, **kwargs)

    async def get(self, *args: Any, **kwargs: Any) -> Item | None:
        """`get` or `aget`."""
        return cast("Item | None", await self._call("get", *args, **kwargs))

    async def existing(self, *args: Any, **kwargs: Any) -> Item:
        """As `get`, for an item that must be there."""
        item = await self.get(*args, **kwargs)
        assert item is not None
        return item

    async def search(self, *args: Any, **kwargs: Any) -> list[SearchItem]:
        """`search` or `asearch`."""
        return cast("list[SearchItem]", await self._call("search", *args, **kwargs))

    async def delete(self, *args: Any) -> None:
        """`delete` or `adelete`."""
        await self._call("delete", *args)

    async def namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """`list_namespaces` or `alist_namespaces`."""
        return cast("list[tuple[str, ...]]", await self._call("list_namespaces", **kwargs))

    async def batch(self, ops: list[Op]) -> list[Result]:
        """`batch` or `abatch`."""
        return cast("list[Result]", await self._call("batch", ops))

    async def count(self, namespace: tuple[Any, ...]) -> int:
        """`count` or `acount`."""
        return cast("int", await self._call("count", namespace))

    async def delete_namespace(self, namespace: tuple[Any, ...]) -> int:
        """`delete_namespace` or `adelete_namespace`."""
        return cast("int", await self._call("delete_namespace", namespace))

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> object:
        # An async store refuses sync calls on its own event loop.
        if self.surface == "sync":
            return await asyncio.to_thread(getattr(self.store, name), *args, **kwargs)
        return await getattr(self.store, f"a{name}")(*args, **kwargs)


class Suite:
    """A set of tests that a subclass cannot weaken."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    surfaces: ClassVar[tuple[Surface, ...]] = ("sync", "async")
    """The surfaces of the store; tests of the other one are skipped."""
    ranks: ClassVar[bool] = True
    """Whether the store has an index; the tests of ranking are skipped where it has none."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # An overridden test would let a store pass that does not conform.
        for name, member in vars(cls).items():
            inherited = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
            if name.startswith("test") and inherited is not None and not _is_xfail(member):
                msg = (
                    f"{cls.__name__}.{name} overrides a conformance test of "
                    f"{inherited.__name__}. Mark it pytest.mark.xfail(reason=...) or drop it"
                )
                raise TypeError(msg)

    @pytest.fixture(params=["sync", "async"])
    def calls(self, store: BaseStore, request: pytest.FixtureRequest) -> Calls:
        """The store under test, once for each of its surfaces."""
        self.needs_surface(request.param)
        return Calls(store, surface=request.param)

    def needs(self, capability: str) -> None:
        """Skip a test of something that the store does not guarantee."""
        if not getattr(self.capabilities, capability):
            pytest.skip(f"the store does not promise {capability!r}")

    def needs_surface(self, surface: Surface) -> None:
        """Skip a test of a surface that the store does not have."""
        if surface not in self.surfaces:
            pytest.skip(f"the store has no {surface} methods")

    def needs_index(self) -> None:
        """Skip a test of ranking for a store without an index."""
        if not self.ranks:
            pytest.skip("the store has no index")


def _is_xfail(member: Callable[..., Any] | object) -> bool:
    marks = getattr(member, "pytestmark", [])
    return any(
        mark.name == "xfail" and cast("Mapping[str, Any]", mark.kwargs).get("reason")
        for mark in marks
    )
