"""How probes come to be valid: which round comes next, and what stands after the rounds so far.

ConMem, arXiv 2610.33432, section 4.2 and appendix B.2. The number of rounds is ours; the paper
states none (1,044 of its 1,079 sets passed at once, 30 after regeneration, 4 after repair, 1 after
reconstruction).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memguard.schema.conmem import ROLES, ConMem, ProbeRole
from memguard.schema.conmem_log import Probe, ProbeAudit, ProbeRound, Rung
from memguard.schema.verdict import Inconclusive


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where one probe stands."""

    role: ProbeRole
    """Which one."""
    query: str = ""
    """The newest request; empty when none was written."""
    audit: ProbeAudit | None = None
    """The newest word on it."""
    failure: Inconclusive | None = None
    """Why there is no word on it."""

    @property
    def is_valid(self) -> bool:
        """Whether the probe can be used."""
        return self.audit is not None and self.audit.passes

    @property
    def is_open(self) -> bool:
        """Whether another round could mend it."""
        return self.audit is not None and not self.audit.passes


def standings(rounds: Sequence[ProbeRound]) -> dict[ProbeRole, Standing]:
    """Where each probe stands after these rounds. A valid probe stays as it is."""
    return {role: _standing(role, rounds) for role in ROLES}


def _standing(role: ProbeRole, rounds: Sequence[ProbeRound]) -> Standing:
    now = Standing(role=role)
    for each in rounds:
        if now.is_valid:
            break
        query = next((probe.query for probe in each.probes if probe.role == role), "")
        audit = next((audit for audit in each.audits if audit.role == role), None)
        failure = each.failures[0] if audit is None and each.failures else None
        now = Standing(role=role, query=query or now.query, audit=audit, failure=failure)
    return now


def next_rung(rounds: Sequence[ProbeRound], *, spec: ConMem) -> Rung | None:
    """The round that comes next: `None` when all is said, or the ladder is at its end."""
    if not any(each.is_open for each in standings(rounds).values()):
        return None
    done = len(rounds) - 1
    rungs: tuple[tuple[Rung, int], ...] = (
        ("regenerate", spec.regenerations),
        ("repair", spec.repairs),
        ("reconstruct", spec.reconstructions),
    )
    for rung, most in rungs:
        if done < most:
            return rung
        done -= most
    return None


def current_probes(rounds: Sequence[ProbeRound]) -> tuple[Probe, ...]:
    """The set as it stands, without the roles that nothing was written for."""
    found = standings(rounds).values()
    return tuple(Probe(role=each.role, query=each.query) for each in found if each.query)


def unaudited(rounds: Sequence[ProbeRound]) -> tuple[Probe, ...]:
    """Probes that nobody has said anything about yet."""
    found = standings(rounds)
    return tuple(p for p in current_probes(rounds) if found[p.role].audit is None)


def rejected_queries(rounds: Sequence[ProbeRound]) -> tuple[str, ...]:
    """Requests that were found not to be valid, in the order they were written, each once."""
    found = [
        probe.query
        for each in rounds
        for probe in each.probes
        if any(audit.role == probe.role and not audit.passes for audit in each.audits)
    ]
    return tuple(dict.fromkeys(found))
