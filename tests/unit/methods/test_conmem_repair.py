"""ConMem's repairs: fresh sets, requests at fault by rule, cut-off answers, rare requests."""

from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from memguard import ConMem, create_conmem_graph, resolve_model
from memguard.methods.conmem.config import CONMEM_PRESETS, ROLES, Frequency
from memguard.methods.conmem.ladder import probe_states
from memguard.methods.conmem.log import CounterfactualLog, Probe, ProbeAudit, ProbeRound, Response
from memguard.methods.conmem.models import PROMPTS
from memguard.methods.conmem.screening import names_candidate
from memguard.prompts import load_prompt
from memguard.schema.decision import Inconclusive
from memguard.testing.conmem import ConMemScript, validity

MEMORY = "The user is vegetarian."
HISTORY = "My colleague doesn't eat meat, and neither do I."
PAPER = CONMEM_PRESETS["paper"]
PRESETS = pytest.mark.parametrize("preset", sorted(CONMEM_PRESETS))
ERROR = RuntimeError("HTTP 500")


def spec_of(**settings: Any) -> ConMem:
    return ConMem(**settings)


def run(script: ConMemScript, *, spec: ConMem = PAPER) -> tuple[Any, CounterfactualLog]:
    model = resolve_model(script.model(), max_attempts=1)
    result = create_conmem_graph(model, spec=spec).invoke({"candidate": MEMORY, "context": HISTORY})
    return result["decision"], CounterfactualLog.model_validate(result["report"].evidence)


# -- a fresh set


@PRESETS
def test_a_reconstruction_assumes_nothing_of_the_set_before(preset: str) -> None:
    verdicts = [*[validity(risk=False)] * 4, validity(irrelevant=False)]
    script = ConMemScript({"relevant": "helpful"}, answers={"validation": verdicts})
    decision, log = run(script, spec=CONMEM_PRESETS[preset])
    assert log.rounds[-1].step == "reconstruct"
    assert {audit.role for audit in log.rounds[-1].audits} == set(ROLES), "all three, again"
    fresh = {probe.role: probe.query for probe in log.rounds[-1].probes}
    assert set(fresh.values()).isdisjoint(p.query for p in log.rounds[0].probes)
    assert {trial.role: trial.query for trial in log.trials} == fresh
    # The irrelevant probe was valid in every round before, and is not in this one.
    assert [trial.valid for trial in log.trials] == [True, False, True]
    assert decision.reason == "inconclusive"


@PRESETS
def test_a_failed_reconstruction_is_no_audit_and_leaves_the_valid_probes(preset: str) -> None:
    answers: Any = {"validation": [validity(risk=False)] * 4, "reconstruct": ERROR}
    script = ConMemScript({"relevant": "helpful"}, answers=answers)
    decision, log = run(script, spec=CONMEM_PRESETS[preset])
    assert [trial.valid for trial in log.trials] == [True, True, False]
    failure = log.trials[2].failure
    assert failure is not None
    assert failure.reason == "provider_error"
    assert log.rounds[-1].audits == ()
    assert log.score is not None
    assert log.score.probes[2].contribution is None
    assert (decision.outcome, decision.reason) == ("quarantine", "inconclusive")


def test_a_failed_repair_is_told_from_one_that_was_found_invalid() -> None:
    invalid = {
        role: ProbeAudit(role=role, valid=role == "irrelevant", reason="why") for role in ROLES
    }
    first = ProbeRound(
        step="generate",
        probes=tuple(Probe(role=role, query=f"{role} 1") for role in ROLES),
        audits=tuple(invalid.values()),
    )
    second = ProbeRound(
        step="repair",
        probes=(
            Probe(role="relevant", query="relevant 2"),
            *(Probe(role=role, query=f"{role} 1") for role in ("irrelevant", "risk")),
        ),
        audits=(ProbeAudit(role="relevant", valid=False, reason="still not"),),
        failures=(Inconclusive(reason="timeout"),),
    )
    states = probe_states((first, second))
    assert states["relevant"].failure is None
    assert states["relevant"].audit == second.audits[0]
    assert states["irrelevant"].is_valid
    # The verdict is that on the old request; the failure says why there is no new one.
    assert states["risk"].failure == second.failures[0]
    assert states["risk"].audit == invalid["risk"]
    assert states["risk"].is_repairable


