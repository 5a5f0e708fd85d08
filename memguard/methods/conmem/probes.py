"""Generate probes, validate them, and repair those that are not valid.

A round writes probes (`write_round`) and then validates those that are new (`validate_round`). Both
return an update of the state; `ladder` says which round comes next.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from memguard.llm.ask import ParsedAnswer
from memguard.llm.parsing import parse_json
from memguard.methods.conmem.config import ROLES, ProbeRole
from memguard.methods.conmem.ladder import (
    ProbeState,
    current_probes,
    probe_states,
    rejected_queries,
    unaudited_probes,
)
from memguard.methods.conmem.log import LadderStep, Probe, ProbeAudit, ProbeRound
from memguard.methods.conmem.models import StageModels
from memguard.methods.conmem.state import ConMemState, StageCall
from memguard.quoting import quote, quote_turns
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive

NOT_WRITTEN = "no request was written"
"""The verdict on a role without a probe; no model is asked about it."""


class ProbeSetAnswer(BaseModel):
    """Three requests."""

    # Pydantic ignores other keys, which models add, for example for their reasoning.
    relevant: str
    irrelevant: str
    risk: str


class ProbeAnswer(BaseModel):
    """One request."""

    query: str


class ValidityAnswer(BaseModel):
    """The validator's verdict on one probe."""

    reason: str = ""
    valid: bool
    leaks: bool = False


class ValidationAnswer(BaseModel):
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


def read_validation(text: str, *, roles: Collection[ProbeRole]) -> ValidationAnswer | Inconclusive:
    """Read the verdicts on these roles; an answer that omits one of them is inconclusive."""
    answer = parse_json(text, ValidationAnswer)
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
    """Write the probes of one round. Valid probes are not written again."""
    before = probe_states(state.rounds)
    open_roles: list[ProbeRole] = [role for role in ROLES if not before[role].is_valid]
    written: dict[ProbeRole, str] = {}
    answers: Sequence[ParsedAnswer[Any]]
    if step == "repair":
        answers = await _repair_each(state, open_roles, models=models)
        for role, answer in zip(open_roles, answers, strict=True):
            if not isinstance(answer.value, Inconclusive):
                written[role] = answer.value.query
    else:
        answers = [await _write_set(state, step=step, models=models)]
        probes = answers[0].value
        if not isinstance(probes, Inconclusive):
            # A set has all three probes; those that are valid already are not replaced.
            written = {role: getattr(probes, role) for role in open_roles}
    failures = [answer.value for answer in answers if isinstance(answer.value, Inconclusive)]
    new_round = _new_round(step, before=before, written=written, failures=failures)
    prompt = "probe" if step == "generate" else step
    calls = [StageCall.from_answer(prompt, answer) for answer in answers]
    return {"rounds": (*state.rounds, new_round), "calls": calls}


def _new_round(
    step: LadderStep,
    *,
    before: dict[ProbeRole, ProbeState],
    written: dict[ProbeRole, str],
    failures: Sequence[Inconclusive],
) -> ProbeRound:
    """The round after writing and before validation."""
    probes: list[Probe] = []
    audits: list[ProbeAudit] = []
    for role in ROLES:
        query = written.get(role, "")
        if is_blank(query):
            query = before[role].query
            # Without a failed call, the model answered and left this request blank: that is a
            # verdict, and the ladder writes the probe again.
            if step == "generate" and not failures:
                audits.append(ProbeAudit(role=role, valid=False, reason=NOT_WRITTEN))
            elif (audit := before[role].audit) is not None:
                audits.append(audit)  # the probe is unchanged, so its verdict still holds
        if query:
            probes.append(Probe(role=role, query=query))
    return ProbeRound(
        step=step, probes=tuple(probes), audits=tuple(audits), failures=tuple(failures)
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
    answer = await models.ask(
        "validation",
        ValidationAnswer,
        slots={**case_slots(state), "probes": _probe_lines(current_probes(state.rounds))},
        parse=partial(read_validation, roles=roles),
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
