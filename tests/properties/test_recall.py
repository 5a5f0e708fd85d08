"""Recall, whatever is stored: exactly the namespaces asked for, in order, each text once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memguard.local.pieces import looks_like_safety
from memguard.read.recall import recall
from memguard.schema.memory import same_text_form
from memguard.schema.read import Recall
from memguard.testing.embeddings import HashEmbeddings

NOW = datetime(2026, 3, 15, tzinfo=UTC)
LABELS = st.lists(st.sampled_from(["a", "ab", "b", "c"]), min_size=1, max_size=3).map(tuple)
TEXTS = st.sampled_from(
    ["green curry", "green  curry.", "a boat", "peanut allergy", "insulin at noon", "tea", "A boat"]
)
ITEMS = st.lists(st.tuples(LABELS, st.integers(0, 5), TEXTS, st.booleans()), max_size=25)


@settings(max_examples=120, deadline=None)
@given(
    items=ITEMS,
    places=st.lists(LABELS, min_size=1, max_size=3),
    k=st.integers(1, 6),
    safety_k=st.integers(0, 4),
)
def test_only_what_was_asked_for(
    items: list[Any], places: list[tuple[str, ...]], k: int, safety_k: int
) -> None:
    index: Any = {"dims": 16, "embed": HashEmbeddings(dims=16), "fields": ["content"]}
    store = InMemoryStore(index=index)
    for namespace, key, text, gone in items:
        value = {"content": text, "superseded_by": "x" if gone else None}
        store.batch([PutOp(namespace, str(key), value)])
    live = {
        (tuple(item.namespace), item.key): item.value["content"]
        for item in store.search((), limit=1000)
        if not item.value["superseded_by"] and tuple(item.namespace) in places
    }
    spec = Recall(safety_k=safety_k)
    found = asyncio.run(
        recall(store, query="green curry", namespaces=places, spec=spec, k=k, now=NOW)
    )
    forms = [same_text_form(memory.text) for memory in found.memories]
    distinct = list(dict.fromkeys(forms))
    # Nothing of another namespace, nothing superseded, nothing twice.
    for memory in found.memories:
        assert live[memory.namespace, memory.key] == memory.text
    assert len({(m.namespace, m.key) for m in found.memories}) == len(found.memories)
    # As many texts as there are, up to k; what is beyond them is about safety.
    everything = {same_text_form(text) for text in live.values()}
    assert len(distinct) >= min(k, len(everything))
    beyond = found.memories[min(k, len(everything)) : len(distinct)]
    assert len(beyond) <= safety_k
    assert all(looks_like_safety(memory.text) for memory in beyond)
    scores = [memory.score or 0.0 for memory in found.memories[: min(k, len(everything))]]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    # A small namespace is searched whole, so no safety constraint is missed.
    safe = {same_text_form(text) for text in live.values() if looks_like_safety(text)}
    nearest = set(distinct[: min(k, len(everything))])
    assert found.additional == len(beyond) == min(len(safe - nearest), safety_k)
    left = len(safe - nearest) - found.additional
    assert any("read as safety constraints" in note for note in found.notes) == (
        left > 0 and safety_k > 0
    )