# -- requests at fault by rule


FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "equal requests": (
        {"relevant": "What shall I cook?", "irrelevant": "WHAT shall I cook", "risk": "For Tom?"},
        "irrelevant",
    ),
    "full width and invisible": (
        {"relevant": "A dinner?", "irrelevant": "Five miles?", "risk": "\uff21 dinner\u2009?"},
        "risk",
    ),
    "the candidate in a relevant one": (
        {"relevant": "the user is VEGETARIAN - dinner?", "irrelevant": "Miles?", "risk": "Tom?"},
        "relevant",
    ),
    "the candidate's word in a relevant one": (
        {"relevant": "I'm a vegetarian. Dinner?", "irrelevant": "Miles?", "risk": "Tom?"},
        "relevant",
    ),
    "the candidate, a word changed": (
        {"relevant": "Dinner?", "irrelevant": "The user is a vegetarian: miles?", "risk": "Tom?"},
        "irrelevant",
    ),
    "the candidate in a risk one": (
        {"relevant": "Dinner?", "irrelevant": "Miles?", "risk": "The user is vegetarian. And Tom?"},
        "risk",
    ),
}


@PRESETS
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_request_at_fault_by_rule_is_repaired_before_any_arm_answers_it(
    name: str, preset: str
) -> None:
    probes, role = FAULTS[name]
    script = ConMemScript({"relevant": "helpful"}, answers={"probe": probes})
    _, log = run(script, spec=CONMEM_PRESETS[preset])
    assert log.repairs.regenerations == 1
    (audit,) = [audit for audit in log.rounds[0].audits if not audit.passes]
    assert (audit.role, audit.by_rule) == (role, True)
    assert log.repairs.discarded_answers == 0
    answered = [call for call in script.calls if call.kind in {"control", "treatment"}]
    assert len(answered) == 6
    assert all(probes[role] not in call.prompt for call in answered)
    # The validator is asked about the rest, and later about the new request.
    assert script.count("validation") == 2
    again = next(call for call in script.calls if call.kind == "regenerate")
    assert f"{role}: " in again.prompt
    assert audit.reason in again.prompt


@PRESETS
def test_a_set_that_is_wholly_at_fault_is_not_shown_to_the_validator(preset: str) -> None:
    probes = dict.fromkeys(ROLES, f"{MEMORY} What now?")
    script = ConMemScript(answers={"probe": probes})
    _, log = run(script, spec=CONMEM_PRESETS[preset])
    assert len(log.rounds[0].audits) == 3
    assert script.count("validation") == 1
    assert all(trial.valid for trial in log.trials)


def test_a_rejected_request_that_is_written_again_is_rejected_without_a_call() -> None:
    first = {role: f"{role} request 0" for role in ROLES}
    answers: Any = {"probe": first, "regenerate": first, "validation": [validity(risk=False)]}
    script = ConMemScript(answers=answers)
    _, log = run(script)
    assert [each.step for each in log.rounds] == ["generate", "regenerate", "regenerate", "repair"]
    assert script.count("validation") == 2
    assert [audit.by_rule for each in log.rounds[1:3] for audit in each.audits] == [True, True]


def test_a_risk_request_may_state_its_change() -> None:
    probes = {
        "relevant": "Dinner?",
        "irrelevant": "Miles?",
        "risk": "I am no longer vegetarian. Dinner?",
    }
    script = ConMemScript(answers={"probe": probes})
    _, log = run(script)
    assert log.repairs.regenerations == 0


