"""Generate probes, validate them, and repair those that are not valid.

A round writes probes (`write_round`) and then validates those that are new (`validate_round`). Both
return an update of the state; `ladder` says which round comes next.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator

from memguard.llm.ask import ParsedAnswer
from memguard.llm.parsing import parse_json
from memguard.methods.conmem.config import ROLES, Frequency, ProbeRole
from memguard.methods.conmem.ladder import (
    current_probes,
    probe_states,
    rejected_queries,
    unaudited_probes,
)
from memguard.methods.conmem.log import LadderStep, Probe, ProbeAudit, ProbeRound
from memguard.methods.conmem.models import StageModels
from memguard.methods.conmem.screening import screen
from memguard.methods.conmem.state import ConMemState, StageCall
from memguard.quoting import quote, quote_turns
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive

NOT_WRITTEN = "no request was written"
"""The verdict on a role without a probe; no model is asked about it."""


def _read_frequency(value: object) -> Frequency:
    """A word of the list in any case; anything else, or nothing, is `unknown`."""
    word = value.strip().casefold() if isinstance(value, str) else ""
    return next((name for name in get_args(Frequency) if name == word), "unknown")


class ProbeSetAnswer(BaseModel):
    """Three requests."""

    # Pydantic ignores other keys, which models add, for example for their reasoning.
    relevant: str
    irrelevant: str
    risk: str


class ProbeAnswer(BaseModel):
    """One request."""

    query: str


# Frozen, so that a subclass may narrow a field.
class ValidityAnswer(BaseModel, frozen=True):
    """The validator's verdict on one probe."""

    reason: str = ""
    valid: bool
    leaks: bool = False


class EstimatedAnswer(ValidityAnswer, frozen=True):
    """The validator's verdict on the relevant probe, with how often such a request is made."""

    # Lenient: a validity that can be read must not be lost with an estimate that cannot.
    frequency: Annotated[Frequency, BeforeValidator(_read_frequency)] = "unknown"


class ValidationAnswer(BaseModel, frozen=True):
    """The validator's verdicts by role, for the probes it was shown."""

    relevant: ValidityAnswer | None = None
    irrelevant: ValidityAnswer | None = None
    risk: ValidityAnswer | None = None

    def audits(self, roles: Collection[ProbeRole]) -> tuple[ProbeAudit, ...]:
        """The verdicts on these roles, for the log."""
        audits: list[ProbeAudit] = []
        for role in ROLES:
            verdict: ValidityAnswer | None = getattr(self, role)
            if role in roles and verdict is not None:
                audits.append(ProbeAudit(role=role, **verdict.model_dump()))
        return tuple(audits)


class EstimatedValidationAnswer(ValidationAnswer, frozen=True):
    """The same, where the validator is asked how often such a request is made."""

    relevant: EstimatedAnswer | None = None


def read_validation(
    text: str, *, roles: Collection[ProbeRole], schema: type[ValidationAnswer]
) -> ValidationAnswer | Inconclusive:
    """Read the verdicts on these roles; an answer that omits one of them is inconclusive."""
    answer = parse_json(text, schema)
    if isinstance(answer, Inconclusive):
        return answer
    # A probe without a verdict is not invalid: half an answer must not decide about the other half.
    missing = set(roles) - {audit.role for audit in answer.audits(roles)}
    if missing:
        detail = f"no verdict on: {', '.join(role for role in ROLES if role in missing)}"
        return Inconclusive(reason="parse_failure", detail=detail)
    return answer


async def write_round(
    state: ConMemState, *, step: LadderStep, models: StageModels
) -> dict[str, Any]:
    """Write the probes of one round, and find by rule what no model has to be asked about."""
    before = probe_states(state.rounds)
    is_set = step in {"generate", "reconstruct"}
    # A valid probe is written again only as a part of a fresh set.
    roles: list[ProbeRole] = [role for role in ROLES if is_set or not before[role].is_valid]
    written: dict[ProbeRole, str] = {}
    answers: Sequence[ParsedAnswer[Any]]
    if step == "repair":
        answers = await _repair_each(state, roles, models=models)
        for role, answer in zip(roles, answers, strict=True):
            if not isinstance(answer.value, Inconclusive):
                written[role] = answer.value.query
    else:
        answers = [await _write_set(state, step=step, models=models)]
        probes = answers[0].value
        if not isinstance(probes, Inconclusive):
            written = {role: getattr(probes, role) for role in roles}
    failures = [answer.value for answer in answers if isinstance(answer.value, Inconclusive)]
    new_round = _new_round(state, step=step, written=written, failures=failures)
    prompt = "probe" if step == "generate" else step
    calls = [StageCall.from_answer(prompt, answer) for answer in answers]
    return {"rounds": (*state.rounds, new_round), "calls": calls}


