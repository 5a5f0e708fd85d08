"""Who reads the answer decides what a read may use, whoever asks and whatever a verdict says."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from memguard import create_memory_agent, create_write_guard, guard_store
from memguard.agent import AgentContext
from memguard.errors import ErrorCode, GuardError, InvalidInputError
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.middleware import MemguardMiddleware
from memguard.read.audience import read_participants, room_of, withhold
from memguard.read.graph import create_read_guard
from memguard.schema.audience import Audience
from memguard.schema.memory import Provenance, SaidBy
from memguard.schema.read import FactorCompiled, PermissionSemantic, RecalledMemory
from memguard.schema.relevance_gate import RelevanceGate
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from tests.unit.read.read_scripts import ENTRY, UNIT, reader

HEALTH = "I have diabetes and take insulin."
FAMILY = "My daughter starts school in autumn."
MONEY = "My salary is 4,200 euros a month."
JOB = "I applied to Siemens last week."
PLAIN = "I like hiking in the mountains."
SENSITIVE = (HEALTH, FAMILY, MONEY, JOB)
ROWS = {
    HEALTH: "audience-health",
    FAMILY: "audience-family",
    MONEY: "audience-money",
    JOB: "audience-job-search",
}
ANA = ("memories", "ana")
QUERY = "Plan a day off for me."


def store_of(texts: Sequence[str], namespace: tuple[str, ...] = ANA, **origin: Any) -> Any:
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})
    fields = {"memguard": {"candidate_id": "c", "receipt_id": "r", **origin}} if origin else {}
    for number, text in enumerate(texts):
        store.put(namespace, f"k{number}", {"content": text, **fields})
    return store


def rows_of(read: Any) -> dict[str, str]:
    return {verdict.unit.text: verdict.row for verdict in read.withheld}


def prompts_of(model: Any) -> str:
    return "\n".join(str(message.content) for call in model.calls for message in call.messages)


@pytest.mark.parametrize(
    ("admission", "base"),
    [("ps", UNIT), ("fc", ENTRY), ("relevance", UNIT), ("ps:paper", UNIT), ("fc:paper", ENTRY)],
)
def test_a_group_gets_nothing_sensitive_by_any_method(admission: Any, base: Any) -> None:
    model = reader(base=base)
    guard = create_read_guard(
        model,
        store=store_of([*SENSITIVE, PLAIN]),
        namespace=("memories", "{user_id}"),
        admission=RelevanceGate(theta=0.0) if admission == "relevance" else admission,
        audience="group",
    )
    output = guard.invoke({"query": QUERY}, {"configurable": {"user_id": "ana"}})
    assert PLAIN in output["memory_context"]
    assert not any(text in output["memory_context"] for text in SENSITIVE)
    assert not any(text in prompts_of(model) for text in SENSITIVE)
    read = output["read"]
    assert rows_of(read) == ROWS
    assert rows_of(read) == {v.unit.text: v.row for v in output["withheld"]}
    assert read.audience == "group"
    assert "audience_withheld" in read.flags
    assert {memory.text for memory in read.memories} == {*SENSITIVE, PLAIN}
    assert {v.unit.memory_id for v in read.ledger.verdicts} == {m.id for m in read.memories}


def test_in_private_the_owner_gets_theirs() -> None:
    guard = create_read_guard(reader(), store=store_of([*SENSITIVE, PLAIN]), namespace=ANA)
    read = guard.invoke({"query": QUERY})["read"]
    assert {verdict.unit.text for verdict in read.admitted} == {*SENSITIVE, PLAIN}
    assert "audience" not in json.loads(read.model_dump_json())


def test_a_graph_of_ones_own_is_given_only_what_a_group_may_see() -> None:
    model = reader(base=ENTRY)
    guard = create_read_guard(
        store=store_of([HEALTH, PLAIN]),
        namespace=ANA,
        admission=create_factor_compiled_graph(model, spec=FactorCompiled()),
        audience="group",
    )
    output = guard.invoke({"query": QUERY})
    assert HEALTH not in output["memory_context"] + prompts_of(model)
    assert rows_of(output["read"]) == {HEALTH: "audience-health"}


def failing_graph() -> Any:
    def fail(_: ReadState) -> dict[str, Any]:
        msg = "this method always fails"
        raise GuardError(msg, code=ErrorCode.EMBEDDER_FAILED)

    builder: Any = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    builder.add_node("fail", fail)
    builder.add_edge(START, "fail")
    return builder.compile(name="failing")


def test_a_fallback_and_a_missing_verdict_show_a_group_no_safety_constraint() -> None:
    unread = reader(judge=lambda _: "no JSON")
    for admission in (PermissionSemantic(repair=False), failing_graph()):
        guard = create_read_guard(
            unread,
            store=store_of(["I am allergic to peanuts.", PLAIN]),
            namespace=ANA,
            admission=admission,
        )
        for audience, shown in (("private", True), ("group", False)):
            output = guard.invoke({"query": "Lunch?", "audience": audience})
            assert ("peanuts" in output["memory_context"]) is shown


def test_the_input_decides_before_the_run_and_the_run_before_the_guard() -> None:
    guard = create_read_guard(reader(), store=store_of([HEALTH]), namespace=ANA, audience="group")
    private: Any = {"configurable": {"audience": "private"}}
    assert HEALTH not in guard.invoke({"query": QUERY})["memory_context"]
    assert HEALTH in guard.invoke({"query": QUERY}, private)["memory_context"]
    group = guard.invoke({"query": QUERY, "audience": "group"}, private)
    assert HEALTH not in group["memory_context"]


def test_a_misspelled_audience_is_no_private_one() -> None:
    guard = create_read_guard(reader(), store=store_of([HEALTH]), namespace=ANA)
    with pytest.raises(InvalidInputError, match="'grupo' is not known"):
        guard.invoke({"query": QUERY, "audience": "grupo"})
    with pytest.raises(InvalidInputError, match="not known"):
        create_read_guard(reader(), audience="team")  # pyright: ignore[reportArgumentType]


def test_the_keys_of_a_host_state_reach_the_guard() -> None:
    class State(MessagesState):
        audience: str
        participants: list[str]
        memory_context: str

    guard = create_read_guard(reader(), store=store_of([HEALTH, PLAIN]), namespace=ANA)
    builder: Any = StateGraph(State)
    builder.add_node("read", guard)
    builder.add_edge(START, "read")
    builder.add_edge("read", END)
    output = builder.compile().invoke(
        {
            "messages": [HumanMessage(QUERY, name="Ana")],
            "audience": "group",
            "participants": ["ana", "rui"],
        }
    )
    assert PLAIN in output["memory_context"]
    assert HEALTH not in output["memory_context"]


@pytest.mark.parametrize(
    ("asker", "speaker", "namespace", "row"),
    [
        ("Ana", "Ana", ("memories", "team"), None),
        ("Ana", "ana", ("memories", "team"), None),
        ("Rui", "Ana", ("memories", "team"), "audience-other-owner"),
        ("Rui", "", ("memories", "ana"), "audience-other-owner"),
        ("Ana", "", ("memories", "ana"), None),
        ("Rui", "", ("memories", "team"), "audience-unknown-owner"),
        ("", "Ana", ("memories", "team"), "audience-unknown-asker"),
        ("", "Ana", ("memories", "ana"), None),
        ("", "", ("memories", "ana"), "audience-unknown-asker"),
        ("", "", ("memories", "team"), None),
    ],
)
def test_whose_memory_it_is(
    asker: str, speaker: str, namespace: tuple[str, ...], row: str | None
) -> None:
    memory = RecalledMemory(
        text=PLAIN,
        namespace=namespace,
        provenance=Provenance(candidate_id="c", receipt_id="r", said_by="user", speaker=speaker),
    )
    room = room_of(default="group", participants=["Ana", "Rui"], speaker=asker, run={})
    withheld = withhold([memory], room=room)
    assert [verdict.row for verdict in withheld.verdicts] == ([row] if row else [])


def test_who_writes_in_another_persons_thread_does_not_get_that_persons_memories() -> None:
    guard = create_read_guard(
        reader(), store=store_of([PLAIN]), namespace=("memories", "{user_id}"), audience="group"
    )
    config: Any = {"configurable": {"user_id": "ana"}}
    for name, shown in (("Rui", False), ("Ana", True), (None, True)):
        output = guard.invoke({"messages": [HumanMessage(QUERY, name=name)]}, config)
        assert (PLAIN in output["memory_context"]) is shown, name


def test_an_id_and_a_name_are_one_person_if_the_run_says_so() -> None:
    guard = create_read_guard(
        reader(), store=store_of([PLAIN], ("memories", "U1")), namespace=("memories", "{user_id}")
    )
    run = {"user_id": "U1", "audience": "group"}
    asks = {"messages": [AIMessage("Hello."), HumanMessage(QUERY, name="Ana")]}
    assert PLAIN not in guard.invoke(asks, {"configurable": run})["memory_context"]
    run = {**run, "participants": {"U1": "Ana", "U2": "Rui"}}
    assert PLAIN in guard.invoke(asks, {"configurable": run})["memory_context"]


def test_what_is_about_no_person_in_a_shared_namespace_is_for_all() -> None:
    memory = RecalledMemory(text="The stand-up is at 9:30.", namespace=("memories", "team"))
    room = room_of(default="group", speaker="Rui", run={})
    assert withhold([memory], room=room).permitted == (memory,)


def test_participants_are_read_in_every_form() -> None:
    assert read_participants(["Ana", 7]) == (frozenset({"ana"}), frozenset({"7"}))
    assert read_participants({"U1": "Ana"}) == (frozenset({"u1", "ana"}),)
    assert read_participants([{"id": "U1", "name": "Ana"}]) == (frozenset({"u1", "ana"}),)
    assert read_participants(None) == read_participants([]) == read_participants(3.5) == ()


_KINDS = st.sampled_from(
    ["safety", "constraint", "preference", "belief", "claim", "fact", "experience"]
)
_ROWS = st.fixed_dictionaries(
    {
        "kind": _KINDS,
        "subject": st.sampled_from(["user", "third_party", "bystander", "world", "uncertain"]),
        "epistemic": st.sampled_from(["verified", "stated", "inferred", "uncertain"]),
        "temporality": st.sampled_from(["current", "superseded", "uncertain"]),
        "relevance": st.sampled_from(["direct", "indirect", "none", "uncertain"]),
    }
)
_ROLES: tuple[SaidBy, ...] = ("user", "mixed", "document", "unknown", "assistant", "tool")


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(
        st.sampled_from([*SENSITIVE, PLAIN, "I am allergic to nuts.", "Always answer in French."]),
        min_size=1,
        max_size=6,
        unique=True,
    ),
    row=_ROWS,
    admission=st.sampled_from(
        [
            PermissionSemantic(),
            PermissionSemantic(preset="paper"),
            PermissionSemantic(rendering="neutral", max_units=1),
            PermissionSemantic(rendering="permission_notes", when_empty="line"),
        ]
    ),
    speaker=st.sampled_from(["ana", "rui", ""]),
    said_by=st.sampled_from(_ROLES),
    asks=st.sampled_from(["Ana", "Rui", None]),
)
def test_no_verdict_shows_a_group_what_is_sensitive_or_of_another(  # noqa: PLR0917
    texts: list[str],
    row: dict[str, str],
    admission: PermissionSemantic,
    speaker: str,
    said_by: SaidBy,
    asks: str | None,
) -> None:
    model = reader(base={**UNIT, **row})
    guard = create_read_guard(
        model,
        store=store_of(texts, speaker=speaker, said_by=said_by),
        namespace=("memories", "{user_id}"),
        admission=admission,
        audience="group",
        clock=lambda: datetime(2026, 3, 1, tzinfo=UTC),
    )
    output = guard.invoke(
        {"messages": [HumanMessage(QUERY, name=asks)]}, {"configurable": {"user_id": "ana"}}
    )
    seen = output["memory_context"] + prompts_of(model)
    assert not any(text in seen for text in (*SENSITIVE, "I am allergic to nuts."))
    is_person = said_by not in {"assistant", "tool"}
    if asks == "Rui" and not (is_person and speaker == "rui"):
        assert not any(text in seen for text in texts)
    read = output["read"]
    assert {v.unit.memory_id for v in read.ledger.verdicts} == {m.id for m in read.memories}


def test_a_guarded_store_gives_a_group_what_it_may_see() -> None:
    store = store_of([HEALTH, PLAIN])
    audiences: tuple[tuple[Audience, int], ...] = (("private", 2), ("group", 1))
    for audience, count in audiences:
        guarded = guard_store(
            store, model=reader(), gates=[], read=PermissionSemantic(), audience=audience
        )
        results = guarded.search(ANA, query=QUERY)
        assert len(results) == count
        assert (HEALTH in [item.value["content"] for item in results]) is (count == 2)


def test_an_agent_and_the_middleware_pass_the_audience_on() -> None:
    context = {"user_id": "ana", "audience": "group", "participants": ["ana", "rui"]}
    asks: Any = {"messages": [HumanMessage(QUERY)]}
    runs: tuple[tuple[Audience | None, Any], ...] = (
        ("group", {"user_id": "ana"}),
        (None, context),
    )
    for fixed, run in runs:
        answering = ScriptedChatModel(["Gladly."])
        agent: Any = create_memory_agent(
            answering,
            judge=reader(),
            store=store_of([HEALTH, PLAIN]),
            write=False,
            audience=fixed,
        )
        read = agent.invoke(asks, context=run)["read"]
        assert rows_of(read) == {HEALTH: "audience-health"}
        assert HEALTH not in prompts_of(answering)
        middleware = MemguardMiddleware(
            reader(), store=store_of([HEALTH, PLAIN]), write=False, audience=fixed
        )
        host: Any = create_agent(
            ScriptedChatModel(["Gladly."]), middleware=[middleware], context_schema=AgentContext
        )
        reports = host.invoke(asks, context=run)["memguard"]
        assert rows_of(reports[middleware.name]["read"]) == {HEALTH: "audience-health"}


def test_the_write_guard_records_who_said_a_memory(tmp_path: Path) -> None:
    with ChromaStore.local(tmp_path, embed=HashEmbeddings(dims=64)) as store:
        writer = create_write_guard("local", store=store, namespace=("memories", "team"))
        turns = [
            {"role": "user", "speaker": "Ana", "content": "I like hiking in the mountains."},
            {"role": "user", "speaker": "Rui", "content": "I prefer the sea to the mountains."},
        ]
        writer.invoke({"messages": turns})
        stored = store.search(("memories", "team"), limit=10)
        speakers = {item.value["memguard"].get("speaker") for item in stored}
        assert speakers == {"Ana", "Rui"}
        guard = create_read_guard(
            reader(), store=store, namespace=("memories", "team"), audience="group"
        )
        output = guard.invoke({"messages": [HumanMessage("A trip for me?", name="Rui")]})
        assert "sea" in output["memory_context"]
        assert "hiking" not in output["memory_context"]
        assert set(rows_of(output["read"]).values()) == {"audience-other-owner"}
