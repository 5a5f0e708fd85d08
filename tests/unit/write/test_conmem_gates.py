"""ConMem beside ConsistencyGate in the write guard: order, cascade, batches, resuming."""

from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import Budget, ConMem, ConsistencyGate, create_write_guard, resolve_model
from memguard.errors import ConfigurationError, ErrorCode
from memguard.journal.journal import Journal
from memguard.testing import ScriptedChatModel
from memguard.testing.conmem import ConMemScript
from memguard.write.gates import cascade_notes
from memguard.write.report import WriteReport
from tests.unit.write.scripts import JUDGES, memory_in

PLACE = ("memories", "ana")
FACTS = [f"The user owns {n} boats." for n in range(4)]
UNSUPPORTED = FACTS[0]
HARMFUL = FACTS[1]
TALK = [("user", "I own boats, 1 or 2 or 3.")]


class Gates:
    """Scores one fact low, and lets ConMem find another one harmful."""

    def __init__(self, **answers: Any) -> None:
        self.good = ConMemScript({"relevant": "helpful"}, answers=answers)
        self.bad = ConMemScript({"risk": "risk"})

    def model(self, **settings: Any) -> ScriptedChatModel:
        return ScriptedChatModel(rules=[(JUDGES, self._judge), ("", self._conmem)], **settings)

    @staticmethod
    def _judge(messages: Any) -> str:
        return "0.1" if memory_in(str(messages[-1].content)) == UNSUPPORTED else "0.9"

    def _conmem(self, messages: Any) -> Any:
        text = "\n".join(str(message.content) for message in messages)
        return (self.bad if "owns 1 boats" in text else self.good)(messages)


def write(model: Any, *, gates: Any, store: Any = None, **settings: Any) -> WriteReport:
    guard = create_write_guard(
        model, store=store or InMemoryStore(), namespace=PLACE, gates=gates, **settings
    )
    return guard.invoke({"messages": TALK, "candidates": FACTS})["writes"]


def outcomes(report: WriteReport) -> Mapping[str, str]:
    return {receipt.candidate.text: receipt.outcome for receipt in report.receipts}


SUPPORT = ConsistencyGate(k=1)
EFFECT = ConMem(preset="paper")
ORDERS: dict[str, Any] = {
    "cheap first": [SUPPORT, EFFECT],
    "cheap last": [EFFECT, SUPPORT],
    "by name": ["consistency", "conmem"],
}


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_gates_in_any_order_rule_alike_and_stop_at_the_first_that_does_not_admit(
    order: str,
) -> None:
    gates = Gates()
    report = write(gates.model(), gates=ORDERS[order])
    assert outcomes(report)[UNSUPPORTED] == "rejected"
    assert outcomes(report)[FACTS[2]] == outcomes(report)[FACTS[3]] == "stored"
    first = "consistency_gate" if order != "cheap last" else "conmem"
    assert {receipt.reports[0].method for receipt in report.receipts} == {first}
    by_text = {receipt.candidate.text: receipt for receipt in report.receipts}
    stopped = by_text[UNSUPPORTED]
    assert len(stopped.reports) == (1 if order != "cheap last" else 2)


def test_what_the_cascade_saved_is_said() -> None:
    cheap_first = write(Gates().model(), gates=[SUPPORT, EFFECT])
    note = "cascade: 1 of 4 candidates ended before conmem; at least 14 model calls saved"
    assert note in cheap_first.notes
    whole = write(Gates().model(), gates=[EFFECT, SUPPORT])
    assert cheap_first.usage.calls <= whole.usage.calls - 14 + 1
    assert not any("before conmem" in each for each in whole.notes)
    assert outcomes(whole)[HARMFUL] == "rejected"
    assert any("1 of 4 candidates ended before consistency_gate" in each for each in whole.notes)


def test_without_a_saving_nothing_is_said() -> None:
    report = write(Gates().model(), gates=[EFFECT])
    assert cascade_notes(report.receipts, gates=()) == ()
    assert not any(note.startswith("cascade") for note in report.notes)


def test_the_models_of_the_stages_are_named_in_one_place() -> None:
    arms, other = Gates(), Gates()
    report = write(
        other.model(model_name="other"),
        gates=[EFFECT],
        models={"arms": arms.model(model_name="arms")},
    )
    named = [receipt.reports[0].models for receipt in report.receipts]
    assert {each["arms"] for each in named} == {"scripted:arms"}
    assert {each["quality"] for each in named} == {"scripted:other"}
    with pytest.raises(ConfigurationError) as caught:
        write(other.model(), gates=[EFFECT], models={"armss": arms.model()})
    assert caught.value.code == ErrorCode.SPEC_INVALID


def test_the_local_model_cannot_do_conmem() -> None:
    with pytest.raises(ConfigurationError, match="'local' is not one") as caught:
        write("local", gates=[SUPPORT, EFFECT])
    assert caught.value.code == ErrorCode.MODEL_MISSING


def test_a_failed_case_stops_nobody() -> None:
    gates = Gates(probe=[RuntimeError("HTTP 500")])
    model = resolve_model(gates.model(), max_attempts=1)
    report = write(model, gates=[EFFECT])
    held = [text for text, outcome in outcomes(report).items() if outcome == "quarantined"]
    assert len(held) == 1
    assert len(report.receipts) == len(FACTS)
    assert report.failures == ()


def test_a_batch_goes_on_where_the_budget_ended_it() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    gates = Gates()
    first = write(
        gates.model(),
        gates=[EFFECT],
        store=store,
        receipts=journal,
        budget=Budget(calls=40),
        on_failure="report",
    )
    assert first.unjudged
    assert first.usage.calls <= 40
    asked = len(gates.good.calls) + len(gates.bad.calls)
    second = write(gates.model(), gates=[EFFECT], store=store, receipts=journal)
    decided = [*first.receipts, *second.receipts]
    assert sorted(r.candidate.text for r in decided) == sorted(FACTS)
    assert second.resumed == len(first.receipts)
    third = write(gates.model(), gates=[EFFECT], store=store, receipts=journal)
    assert third.usage.calls == 0
    assert asked < len(gates.good.calls) + len(gates.bad.calls)


def test_other_weights_are_another_policy_and_judge_anew() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    write(Gates().model(), gates=[EFFECT], store=store, receipts=journal)
    spec: Any = {"preset": "paper", "weights": {"risk_risk": 2.0}}
    again = write(
        Gates().model(), gates=[ConMem.model_validate(spec)], store=store, receipts=journal
    )
    assert again.resumed == 0


async def test_many_cases_share_one_limit() -> None:
    gates = Gates()
    chat = gates.model(latency=0.001)
    model = resolve_model(chat, concurrency=6)
    guard = create_write_guard(model, store=InMemoryStore(), namespace=PLACE, gates=[EFFECT])
    candidates = [f"The user owns {n} boats." for n in range(100, 116)]
    report = (await guard.ainvoke({"messages": TALK, "candidates": candidates}))["writes"]
    assert report.counts["stored"] == 16
    assert chat.high_water == 6
    assert report.usage.calls == 16 * 14