def _new_round(
    state: ConMemState,
    *,
    step: LadderStep,
    written: Mapping[ProbeRole, str],
    failures: Sequence[Inconclusive],
) -> ProbeRound:
    """The round after writing and before validation."""
    is_set = step in {"generate", "reconstruct"}
    requests: dict[ProbeRole, str] = {
        role: query for role, query in written.items() if not is_blank(query)
    }
    retained: dict[ProbeRole, str] = {
        role: probe.query
        for role, probe in probe_states(state.rounds).items()
        if not is_set and role not in requests and probe.query
    }
    # What a failed call did not write is no verdict; what an answer left blank is one.
    audits = [
        ProbeAudit(role=role, valid=False, reason=NOT_WRITTEN, by_rule=True)
        for role in written
        if role not in requests and role not in retained
    ]
    faults = screen(
        requests,
        candidate=state.candidate.text,
        current=retained,
        rejected=() if step == "generate" else rejected_queries(state.rounds),
    )
    queries = {**retained, **requests}
    return ProbeRound(
        step=step,
        probes=tuple(Probe(role=role, query=queries[role]) for role in ROLES if role in queries),
        audits=(*audits, *faults.values()),
        failures=tuple(failures),
    )


async def _write_set(
    state: ConMemState, *, step: LadderStep, models: StageModels
) -> ParsedAnswer[ProbeSetAnswer]:
    prompt, slots = "probe", case_slots(state)
    if step == "regenerate":
        prompt, slots = "regenerate", {**slots, **_verdict_slots(state)}
    elif step == "reconstruct":
        # Starting over: the rejected requests are shown, but not what was said about them.
        rejected = "\n".join(f"- {quote(query)}" for query in rejected_queries(state.rounds))
        prompt, slots = "reconstruct", {**slots, "rejected": rejected}
    return await models.ask(prompt, ProbeSetAnswer, slots=slots, parse=None)


async def _repair_each(
    state: ConMemState, roles: Sequence[ProbeRole], *, models: StageModels
) -> list[ParsedAnswer[ProbeAnswer]]:
    slots = {**case_slots(state), **_verdict_slots(state)}
    calls = [
        models.ask("repair", ProbeAnswer, slots={**slots, "role": role}, parse=None)
        for role in roles
    ]
    # An exhausted budget must not cancel calls that are already running and paid for; it is
    # raised when all of them are done.
    answers: list[ParsedAnswer[ProbeAnswer]] = []
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers


async def validate_round(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Ask the validator about probes without a verdict; makes no call if there are none."""
    probes = unaudited_probes(state.rounds)
    if not probes:
        return {}
    roles: frozenset[ProbeRole] = frozenset(probe.role for probe in probes)
    schema = EstimatedValidationAnswer if models.frequency_question else ValidationAnswer
    answer = await models.ask(
        "validation",
        schema,
        slots={
            **case_slots(state),
            "probes": _probe_lines(current_probes(state.rounds)),
            "frequency": models.frequency_question,
        },
        parse=partial(read_validation, roles=roles, schema=schema),
    )
    last = state.rounds[-1]
    if isinstance(answer.value, Inconclusive):
        update: dict[str, Any] = {"failures": (answer.value, *last.failures)}
    else:
        update = {"audits": (*last.audits, *answer.value.audits(roles))}
    call = StageCall.from_answer("validation", answer)
    return {"rounds": (*state.rounds[:-1], last.model_copy(update=update)), "calls": [call]}


def case_slots(state: ConMemState) -> dict[str, str]:
    """The beginning of most prompts: the history and the candidate, quoted."""
    # History first, then the candidate: the prompts of all stages share this beginning, and
    # providers cache it.
    return {"history": quote_turns(state.history), "candidate": quote(state.candidate.text)}


def _verdict_slots(state: ConMemState) -> dict[str, str]:
    states = probe_states(state.rounds).values()
    return {
        "probes": _probe_lines(current_probes(state.rounds)),
        "audit": "\n".join(_audit_line(probe.audit) for probe in states if probe.audit is not None),
    }


def _probe_lines(probes: Sequence[Probe]) -> str:
    return "\n".join(f"{probe.role}: {quote(probe.query)}" for probe in probes)


def _audit_line(audit: ProbeAudit) -> str:
    verdict = "valid" if audit.passes else "leaks" if audit.valid else "not valid"
    return f"{audit.role}: {verdict}, {quote(audit.reason)}"