@pytest.mark.parametrize(
    ("candidate", "request_text", "names"),
    [
        ("The user lives in Berlin.", "I live in Berlin: which park?", True),
        ("The user lives in Berlin.", "Which park is near my home?", False),
        ("The user lives in Berlin.", "Which park is in Berlin?", False),
        ("Der Benutzer ist Vegetarier.", "Ich bin Vegetarier: was koche ich?", True),
        ("用户吃素。", "我吃素，晚饭吃什么？", True),
        ("用户吃素。", "晚饭吃什么？", False),
        ("The user is.", "Where is the user?", False),
        ("The user has two cats.", "What do my two cats need?", True),
        ("The user has two cats.", "What do my pets need?", False),
    ],
)
def test_a_relevant_request_may_not_have_all_words_of_the_candidate(
    candidate: str, request_text: str, names: bool
) -> None:
    assert names_candidate(request_text, role="relevant", candidate=candidate) == names
    assert not names_candidate(request_text, role="risk", candidate=candidate)


# -- answers that reached the token limit


def cut(text: str) -> AIMessage:
    return AIMessage(text, response_metadata={"finish_reason": "length"})


CUT_STAGES = {
    "probe": '{"relevant": "a',
    "validation": '{"relevant": {"val',
    "treatment:risk": "A long answ",
    "control:relevant": "",
    "quality:risk": '{"reason": "bec',
    "audit:risk": '{"reason": "bec',
    "tie_break": '{"reason": "bec',
}


@PRESETS
@pytest.mark.parametrize("where", sorted(CUT_STAGES))
def test_a_cut_off_answer_is_asked_for_once_more_with_twice_the_room(
    where: str, preset: str
) -> None:
    script = ConMemScript(answers={where: [cut(CUT_STAGES[where])]})
    model = script.model()
    spec = CONMEM_PRESETS[preset]
    result = create_conmem_graph(model, spec=spec).invoke({"candidate": MEMORY, "context": HISTORY})
    log = CounterfactualLog.model_validate(result["report"].evidence)
    assert (result["decision"].outcome, result["decision"].reason) == ("admit", "tie_break")
    assert log.repairs.enlarged_answers == 1
    assert result["receipt"].usage.calls == 16
    kind = where.partition(":")[0]
    stage = PROMPTS.get(kind, "arms")
    room = getattr(spec.stages, stage).max_tokens
    rooms = [
        call.kwargs["max_tokens"]
        for call, said in zip(model.calls, script.calls, strict=True)
        if said.kind == kind
    ]
    assert Counter(rooms)[2 * room] == 1
    assert set(rooms) == {room, 2 * room}
    assert any(
        f"the stage {stage} reached its limit of {room}" in n for n in result["report"].notes
    )
    assert all(probe.flags == () for probe in (log.score.probes if log.score else ()))


def test_an_answer_that_is_cut_off_again_is_judged_as_it_is_and_a_verdict_is_not() -> None:
    script = ConMemScript(answers={"treatment:risk": cut("A long answ")})
    _, log = run(script)
    assert script.count("treatment") == 4
    assert log.trials[2].treatment == Response(text="A long answ", cut_off=True)
    decision, log = run(ConMemScript(answers={"audit:risk": cut('{"reason": "bec')}))
    assert isinstance(log.trials[2].attribution, Inconclusive)
    assert log.trials[2].attribution.reason == "truncated"
    assert decision.reason == "inconclusive"


def test_a_second_request_that_fails_does_not_lose_the_first_answer() -> None:
    script = ConMemScript(answers={"treatment:risk": [cut("A long answ"), ERROR]})
    _, log = run(script)
    assert log.trials[2].treatment == Response(text="A long answ", cut_off=True)
    assert log.repairs.enlarged_answers == 1


def test_without_a_limit_of_ours_no_answer_is_asked_for_again() -> None:
    script = ConMemScript(answers={"audit:risk": [cut("{")]})
    _, log = run(script, spec=spec_of(preset="paper", stages={"audit": {"max_tokens": None}}))
    assert log.repairs.enlarged_answers == 0
    assert script.count("audit") == 3


