"""Writing probes, saying which are valid, and mending those that are not."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from memguard.llm.ask import Answer
from memguard.methods.conmem.answers import OneProbe, ProbeSet, Validation, read_validation
from memguard.methods.conmem.panel import Panel
from memguard.methods.conmem.state import ConMemState, Spent
from memguard.policy.conmem_ladder import (
    Standing,
    current_probes,
    rejected_queries,
    standings,
    unaudited,
)
from memguard.rendering.quote import quote, quote_turns
from memguard.schema.base import is_blank
from memguard.schema.conmem import ROLES, ProbeRole
from memguard.schema.conmem_log import Probe, ProbeAudit, ProbeRound, Rung
from memguard.schema.verdict import Inconclusive

UNWRITTEN = "no request was written"
"""What is said of a role without a probe; nobody need be asked about it."""


async def write_round(state: ConMemState, *, rung: Rung, panel: Panel) -> dict[str, Any]:
    """Write the probes of one round; roles that stand already keep their probe."""
    before = standings(state.rounds)
    open_roles: list[ProbeRole] = [role for role in ROLES if not before[role].is_valid]
    if rung == "repair":
        answers = await _each_by_itself(state, open_roles, panel=panel)
    else:
        answers = [await _whole_set(state, rung=rung, panel=panel)]
    written: dict[ProbeRole, str] = {}
    failures: list[Inconclusive] = []
    for role, answer in zip(open_roles if rung == "repair" else [None], answers, strict=True):
        match answer.value:
            case Inconclusive():
                failures.append(answer.value)
            case OneProbe() if role is not None:
                written[role] = answer.value.query
            case found:
                for each in open_roles:
                    written[each] = str(getattr(found, each))
    fresh = _round(rung, before=before, written=written, failures=failures)
    prompt = "probe" if rung == "generate" else rung
    spent = [Spent(prompt=prompt, usage=a.usage, notes=a.notes) for a in answers]
    return {"rounds": (*state.rounds, fresh), "spent": spent}


def _round(
    rung: Rung,
    *,
    before: dict[ProbeRole, Standing],
    written: dict[ProbeRole, str],
    failures: Sequence[Inconclusive],
) -> ProbeRound:
    """The round as it stands before anybody was asked about it."""
    probes: list[Probe] = []
    audits: list[ProbeAudit] = []
    for role in ROLES:
        query = written.get(role, "")
        if is_blank(query):
            query = before[role].query
            if rung == "generate" and not failures:
                audits.append(ProbeAudit(role=role, valid=False, reason=UNWRITTEN))
            elif (old := before[role].audit) is not None:
                audits.append(old)  # nothing new was written: what was said of it still holds
        if query:
            probes.append(Probe(role=role, query=query))
    return ProbeRound(
        rung=rung, probes=tuple(probes), audits=tuple(audits), failures=tuple(failures)
    )


async def _whole_set(
    state: ConMemState, *, rung: Rung, panel: Panel
) -> Answer[ProbeSet] | Answer[OneProbe]:
    slots = _case(state)
    if rung == "regenerate":
        return await panel.ask(
            "regenerate", ProbeSet, slots={**slots, **_standing_slots(state)}, parse=None
        )
    if rung == "reconstruct":
        rejected = "\n".join(f"- {quote(query)}" for query in rejected_queries(state.rounds))
        return await panel.ask(
            "reconstruct", ProbeSet, slots={**slots, "rejected": rejected}, parse=None
        )
    return await panel.ask("probe", ProbeSet, slots=slots, parse=None)


async def _each_by_itself(
    state: ConMemState, roles: Sequence[ProbeRole], *, panel: Panel
) -> list[Answer[ProbeSet] | Answer[OneProbe]]:
    slots = {**_case(state), **_standing_slots(state)}
    asked = [panel.ask("repair", OneProbe, slots={**slots, "role": r}, parse=None) for r in roles]
    # A budget that ends takes none of the others down half-way; it is raised when all are done.
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


async def validate_round(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Ask the probe auditor about what nobody has said anything about yet."""
    asked = unaudited(state.rounds)
    if not asked:
        return {}
    roles: frozenset[ProbeRole] = frozenset(probe.role for probe in asked)
    answer = await panel.ask(
        "validation",
        Validation,
        slots={**_case(state), "probes": _lines(current_probes(state.rounds))},
        parse=partial(read_validation, roles=roles),
    )
    last = state.rounds[-1]
    if isinstance(answer.value, Inconclusive):
        update: dict[str, Any] = {"failures": (answer.value, *last.failures)}
    else:
        update = {"audits": (*last.audits, *answer.value.audits(roles))}
    spent = Spent(prompt="validation", usage=answer.usage, notes=answer.notes)
    return {"rounds": (*state.rounds[:-1], last.model_copy(update=update)), "spent": [spent]}


def _case(state: ConMemState) -> dict[str, str]:
    # The history stands first, then the candidate: all stages begin alike, and providers cache it.
    return {"history": quote_turns(state.history), "candidate": quote(state.candidate.text)}


def _standing_slots(state: ConMemState) -> dict[str, str]:
    audits = [each.audit for each in standings(state.rounds).values() if each.audit is not None]
    return {
        "probes": _lines(current_probes(state.rounds)),
        "audit": "\n".join(_audit_line(audit) for audit in audits),
    }


def _lines(probes: Sequence[Probe]) -> str:
    return "\n".join(f"{probe.role}: {quote(probe.query)}" for probe in probes)


def _audit_line(audit: ProbeAudit) -> str:
    said = "valid" if audit.passes else "leaks" if audit.valid else "not valid"
    return f"{audit.role}: {said}, {quote(audit.reason)}"
