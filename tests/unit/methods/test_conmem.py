"""ConMem as a graph, on every scripted path."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from memguard import ConMem, create_conmem_graph
from memguard.methods.conmem.config import CONMEM_PRESETS
from memguard.methods.conmem.log import CounterfactualLog, ReasonVerdict, TieBreakVerdict
from memguard.methods.conmem.rules import redecide, rescore, score_trials
from memguard.schema.receipt import Receipt
from memguard.testing.conmem import ConMemScript, validity

MEMORY = "The user is vegetarian."
HISTORY = "My colleague doesn't eat meat, and neither do I."
PAPER = CONMEM_PRESETS["paper"]
PRESETS = pytest.mark.parametrize("preset", ["paper", "default"])


def spec_of(**settings: Any) -> ConMem:
    return ConMem(**settings)


def run(script: ConMemScript, *, spec: ConMem = PAPER, **given: Any) -> dict[str, Any]:
    graph: Any = create_conmem_graph(script.model(), spec=spec)
    return graph.invoke({"candidate": MEMORY, "context": HISTORY, **given})


def log_of(result: dict[str, Any]) -> CounterfactualLog:
    return CounterfactualLog.model_validate(result["report"].evidence)


@PRESETS
def test_a_plain_case_costs_14_calls(preset: str) -> None:
    script = ConMemScript({"relevant": "helpful"})
    result = run(script, spec=CONMEM_PRESETS[preset])
    decision = result["decision"]
    assert (decision.outcome, decision.reason) == ("admit", "positive_effect")
    assert decision.explanation == "CMTE +0.33 (relevant +1.00, irrelevant +0.00, risk +0.00)"
    calls = {stage: usage.calls for stage, usage in log_of(result).calls.items()}
    assert calls == {"probe": 1, "validation": 1, "arms": 6, "quality": 3, "audit": 3}
    assert Counter(call.kind for call in script.calls) == {
        "probe": 1,
        "validation": 1,
        "control": 3,
        "treatment": 3,
        "quality": 3,
        "audit": 3,
    }
    assert result["receipt"].usage.calls == 14
    assert log_of(result).reason == ReasonVerdict(reason_type="directly_relevant")
    assert log_of(result).repairs.model_dump() == dict.fromkeys(
        log_of(result).repairs.model_dump(), 0
    )


def test_async_gives_what_sync_gives() -> None:
    outcomes: Any = {"relevant": "helpful", "risk": "unnecessary"}
    sync = log_of(run(ConMemScript(outcomes)))
    graph: Any = create_conmem_graph(ConMemScript(outcomes).model(), spec=PAPER)
    result = asyncio.run(graph.ainvoke({"candidate": MEMORY, "context": HISTORY}))
    assert log_of(result).trials == sync.trials
    assert log_of(result).score == sync.score


def test_a_rejected_candidate_gets_a_reason_in_one_more_call() -> None:
    script = ConMemScript({"risk": "risk"}, reason_type="attribution_confusion")
    result = run(script)
    decision = result["decision"]
    assert (decision.outcome, decision.reason) == ("reject", "negative_effect")
    assert decision.explanation.endswith("risk -1.50); attribution_confusion: why")
    assert log_of(result).calls["reason"].calls == 1
    assert result["receipt"].decision == decision
    assert result["receipt"].reports == (result["report"],)
    shown = next(call.prompt for call in script.calls if call.kind == "reason")
    assert "On a request where the memory should not carry over: it was used" in shown
    assert "1.5" not in shown


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("state_memory_use", "stale_memory_use"),
        ("identity_mis_inference", "identity_misinference"),
        ("Over-Inference", "over_inference"),
        ("directly_relevant", None),
        ("bad_vibes", None),
    ],
)
def test_the_reason_is_of_the_closed_list(said: str, read: str | None) -> None:
    result = run(ConMemScript({"risk": "risk"}, reason_type=said))
    assert result["decision"].outcome == "reject"
    reason = log_of(result).reason
    assert (reason.reason_type if isinstance(reason, ReasonVerdict) else None) == read


def test_no_reason_is_asked_for_where_it_is_switched_off() -> None:
    script = ConMemScript({"risk": "risk"})
    assert run(script, spec=spec_of(classify_reason=False))["decision"].outcome == "reject"
    assert script.count("reason") == 0


@PRESETS
@pytest.mark.parametrize(("store", "outcome"), [(True, "admit"), (False, "reject")])
def test_a_tie_is_broken_either_way(preset: str, store: bool, outcome: str) -> None:
    script = ConMemScript(store=store)
    result = run(script, spec=CONMEM_PRESETS[preset])
    assert (result["decision"].outcome, result["decision"].reason) == (outcome, "tie_break")
    assert script.count("tie_break") == 1
    assert log_of(result).tie_break == TieBreakVerdict(
        store=store, reason="the history bears it out"
    )


def test_helpful_and_risky_is_rejected_by_the_paper_and_looked_at_by_default() -> None:
    outcomes: Any = {"relevant": "helpful", "risk": "risk"}
    assert run(ConMemScript(outcomes))["decision"].reason == "negative_effect"
    assert run(ConMemScript(outcomes), spec=ConMem())["decision"].reason == "tie_break"


@pytest.mark.parametrize(("zero", "outcome"), [("admit", "admit"), ("reject", "reject")])
def test_ablation_zero_is_a_decision(zero: str, outcome: str) -> None:
    script = ConMemScript()
    decision = run(script, spec=spec_of(zero=zero))["decision"]
    assert (decision.outcome, decision.reason) == (outcome, "zero_effect")
    assert script.count("tie_break") == 0


def test_ablation_without_quality_judge() -> None:
    script = ConMemScript({"relevant": "no_better"})
    result = run(script, spec=spec_of(preset="paper", quality_judge=False))
    assert result["decision"].outcome == "admit"
    assert script.count("quality") == 0
    assert log_of(result).trials[0].quality is None
    assert result["receipt"].usage.calls == 11


def test_ablation_without_auditor() -> None:
    script = ConMemScript({"relevant": "risk", "risk": "helpful"})
    result = run(script, spec=spec_of(preset="paper", auditor=False))
    assert result["decision"].outcome == "admit"
    assert script.count("audit") == 0
    harmful = spec_of(preset="paper", auditor=False, harmful_as_risk=True)
    assert run(ConMemScript({"relevant": "risk"}), spec=harmful)["decision"].outcome == "reject"


def test_an_inconsistent_attribution_is_neutral_and_flagged() -> None:
    result = run(ConMemScript({"relevant": "inconsistent", "risk": "helpful"}))
    score = log_of(result).score
    assert score is not None
    assert score.probes[0].flags == ("attribution_inconsistent",)
    assert score.total == 0.5


LADDER: list[tuple[list[Any], dict[str, int], bool]] = [
    ([validity(risk=False)], {"regenerations": 1}, True),
    ([validity(risk=False, leaks=True)], {"regenerations": 1}, True),
    ([validity(risk=False)] * 2, {"regenerations": 2}, True),
    ([validity(risk=False)] * 3, {"regenerations": 2, "repairs": 1}, True),
    (
        [validity(relevant=False, risk=False)] * 3,
        {"regenerations": 2, "repairs": 2},
        True,
    ),
    (
        [validity(risk=False)] * 4,
        {"regenerations": 2, "repairs": 1, "reconstructions": 1},
        True,
    ),
    (
        [validity(risk=False)] * 5,
        {"regenerations": 2, "repairs": 1, "reconstructions": 1},
        False,
    ),
]


@PRESETS
@pytest.mark.parametrize("row", range(len(LADDER)))
def test_each_step_of_the_repair_ladder(row: int, preset: str) -> None:
    verdicts, counters, repaired = LADDER[row]
    script = ConMemScript({"relevant": "helpful"}, answers={"validation": verdicts})
    result = run(script, spec=CONMEM_PRESETS[preset])
    log = log_of(result)
    counted = log.repairs.model_dump()
    assert {name: counted[name] for name in counters} == counters
    assert script.count("regenerate") == counters["regenerations"]
    assert script.count("repair") == counters.get("repairs", 0)
    assert script.count("reconstruct") == counters.get("reconstructions", 0)
    assert script.count("validation") == len(log.rounds) == len(verdicts) + repaired
    assert log.trials[2].valid is repaired
    assert log.score is not None
    assert ("invalid_probe" in log.score.probes[2].flags) is not repaired
    assert result["decision"].outcome == ("admit" if repaired else "quarantine")
    repairs = [each for each in log.rounds if each.step != "reconstruct"]
    kept = {each.probes[1].query for each in repairs}
    assert kept == {"irrelevant request 1"}, "a valid probe is kept"
    if not repaired:
        assert log.score.probes[2].contribution is None
        assert log.score.n_valid == 2
        assert log.trials[2].validation == "the risk probe is no such thing"


def test_the_audit_is_fed_back_and_a_reconstruction_begins_afresh() -> None:
    script = ConMemScript(answers={"validation": [validity(risk=False)] * 4})
    run(script)
    for kind in ("regenerate", "repair"):
        shown = [call.prompt for call in script.calls if call.kind == kind]
        assert all('risk: not valid, "the risk probe is no such thing"' in each for each in shown)
        assert all('irrelevant: valid, "does what it should"' in each for each in shown)
    (fresh,) = [call.prompt for call in script.calls if call.kind == "reconstruct"]
    assert "no such thing" not in fresh
    assert fresh.count('- "risk request') == 4


def test_a_blank_request_is_repaired_like_an_invalid_one() -> None:
    blank = {"relevant": "relevant request 0", "irrelevant": "irrelevant request 0", "risk": " "}
    script = ConMemScript(answers={"probe": blank})
    log = log_of(run(script))
    assert log.repairs.regenerations == 1
    assert all(each.valid for each in log.trials)
    all_blank = dict.fromkeys(blank, "")
    log = log_of(run(ConMemScript(answers={"probe": all_blank})))
    assert log.repairs.regenerations == 1
    assert all(each.valid for each in log.trials)


def test_a_ladder_without_steps_leaves_the_probe_invalid() -> None:
    spec = spec_of(preset="paper", regenerations=0, repairs=0, reconstructions=0)
    script = ConMemScript(answers={"validation": validity(risk=False)})
    log = log_of(run(script, spec=spec))
    assert not log.trials[2].valid
    assert log.calls["probe"].calls == 1


def test_speculation_discards_the_work_on_an_invalid_probe_and_counts_it() -> None:
    answers: Any = {"validation": [validity(risk=False)] * 2}
    result = run(ConMemScript(answers=answers), spec=ConMem())
    log = log_of(result)
    assert (log.repairs.discarded_answers, log.repairs.discarded_verdicts) == (2, 2)
    assert log.calls["arms"].calls == 8, "speculation is for the first set only"
    assert "speculation: 4 answers and verdicts were discarded" in result["report"].notes
    patient = log_of(run(ConMemScript(answers=answers)))
    assert patient.calls["arms"].calls == 6
    assert patient.repairs.discarded_answers == 0


def test_the_receipt_recomputes_the_decision_and_replays() -> None:
    for preset in CONMEM_PRESETS.values():
        result = run(ConMemScript({"relevant": "helpful", "risk": "risk"}), spec=preset)
        log = log_of(result)
        spec = ConMem.model_validate(result["report"].spec)
        assert spec == preset
        assert score_trials(log.trials, spec=spec) == log.score
        assert rescore(log.trials, spec=PAPER).ruling == "negative"
        assert rescore(log.trials, spec=ConMem()).ruling == "tie"


def test_a_case_replays_from_its_receipt() -> None:
    """The stored answers, given back, lead to the same log, call for call."""
    first = run(ConMemScript({"relevant": "helpful", "risk": "unnecessary"}))
    log = log_of(first)
    answers: dict[str, Any] = {"probe": {each.role: each.query for each in log.trials}}
    for each in log.trials:
        answers[f"control:{each.role}"] = getattr(each.control, "text", "")
        answers[f"treatment:{each.role}"] = getattr(each.treatment, "text", "")
        verdict: Any = each.quality
        answers[f"quality:{each.role}"] = {"reason": verdict.reason, "winner": verdict.letter}
        assert each.attribution is not None
        answers[f"audit:{each.role}"] = each.attribution.model_dump()
    again = log_of(run(ConMemScript(answers=answers)))
    no_calls: dict[str, Any] = {"calls": {}}
    assert again.model_copy(update=no_calls) == log.model_copy(update=no_calls)


async def test_every_step_of_every_probe_is_an_event() -> None:
    graph: Any = create_conmem_graph(ConMemScript({"risk": "risk"}).model(), spec=PAPER)
    given = {"candidate": MEMORY, "context": HISTORY}
    events: list[dict[str, Any]] = [
        event
        async for _, event in graph.astream(given, stream_mode="custom", subgraphs=True)
        if isinstance(event, dict)
    ]
    assert {event["memguard"] for event in events} == {"conmem"}
    done = Counter((e["step"], e.get("role")) for e in events if e["state"] == "done")
    started = Counter((e["step"], e.get("role")) for e in events if e["state"] == "started")
    steps = ("control", "treatment", "judge", "auditor")
    whole = ("generate_probes", "validate_probes", "cmte", "decide", "reason")
    assert done == started
    assert done == Counter(
        [(step, role) for step in steps for role in ("relevant", "irrelevant", "risk")]
        + [(step, None) for step in whole]
    )
    assert len({event["case"] for event in events}) == 1


def test_a_thread_with_a_checkpointer_starts_each_case_afresh() -> None:
    from typing import TypedDict

    class Host(TypedDict, total=False):
        candidate: str
        context: str
        receipt: Receipt

    script = ConMemScript({"relevant": "helpful"})
    builder = StateGraph(Host)
    builder.add_node("check", create_conmem_graph(script.model()))
    builder.add_edge(START, "check")
    host = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for memory in (MEMORY, "The user rows."):
        out = host.invoke({"candidate": memory, "context": HISTORY}, config)
        assert out["receipt"].usage.calls == 14
    alone = create_conmem_graph(script.model())
    alone.checkpointer = InMemorySaver()
    for memory in (MEMORY, "", "The user rows."):
        receipt = alone.invoke({"candidate": memory, "context": HISTORY}, config)["receipt"]
        assert receipt.usage.calls == (14 if memory else 0)
        assert receipt.candidate.text == memory


GOLDEN = {
    "v1": [
        ("negative_effect", "negative_effect"),
        ("tie_break", "negative_effect"),
        # The judge of the risk probe failed, but the auditor saw no use of the memory.
        ("positive_effect", "positive_effect"),
    ],
    "v2": [
        # Helpful where it is rarely needed, after a verdict that was cut off at first.
        ("tie_break", "positive_effect"),
        # Every repair failed; an arm failed; no valid request.
        ("inconclusive", "inconclusive"),
        ("negative_effect", "negative_effect"),
        ("inconclusive", "inconclusive"),
    ],
}
"""Reasons of the stored receipts under their own settings, and under those of `paper`."""


@pytest.mark.parametrize("layout", sorted(GOLDEN))
def test_golden_receipts_load_and_decide_for_ever(layout: str) -> None:
    file = Path(__file__).parents[2] / "golden" / "receipts" / f"conmem-{layout}.jsonl"
    found: list[tuple[str, str | None]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        receipt = Receipt.model_validate_json(line)
        (report,) = receipt.reports
        log = CounterfactualLog.model_validate(report.evidence)
        score, decision = redecide(log, spec=ConMem.model_validate(report.spec))
        assert log.score is not None
        assert decision is not None
        assert (score.total, score.ruling) == (log.score.total, log.score.ruling)
        assert layout == "v1" or score == log.score
        assert (decision.outcome, decision.reason) == (
            receipt.decision.outcome,
            receipt.decision.reason,
        )
        _, by_paper = redecide(log, spec=PAPER)
        found.append((decision.reason, by_paper and by_paper.reason))
    assert found == GOLDEN[layout]
