"""Public cases about reading, from store to prompt; each test names its case."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memguard import PermissionSemantic, Recall, create_read_guard
from memguard.schema.memory import MemoryRecord, Provenance
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from tests.cases import case_input
from tests.unit.read.read_scripts import UNIT, reader, units_in

NAMESPACE = ("memories", "user")
NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)
CURRY, NONE, SITUATION = "direct", "none", {"target": "user", "mode": "planning"}


def filled(memories: list[dict[str, Any]], *, near: dict[str, str] | None = None) -> InMemoryStore:
    """A store of the case's memories; `near` words are embedded with a text, to rank it."""
    index: Any = {
        "dims": 96,
        "embed": HashEmbeddings(dims=96),
        "fields": ["ranked"] if near else ["content"],
    }
    store = InMemoryStore(index=index)
    for memory in memories:
        said = memory.get("observed_at")
        at = datetime.fromisoformat(said) if said else None
        provenance = Provenance(candidate_id=memory["id"], receipt_id="r", said_at=at)
        record = MemoryRecord(
            namespace=NAMESPACE, key=memory["id"], text=memory["text"], provenance=provenance
        )
        value = {**record.to_value(), "ranked": (near or {}).get(memory["id"], "")}
        store.batch([PutOp(NAMESPACE, memory["id"], value)])
    return store


def guard_of(model: Any, store: Any, **settings: Any) -> Any:
    given: dict[str, Any] = {"namespace": NAMESPACE, "clock": lambda: NOW, **settings}
    return create_read_guard(model, store=store, **given)


def down(prompt: str) -> Exception:
    return RuntimeError(f"no answer to {len(prompt)} characters")


class TestL01:
    """A safety constraint is neither outranked nor cut; if it cannot be checked, that is said."""

    @pytest.fixture
    def case(self) -> dict[str, Any]:
        return case_input("L-01")

    def store(self, case: dict[str, Any]) -> InMemoryStore:
        # The allergy is the farthest from the query and next to what safety is looked for by.
        words = case["query"].split()
        near = {
            memory["id"]: " ".join(words[: max(1, round(len(words) * memory["similarity"]))])
            for memory in case["memories"]
        }
        near["m1"] = "allergy, intolerance,"
        return filled(case["memories"], near=near)

    def model(self, case: dict[str, Any], **settings: Any) -> ScriptedChatModel:
        kinds = ["safety", "preference", "experience", "fact", "experience", "preference", "fact"]
        far = {"m1", "m6", "m7"}
        rows = {
            memory["text"]: {
                "kind": kind,
                "relevance": "indirect" if memory["id"] in far else "direct",
            }
            for memory, kind in zip(case["memories"], kinds, strict=True)
        }
        return reader(rows, situation=SITUATION, **settings)

    async def test_it_is_shown_as_a_constraint_although_it_is_oldest_and_farthest(
        self, case: dict[str, Any]
    ) -> None:
        config = case["config"]
        spec = PermissionSemantic(k=config["max_memories"], max_tokens=config["token_budget"])
        out = await guard_of(self.model(case), self.store(case), admission=spec).ainvoke(
            {"query": case["query"]}
        )
        allergy = case["memories"][0]["text"]
        first = out["admitted"][0]
        assert (first.unit.text, first.permission) == (allergy, "APPLY_CONSTRAINT")
        section = out["memory_context"].splitlines()
        heading = section.index("## Constraints: the answer keeps to these")
        assert allergy in section[heading + 1]
        # What does not fit is named, and is never the constraint.
        cut = {verdict.unit.text for verdict in out["withheld"]}
        assert allergy not in cut
        assert {verdict.withheld for verdict in out["withheld"]} <= {"max_tokens", "max_units"}
        assert cut

    async def test_the_first_to_be_cut_are_the_farthest(self, case: dict[str, Any]) -> None:
        spec = PermissionSemantic(k=7, max_units=4, max_tokens=None)
        out = await guard_of(self.model(case), self.store(case), admission=spec).ainvoke(
            {"query": case["query"]}
        )
        texts = {memory["id"]: memory["text"] for memory in case["memories"]}
        cut = {verdict.unit.text for verdict in out["withheld"]}
        assert {texts["m6"], texts["m7"]} < cut
        assert texts["m1"] not in cut

    async def test_when_nobody_could_judge_it_stays_and_that_is_said(
        self, case: dict[str, Any]
    ) -> None:
        model = self.model(case, judge=down)
        out = await guard_of(model, self.store(case)).ainvoke({"query": case["query"]})
        assert case["memories"][0]["text"] in out["memory_context"]
        assert out["read"].degraded
        assert "adjudication_failed" in out["read"].flags

    async def test_it_is_not_shown_where_it_has_no_bearing(self, case: dict[str, Any]) -> None:
        rows = {memory["text"]: {"relevance": "none"} for memory in case["memories"]}
        rows[case["memories"][0]["text"]] = {"kind": "safety", "relevance": "none"}
        model = reader(rows, situation={"target": "world", "mode": "factual"})
        out = await guard_of(model, self.store(case)).ainvoke({"query": "Convert 3 feet to metres"})
        assert out["memory_context"] == ""

    async def test_the_same_with_no_model_at_all(self, case: dict[str, Any]) -> None:
        guard = guard_of(None, filled(case["memories"]))
        out = await guard.ainvoke({"query": case["query"]})
        shown = {verdict.unit.text: verdict.permission for verdict in out["admitted"]}
        assert shown[case["memories"][0]["text"]] == "APPLY_CONSTRAINT"
        control = await guard.ainvoke({"query": "Convert 3 feet to metres"})
        # Rules cannot exclude that it matters; nothing else enters.
        shown = {verdict.unit.text: verdict.permission for verdict in control["admitted"]}
        assert shown == {case["memories"][0]["text"]: "CONTEXT"}


