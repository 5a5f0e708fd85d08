"""Several tenants with hostile ids: nothing crosses, on any public path that reads."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from langchain.agents import create_agent
from langgraph.store.base import BaseStore, Item
from langgraph.store.memory import InMemoryStore

from memguard import (
    ConsistencyGate,
    MemguardMiddleware,
    Recall,
    RelevanceGate,
    create_memory_agent,
    create_read_guard,
    create_write_guard,
    guard_store,
)
from memguard.cli.options import namespace_of, template_of
from memguard.errors import ConfigurationError, InvalidInputError, StoreError
from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.reads import ReadFilter, ReadLog
from memguard.journal.receipts import ReceiptFilter, ReceiptLog
from memguard.namespaces import encode_label
from memguard.paging import search_exactly
from memguard.portal import run_sync
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, ScriptedChatModel

TENANTS = (
    "user1",
    "user10",
    "User1",
    "user1 ",
    "user\u200b1",
    "us\u0435r1",  # a Cyrillic letter
    "caf\u00e9",
    "cafe\u0301",
    "../user1",
    "user1/..",
    "user1/user10",
    "%",
    "user%31",
    "user_",
    "*",
    '{"$ne": ""}',
    "{user_id}",
    "' OR 1=1 --",
    "a.b",
    "a%2Eb",
    'a","b',
    "x" * 4_000,
    "x" * 4_001,
    "\x00",
    "memories",
)
"""Prefixes of one another, look-alikes, twins under normalisation, and syntax of every layer."""

SHARED = "Everybody likes tea."
"""A text of several tenants: equal texts must not make one memory of several users."""

BELOW = "Another tenant below keeps a secret number."

tenants = st.sampled_from(range(len(TENANTS)))
ANY = RelevanceGate(theta=0.0, k=50)
NAMESPACE = ("memories", "{user_id}")


def secret_of(tenant: int, number: int) -> str:
    return f"Tenant {tenant:02} keeps secret number {number}."


class Isolation(RuleBasedStateMachine):
    """A model of what each tenant has; every read is compared with it, or searched for others."""

    def __init__(self) -> None:
        super().__init__()
        self.store = self.open_store()
        self.journal = Journal.memory()
        self.stored: dict[int, set[str]] = {}
        self.held: dict[int, set[str]] = {}
        shared: dict[str, Any] = {"store": self.store, "receipts": self.journal}
        self.below: set[int] = set()
        self.writer = create_write_guard("local", namespace=NAMESPACE, gates=[], **shared)
        self.writer_below = create_write_guard(
            "local", namespace=(*NAMESPACE, "user10"), gates=[], **shared
        )
        self.doubter = create_write_guard(
            ScriptedChatModel(rules=[("", "I cannot tell.")]),
            namespace=NAMESPACE,
            gates=[ConsistencyGate(k=1)],
            **shared,
        )
        self.reader = create_read_guard("local", namespace=NAMESPACE, admission=ANY, **shared)
        self.latest = create_read_guard(
            "local", namespace=NAMESPACE, admission=ANY, recall=Recall(order="latest"), **shared
        )
        self.agent_model = ScriptedChatModel(rules=[("", "Fine.")])
        self.agent = create_memory_agent(
            self.agent_model, judge="local", admission=ANY, write=False, **shared
        )
        middleware = MemguardMiddleware("local", admission=ANY, write=False, **shared)
        self.middleware_model = ScriptedChatModel(rules=[("", "Fine.")])
        self.host: Any = create_agent(self.middleware_model, middleware=[middleware])
        self.guarded = guard_store(
            self.store, model="local", read=ANY, gates=[], needs_source=False, receipts=self.journal
        )

    def open_store(self) -> Any:
        return InMemoryStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})

    def teardown(self) -> None:
        self.journal.close()

    # -- writes ------------------------------------------------------------------------------

    @initialize(some=st.lists(tenants, min_size=5, max_size=5, unique=True))
    def begin(self, some: list[int]) -> None:
        for tenant in some:
            self.write(tenant, 0, is_shared=False)
            self.write(tenant, 0, is_shared=True)

    @rule(tenant=tenants, number=st.integers(0, 2), is_shared=st.booleans())
    def write(self, tenant: int, number: int, is_shared: bool) -> None:
        text = SHARED if is_shared else secret_of(tenant, number)
        own = self.stored.setdefault(tenant, set())
        writes = self.writer.invoke(self.said(text), context=self.context(tenant))["writes"]
        counts = writes.counts
        assert (counts["stored"], counts["duplicate"] + writes.resumed) == (
            (0, 1) if text in own else (1, 0)
        ), "a text of another tenant is none of this one"
        own.add(text)

    @rule(tenant=tenants, number=st.integers(3, 4), is_shared=st.booleans())
    def write_in_doubt(self, tenant: int, number: int, is_shared: bool) -> None:
        text = SHARED if is_shared else secret_of(tenant, number)
        if text in self.stored.get(tenant, ()):
            return
        self.doubter.invoke(self.said(text), context=self.context(tenant))
        self.held.setdefault(tenant, set()).add(text)

    @rule(tenant=tenants, number=st.integers(5, 6))
    def put_through_a_guarded_store(self, tenant: int, number: int) -> None:
        text = secret_of(tenant, number)
        self.guarded.put(self.namespace(tenant), text, {"content": text})
        self.stored.setdefault(tenant, set()).add(text)

    @rule(tenant=tenants)
    def write_below(self, tenant: int) -> None:
        """A search of a store is by prefix, so this one comes along with the tenant's own."""
        self.writer_below.invoke(self.said(BELOW), context=self.context(tenant))
        self.below.add(tenant)

    # -- reads that must be exact ------------------------------------------------------------

    @rule(tenant=tenants)
    def search(self, tenant: int) -> None:
        for query in (None, "secret number"):
            items = self.store.search(self.namespace(tenant), query=query, limit=200)
            assert self.texts_in(items, tenant) == self.stored.get(tenant, set())
            items = self.guarded.search(self.namespace(tenant), query=query, limit=200)
            assert self.texts_in(items, tenant) <= self.stored.get(tenant, set())

    @rule(tenant=tenants, other=tenants)
    def get(self, tenant: int, other: int) -> None:
        """A key of one tenant in the namespace of another one names nothing of the first."""
        for item in self.store.search(self.namespace(other), limit=200):
            for store in (self.store, self.guarded):
                got = store.get(self.namespace(tenant), item.key)
                assert self.texts_in([got] if got else [], tenant) <= self.stored.get(tenant, set())

    @rule(tenant=tenants)
    def list_namespaces(self, tenant: int) -> None:
        own = self.namespace(tenant)
        if "*" in own:
            return  # LangGraph's wildcard: see "Not defended" in the threat model
        listed = self.store.list_namespaces(prefix=own, limit=100)
        assert set(listed) <= {own, (*own, "user10")}
        assert (own in listed) >= bool(self.stored.get(tenant))

    @rule(tenant=tenants)
    def search_on_the_command_line(self, tenant: int) -> None:
        namespace = self.namespace(tenant)
        if isinstance(self.store, ChromaStore) and TENANTS[tenant].strip():
            assert namespace_of(TENANTS[tenant], None) == namespace
        items = run_sync(search_exactly(self.store, namespace, query="secret", limit=100))
        assert self.texts_in(items, tenant) == self.stored.get(tenant, set())

    @rule(tenant=tenants)
    def log(self, tenant: int) -> None:
        namespace = self.namespace(tenant)
        page = Quarantine(self.journal).list(namespace=namespace, limit=200)
        assert {receipt.candidate.text for receipt in page.receipts} == self.held.get(tenant, set())
        receipts = ReceiptLog(self.journal).list(ReceiptFilter(namespace=namespace), limit=500)
        written = self.stored.get(tenant, set()) | self.held.get(tenant, set())
        below = {BELOW} if tenant in self.below else set[str]()
        assert {receipt.candidate.text for receipt in receipts.receipts} == written | below
        owners = {receipt.namespace for receipt in receipts.receipts}
        assert owners <= {namespace, (*namespace, "user10")}
        reads = ReadLog(self.journal).list(ReadFilter(namespace=namespace), limit=500).reads
        assert {name for read in reads for name in read.namespaces} <= {namespace}
        report = run_sync(audit(self.journal, self.store, namespace=namespace))
        assert report.agrees
        assert report.checked_records == len(self.stored.get(tenant, set())) + len(below)

    # -- reads for a prompt ------------------------------------------------------------------

    @rule(tenant=tenants, other=tenants)
    def read(self, tenant: int, other: int) -> None:
        query = {"query": f"Which secret number is of tenant {other:02}?"}
        for guard in (self.reader, self.latest):
            read = guard.invoke(query, context=self.context(tenant))["read"]
            assert {memory.namespace for memory in read.memories} <= {self.namespace(tenant)}
            assert {memory.text for memory in read.memories} == self.stored.get(tenant, set())
            self.check_prompt(read.model_dump_json(exclude={"query"}), tenant)
        template = template_of((*NAMESPACE[:1], TENANTS[tenant]))
        guard = create_read_guard(
            "local",
            namespace=template,
            admission=ANY,
            store=self.store,
            receipts=self.journal,
        )
        read = guard.invoke(query)["read"]
        assert {memory.text for memory in read.memories} == self.stored.get(tenant, set())

    @rule(tenant=tenants)
    def answer(self, tenant: int) -> None:
        said: Any = {"messages": [("user", "Which secret number do I keep?")]}
        for host, model in (
            (self.agent, self.agent_model),
            (self.host, self.middleware_model),
        ):
            host.invoke(said, context=self.context(tenant))
            self.check_prompt(model.calls[-1].text, tenant)

    @rule(blank=st.sampled_from(["", " ", "\u200b", None, ["user1"], {"$ne": ""}, "\ud800"]))
    def no_tenant(self, blank: Any) -> None:
        for guard, given in ((self.writer, self.said("x")), (self.reader, {"query": "x"})):
            with pytest.raises((ConfigurationError, InvalidInputError)):
                guard.invoke(given, context={"user_id": blank})

    # -- helpers -----------------------------------------------------------------------------

    def said(self, text: str) -> Any:
        return {"messages": [("user", text)], "candidates": [text]}

    def context(self, tenant: int) -> Any:
        return {"user_id": TENANTS[tenant]}

    def namespace(self, tenant: int) -> tuple[str, ...]:
        return ("memories", TENANTS[tenant])

    def texts_in(self, items: "list[Any]", tenant: int) -> set[str]:
        """The texts of the tenant's own items; all others must be below its namespace."""
        own = self.namespace(tenant)
        assert {tuple(item.namespace) for item in items} <= {own, (*own, "user10")}
        return {str(item.value["content"]) for item in items if tuple(item.namespace) == own}

    def check_prompt(self, prompt: str, tenant: int) -> None:
        assert BELOW not in prompt
        for other in range(len(TENANTS)):
            assert other == tenant or f"Tenant {other:02} keeps" not in prompt


