"""Searches of exactly one namespace, where others below it crowd the pages."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, create_consistency_gate_graph
from memguard.paging import search_exactly
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, ScriptedChatModel

OWN, CHILD = ("m", "ana"), ("m", "ana", "work")
CANDIDATE = {"text": "The user rows.", "namespace": OWN}


class CountingStore(InMemoryStore):
    """Counts its pages."""

    pages = 0

    async def abatch(self, ops: Any) -> Any:
        self.pages += 1
        return await super().abatch(ops)


def crowded(*, own: int, below: int) -> CountingStore:
    index: Any = {"dims": 16, "embed": HashEmbeddings(dims=16), "fields": ["content"]}
    store = CountingStore(index=index)
    # Those below come first in the store's order, and are nearer to the query.
    for number in range(below):
        store.put(CHILD, f"c{number}", {"content": "The user rows."})
    for number in range(own):
        store.put(OWN, f"o{number}", {"content": f"The user rows on lake {number}."})
    return store


@pytest.mark.parametrize("query", [None, "The user rows."])
@pytest.mark.parametrize(("own", "below", "limit"), [(3, 300, 5), (30, 300, 25), (0, 40, 3)])
async def test_what_is_below_a_namespace_does_not_crowd_it_out(
    query: str | None, own: int, below: int, limit: int
) -> None:
    store = crowded(own=own, below=below)
    items = await search_exactly(store, OWN, limit=limit, query=query)
    assert {tuple(item.namespace) for item in items} <= {OWN}
    assert len(items) == len({item.key for item in items}) == min(own, limit)
    # Pages grow, so that their number grows with the logarithm of what is below.
    assert store.pages <= 4


async def test_the_adaptive_threshold_counts_its_own_records() -> None:
    """500 own and 500 records below counted as none, so that the threshold was 0.4."""
    store = crowded(own=500, below=500)
    gate = create_consistency_gate_graph(
        ScriptedChatModel(["0.75"]), spec=ConsistencyGate(k=1, threshold="adaptive"), store=store
    )
    result = await gate.ainvoke({"candidate": CANDIDATE, "context": "I row."})
    assert result["report"].evidence["occupancy"] == 500
    assert result["report"].evidence["tau"] == pytest.approx(0.8)
    assert result["decision"].outcome == "reject"


async def test_stored_memories_as_context_are_those_of_the_namespace() -> None:
    """The judge was asked with an empty source."""
    model = ScriptedChatModel(["1"])
    gate = create_consistency_gate_graph(
        model,
        spec=ConsistencyGate(k=1, context="memory"),
        store=crowded(own=3, below=300),
    )
    await gate.ainvoke({"candidate": CANDIDATE, "context": ""})
    shown = model.calls[0].text
    assert shown.count("The user rows on lake") == 3


def test_the_command_line_search_is_not_crowded_out(tmp_path: Any) -> None:
    from typer.testing import CliRunner

    from memguard.cli.app import app

    with ChromaStore.local(tmp_path / "m") as store:
        for number in range(30):
            store.put(("memories", "ana", "x"), f"c{number}", {"content": "rows"})
        store.put(("memories", "ana"), "own", {"content": "The user rows."})
    command = ["search", "rows", "--store", str(tmp_path / "m"), "--user", "ana", "--limit", "1"]
    printed = CliRunner().invoke(app, command)
    assert "The user rows." in printed.output


def test_a_page_of_others_does_not_end_the_search_for_safety_constraints() -> None:
    from collections import Counter
    from datetime import UTC, datetime

    from langgraph.store.base import SearchItem

    from memguard.read.recall import RecallSearch, add_page
    from memguard.schema.read import Recall

    now = datetime(2026, 3, 1, tzinfo=UTC)

    def page(namespace: tuple[str, ...], size: int) -> list[SearchItem]:
        value = {"content": "The user is allergic to nuts."}
        return [SearchItem(namespace, f"k{n}", value, now, now, score=0.5) for n in range(size)]

    search = RecallSearch(OWN, "allergy", max_texts=500, min_items=20, for_safety=True)
    for namespace in (OWN, CHILD):
        add_page(
            search,
            page(namespace, search.limit),
            spec=Recall(),
            now=now,
            counts=Counter(),
        )
    assert not search.done