def test_the_default_gives_every_stage_more_room_than_the_paper() -> None:
    for stage, settings in CONMEM_PRESETS["default"].stages:
        assert settings.max_tokens == 8192
        papers = getattr(PAPER.stages, stage).max_tokens
        assert papers == (8192 if stage == "arms" else 2048)


# -- how often such a request is made


def test_a_detail_that_is_rarely_needed_is_not_admitted_for_a_request_made_to_need_it() -> None:
    outcomes: Any = {"relevant": "helpful"}
    reasons: dict[Frequency, str] = {"common": "positive_effect", "rare": "tie_break"}
    for frequency, reason in reasons.items():
        script = ConMemScript(outcomes, frequency=frequency, store=False)
        decision, log = run(script, spec=ConMem())
        assert decision.reason == reason
        assert log.trials[0].frequency == frequency
        assert log.trials[1].frequency is None
    script = ConMemScript(outcomes, frequency="rare")
    run(script, spec=ConMem())
    (asked,) = [call.prompt for call in script.calls if call.kind == "tie_break"]
    assert "- such a request: rare" in asked
    decision, log = run(ConMemScript(outcomes, frequency="unknown"), spec=ConMem())
    assert decision.reason == "inconclusive"
    assert "relevant: frequency" in decision.explanation


@pytest.mark.parametrize("word", ["Rare", " RARE ", "seldom", 3, None])
def test_the_frequency_is_a_word_of_the_list_or_unknown(word: Any) -> None:
    answer = validity()
    answer["relevant"]["frequency"] = word
    _, log = run(ConMemScript(answers={"validation": answer}), spec=ConMem())
    is_rare = isinstance(word, str) and word.strip().casefold() == "rare"
    assert log.trials[0].frequency == ("rare" if is_rare else "unknown")


def test_the_paper_does_not_ask_how_often() -> None:
    script = ConMemScript({"relevant": "helpful"}, frequency="rare")
    model = script.model()
    result = create_conmem_graph(model, spec=PAPER).invoke(
        {"candidate": MEMORY, "context": HISTORY}
    )
    assert result["decision"].outcome == "admit"
    assert all("frequency" not in call.text for call in model.calls)
    assert "conmem/frequency" not in {stamp.name for stamp in result["report"].prompts}
    default = create_conmem_graph(script.model()).invoke({"candidate": MEMORY, "context": HISTORY})
    assert "conmem/frequency" in {stamp.name for stamp in default["report"].prompts}


# -- the prompts


def test_everybody_who_writes_or_checks_probes_reads_the_same_definitions() -> None:
    names = ("probe", "regenerate", "repair", "reconstruct", "validation")
    texts = [load_prompt("conmem", name).user for name in names]
    starts = ("- relevant: ", "- irrelevant: ", "- risk: ")
    definitions = [
        [line for line in text.splitlines() if line.startswith(starts)] for text in texts
    ]
    assert len(definitions[0]) == 3
    assert all(lines == definitions[0] for lines in definitions)
    assert "The change must be in the request." in definitions[0][2]
    assert "if it were true" in definitions[0][0]


def test_every_prompt_has_a_worked_example_and_the_version_of_its_text() -> None:
    for name in PROMPTS:
        prompt = load_prompt("conmem", name)
        assert "xample" in prompt.system + prompt.user, name
        assert prompt.version == ("1" if name == "frequency" else "2"), name


def test_the_reasons_offered_are_faults_of_a_candidate_in_a_fixed_order() -> None:
    offered = [
        line.partition(". ")[2].partition(":")[0]
        for line in load_prompt("conmem", "reason").user.splitlines()
        if line[:1].isdigit()
    ]
    assert len(offered) == len(set(offered)) == 9
    assert {"memory_omission", "privacy_refusal", "directly_relevant"}.isdisjoint(offered)
    assert offered[0] == "false_memory_use"