class EncodedIsolation(Isolation):
    """LangGraph's own store, which takes no dot in a label."""

    def namespace(self, tenant: int) -> tuple[str, ...]:
        return ("memories", encode_label(TENANTS[tenant]))


class ChromaIsolation(Isolation):
    def open_store(self) -> Any:
        # One shard and no cache, so that Chroma's own filter has to keep tenants apart.
        return ChromaStore.memory(
            index={"dims": 64, "embed": HashEmbeddings(dims=64)}, shards=1, cache_bytes=0
        )

    def teardown(self) -> None:
        super().teardown()
        self.store.close()


LIMITS = settings(
    max_examples=4,
    stateful_step_count=20,
    suppress_health_check=(HealthCheck.too_slow,),
    # A step takes tens of milliseconds, so a failure is shown as it is.
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
)
TestEncodedIsolation = EncodedIsolation.TestCase
TestEncodedIsolation.settings = LIMITS
TestChromaIsolation = ChromaIsolation.TestCase
TestChromaIsolation.settings = LIMITS


# -- a store that confuses its tenants ---------------------------------------------------------

ANA, BEN = ("memories", "ana"), ("memories", "ben")
BENS = "Ben keeps a secret."


class LeakyStore(InMemoryStore):
    """Answers every question of Ana with what Ben has."""

    def batch(self, ops: Any) -> Any:
        item = Item(
            namespace=BEN,
            key="k",
            value={"content": BENS},
            created_at="2026-01-01T00:00:00+00:00",  # pyright: ignore[reportArgumentType]
            updated_at="2026-01-01T00:00:00+00:00",  # pyright: ignore[reportArgumentType]
        )
        results: list[Any] = []
        for op, result in zip(ops, super().batch(ops), strict=True):
            kind = type(op).__name__
            results.append({"GetOp": item, "SearchOp": [item]}.get(kind, result))
        return results

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


