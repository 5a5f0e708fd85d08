"""Generate probes, validate them, and repair those that are not valid."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

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

    # Models add keys of their own, such as their reasoning; they are ignored.
    model_config = ConfigDict(extra="ignore")

    relevant: str
    irrelevant: str
    risk: str


class ProbeAnswer(BaseModel):
    """One request."""

    model_config = ConfigDict(extra="ignore")

    query: str


class ValidityAnswer(BaseModel):
    """The validator's verdict on one probe."""

    model_config = ConfigDict(extra="ignore")

    reason: str = ""
    valid: bool
    leaks: bool = False


class ValidationAnswer(BaseModel):
    """The validator's verdicts by role, for the probes it was shown."""

    model_config = ConfigDict(extra="ignore")

    relevant: ValidityAnswer | None = None
    irrelevant: ValidityAnswer | None = None
    risk: ValidityAnswer | None = None

    def of(self, role: ProbeRole) -> ValidityAnswer | None:
        """The verdict on one role."""
        return {"relevant": self.relevant, "irrelevant": self.irrelevant, "risk": self.risk}[role]

    def audits(self, roles: Collection[ProbeRole]) -> tuple[ProbeAudit, ...]:
        """The verdicts on these roles, for the log."""
        return tuple(
            ProbeAudit(role=role, **verdict.model_dump())
            for role in ROLES
            if role in roles and (verdict := self.of(role)) is not None
        )


def read_validation(text: str, *, roles: Collection[ProbeRole]) -> ValidationAnswer | Inconclusive:
    """Read the verdicts on these roles; an answer that omits one of them is inconclusive."""
    answer = parse_json(text, ValidationAnswer)
    if isinstance(answer, Inconclusive):
        return answer
    missing = [role for role in ROLES if role in roles and answer.of(role) is None]
    if missing:
        detail = f"no verdict on: {', '.join(missing)}"
        return Inconclusive(reason="parse_failure", detail=detail)
    return answer


async def write_round(
    state: ConMemState, *, step: LadderStep, models: StageModels
) -> dict[str, Any]:
    """Write the probes of one round. Valid probes are not written again."""
    before = probe_states(state.rounds)
    open_roles: list[ProbeRole] = [role for role in ROLES if not before[role].is_valid]
    if step == "repair":
        answers = await _repair_each(state, open_roles, models=models)
    else:
        answers = [await _write_set(state, step=step, models=models)]
    written: dict[ProbeRole, str] = {}
    failures: list[Inconclusive] = []
    for role, answer in zip(open_roles if step == "repair" else [None], answers, strict=True):
        match answer.value:
            case Inconclusive():
                failures.append(answer.value)
            case ProbeAnswer() if role is not None:
                written[role] = answer.value.query
            case probe_set:
                written |= {name: str(getattr(probe_set, name)) for name in open_roles}
    new_round = _new_round(step, before=before, written=written, failures=failures)
    prompt = "probe" if step == "generate" else step
    calls = [StageCall(prompt=prompt, usage=a.usage, notes=a.notes) for a in answers]
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
) -> ParsedAnswer[ProbeSetAnswer] | ParsedAnswer[ProbeAnswer]:
    prompt, slots = "probe", _case_slots(state)
    if step == "regenerate":
        prompt, slots = "regenerate", {**slots, **_verdict_slots(state)}
    elif step == "reconstruct":
        # Starting over: the rejected requests are shown, but not what was said about them.
        rejected = "\n".join(f"- {quote(query)}" for query in rejected_queries(state.rounds))
        prompt, slots = "reconstruct", {**slots, "rejected": rejected}
    return await models.ask(prompt, ProbeSetAnswer, slots=slots, parse=None)


async def _repair_each(
    state: ConMemState, roles: Sequence[ProbeRole], *, models: StageModels
) -> list[ParsedAnswer[ProbeSetAnswer] | ParsedAnswer[ProbeAnswer]]:
    slots = {**_case_slots(state), **_verdict_slots(state)}
    calls = [
        models.ask("repair", ProbeAnswer, slots={**slots, "role": role}, parse=None)
        for role in roles
    ]
    # An exhausted budget must not cancel calls that are already under way and paid for; it is
    # raised when all of them are done.
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


async def validate_round(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Ask the validator about probes without a verdict; makes no call if there are none."""
    probes = unaudited_probes(state.rounds)
    if not probes:
        return {}
    roles: frozenset[ProbeRole] = frozenset(probe.role for probe in probes)
    answer = await models.ask(
        "validation",
        ValidationAnswer,
        slots={**_case_slots(state), "probes": _probe_lines(current_probes(state.rounds))},
        parse=partial(read_validation, roles=roles),
    )
    last = state.rounds[-1]
    if isinstance(answer.value, Inconclusive):
        update: dict[str, Any] = {"failures": (answer.value, *last.failures)}
    else:
        update = {"audits": (*last.audits, *answer.value.audits(roles))}
    call = StageCall(prompt="validation", usage=answer.usage, notes=answer.notes)
    return {"rounds": (*state.rounds[:-1], last.model_copy(update=update)), "calls": [call]}


def _case_slots(state: ConMemState) -> dict[str, str]:
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