class TestL02:
    """Nothing personal enters a question that has nothing to do with it."""

    @pytest.mark.parametrize("local", [False, True], ids=["scripted", "local"])
    async def test_nothing_is_added(self, local: bool) -> None:
        case = case_input("L-02")
        rows = {memory["text"]: {"relevance": "none"} for memory in case["memories"]}
        rows[case["memories"][3]["text"]] = {"kind": "preference", "relevance": "none"}
        model = None if local else reader(rows, situation={"target": "world", "mode": "factual"})
        guard = guard_of(model, filled(case["memories"]))
        for query in (case["query"], *case["more_queries"]):
            out = await guard.ainvoke({"query": query})
            # Byte for byte nothing: no empty heading, no note.
            assert out["memory_context"] == "", query
            assert len(out["withheld"]) == 4
            assert out["read"].usage.calls <= 2
        greeting = await guard.ainvoke({"query": "hello"})
        assert greeting["read"].usage.calls <= 1


class TestL03:
    """A belief of the user is never shown as a fact."""

    @pytest.mark.parametrize("local", [False, True], ids=["scripted", "local"])
    @pytest.mark.parametrize("rendering", ["channels", "permission_notes", "neutral"])
    async def test_a_belief_does_not_answer_a_factual_question(
        self, local: bool, rendering: Any
    ) -> None:
        case = case_input("L-03")
        belief, project, authority = (memory["text"] for memory in case["memories"])
        rows = {
            belief: {"kind": "belief"},
            project: {"kind": "fact"},
            authority: {"kind": "claim", "relevance": "indirect"},
        }
        model = None if local else reader(rows, situation={"target": "world", "mode": "factual"})
        spec = PermissionSemantic(rendering=rendering)
        out = await guard_of(model, filled(case["memories"]), admission=spec).ainvoke(
            {"query": case["query"]}
        )
        text = out["memory_context"]
        assert project in text
        assert "knuckles causes arthritis" not in text
        for word in ("authoritative", "ground truth", "verified"):
            assert word not in text.casefold()


class TestB01:
    """A relative date is shown with the day on which it was said, in the speaker's own offset."""

    @pytest.mark.parametrize("said", ["2025-12-30T22:40:00-05:00", "2025-12-31T22:40:00-05:00"])
    async def test_the_line_shows_when_it_was_said(self, said: str) -> None:
        case = case_input("B-01")
        text = next(
            one["text"] for one in case["candidates"] if one["want"].startswith("store only")
        )
        store = filled([{"id": "m1", "text": text, "observed_at": said}])
        read_at = datetime.fromisoformat(case["read_time"])
        model = reader()
        guard = guard_of(model, store, clock=lambda: read_at, recall=Recall(safety_k=0))
        out = await guard.ainvoke({"query": case["query"]})
        (line,) = [each for each in out["memory_context"].splitlines() if text in each]
        assert line.startswith(f"- (said {said[:10]}) ")
        # The adjudicator is told both times, and so can see that next month has passed.
        prompt = str(model.calls[-1].messages[-1].content)
        assert said[:10] in prompt
        assert "2026-03-15" in prompt

    async def test_the_local_adjudicator_does_not_hold_it_upcoming(self) -> None:
        case = case_input("B-01")
        text = next(
            one["text"] for one in case["candidates"] if one["want"].startswith("store only")
        )
        store = filled([{"id": "m1", "text": text, "observed_at": case["conversation_time"]}])
        read_at = datetime.fromisoformat(case["read_time"])
        out = await guard_of(None, store, clock=lambda: read_at).ainvoke({"query": case["query"]})
        (verdict,) = out["read"].ledger.verdicts
        assert verdict.attributes is not None
        assert getattr(verdict.attributes, "temporality", "") == "uncertain"


class TestF04:
    """Defects of a batched answer are handled per unit: nothing is admitted by default."""

    async def test_one_bad_row_spoils_no_other(self) -> None:
        case = case_input("F-04")
        texts = {memory["id"]: memory["text"] for memory in case["memories"]}
        names = {text: memory_id for memory_id, text in texts.items()}

        def judge(prompt: str) -> dict[str, Any]:
            # The case's names are of memories, the prompt's of units: the defects stay.
            unit_of = {names[text]: name for name, text in units_in(prompt)}
            rows: list[dict[str, Any]] = []
            for entry in case["scripted_attributes"]["units"]:
                said = entry["unit_id"]
                name = unit_of.get(said, "u99") if isinstance(said, str) else said * 10
                row = {"unit": name, "reason": "scripted", **UNIT, "comment": "extra key"}
                row["subject"] = entry["subject"]
                row["relevance"] = entry["relevance"]
                if "sensitivity" not in entry:
                    del row["epistemic"]
                rows.append(row)
            return {
                "situation": {"target": "user", "mode": "recommendation", "asks_view": False},
                "units": rows if len(unit_of) == 5 else [],
            }

        model = reader(judge=judge)
        # The pieces of the memories are kept from an earlier read, as in use.
        guard = guard_of(model, filled(case["memories"]))
        await guard.ainvoke({"query": "Where can I have lunch?"})
        before = len(model.calls)
        out = await guard.ainvoke({"query": case["query"]})
        shown = {names[verdict.unit.text] for verdict in out["admitted"]}
        assert "m1" in shown
        assert not {"m2", "m3", "m4", "m5"} & shown
        assert len(model.calls) - before <= 2
        assert any("u99" in note for note in out["read"].notes)
        assert "adjudication_partial" in out["read"].flags