def leaky() -> BaseStore:
    return LeakyStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})


def test_a_read_of_a_leaky_store_shows_nothing_and_says_why() -> None:
    guard = create_read_guard(
        "local", store=leaky(), namespace=ANA, admission=ANY, receipts=Journal.memory()
    )
    out = guard.invoke({"query": "Who keeps a secret?"})
    assert (out["memory_context"], out["read"].memories) == ("", ())
    (failure,) = out["read"].failures
    assert failure.code == "store-failed"
    assert "another namespace" in failure.message
    assert "ben" not in failure.message.casefold()


def test_a_write_into_a_leaky_store_is_no_oracle_of_other_tenants() -> None:
    """Otherwise "duplicate" tells Ana that Ben has this memory."""
    guard = create_write_guard(
        "local", store=leaky(), namespace=ANA, gates=[], receipts=Journal.memory()
    )
    said: Any = {"messages": [("user", BENS)], "candidates": [BENS]}
    with pytest.raises(StoreError, match="another namespace"):
        guard.invoke(said)


def test_a_gate_takes_no_evidence_and_an_audit_no_record_from_a_leaky_store() -> None:
    model = ScriptedChatModel(rules=[("", "0.9")])
    guard = create_write_guard(
        model,
        store=leaky(),
        namespace=ANA,
        gates=[ConsistencyGate(k=1, context="memory")],
        receipts=Journal.memory(),
        on_failure="report",
    )
    said: Any = {"messages": [("user", "x")], "candidates": [BENS]}
    writes = guard.invoke(said)["writes"]
    assert not model.calls
    assert {failure.code for failure in writes.failures} == {"store-failed"}
    with pytest.raises(StoreError, match="another namespace"):
        run_sync(audit(Journal.memory(), leaky(), namespace=ANA))
