"""How probes become valid, and how much of the history is shown.

The ladder generates, regenerates, repairs and reconstructs probes until each is valid: ConMem,
arXiv 2610.33432, section 4.2 and appendix B.2. The paper does not state the number of rounds; it is
our own choice. Of the paper's 1,079 sets, 1,044 passed at once, 30 after regeneration, 4 after
repair and 1 after reconstruction.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memguard.methods.conmem.config import ROLES, ConMem, ProbeRole
from memguard.methods.conmem.log import LadderStep, Probe, ProbeAudit, ProbeRound
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Turn


@dataclass(frozen=True, kw_only=True)
class ProbeState:
    """The current state of one probe."""

    role: ProbeRole
    """What it tests."""
    query: str = ""
    """The newest request; empty when none was written."""
    audit: ProbeAudit | None = None
    """The newest verdict on it."""
    failure: Inconclusive | None = None
    """Why there is no verdict on it, or why it was not written again."""

    @property
    def is_valid(self) -> bool:
        """Whether the probe can be used."""
        return self.audit is not None and self.audit.passes

    @property
    def is_repairable(self) -> bool:
        """Whether another round could make it valid."""
        return self.audit is not None and not self.audit.passes


def probe_states(rounds: Sequence[ProbeRound]) -> dict[ProbeRole, ProbeState]:
    """The state of each probe after these rounds.

    A valid probe changes only if a whole set is reconstructed: then all three are new.
    """
    return {role: _probe_state(role, rounds) for role in ROLES}


def _probe_state(role: ProbeRole, rounds: Sequence[ProbeRound]) -> ProbeState:
    state = ProbeState(role=role)
    for probe_round in rounds:
        if is_fresh(probe_round):
            # Nothing of an earlier set is assumed, not even a request in the same words.
            state = ProbeState(role=role)
        elif state.is_valid:
            continue
        query = next((probe.query for probe in probe_round.probes if probe.role == role), "")
        audit = next((audit for audit in probe_round.audits if audit.role == role), None)
        # A failed call is about the whole round: it explains a missing verdict, not a bad one.
        failure = probe_round.failures[0] if audit is None and probe_round.failures else None
        if audit is None and query in {"", state.query}:
            # The request is still the one that was found to be invalid.
            audit = state.audit
        state = ProbeState(role=role, query=query or state.query, audit=audit, failure=failure)
    return state


def is_fresh(probe_round: ProbeRound) -> bool:
    """Whether a round wrote a set that replaces all earlier probes, valid ones too."""
    is_set = probe_round.step in {"generate", "reconstruct"}
    # A call that failed wrote nothing, so it replaces nothing.
    return is_set and bool(probe_round.probes or probe_round.audits)


def next_step(rounds: Sequence[ProbeRound], *, spec: ConMem) -> LadderStep | None:
    """The next step of the ladder; `None` when no probe needs one, or no step is left."""
    if not any(state.is_repairable for state in probe_states(rounds).values()):
        return None
    # The first round is the generation itself, and no step of the repair.
    done = len(rounds) - 1
    steps: tuple[tuple[LadderStep, int], ...] = (
        ("regenerate", spec.regenerations),
        ("repair", spec.repairs),
        ("reconstruct", spec.reconstructions),
    )
    for step, limit in steps:
        if done < limit:
            return step
        done -= limit
    return None


def current_probes(rounds: Sequence[ProbeRound]) -> tuple[Probe, ...]:
    """The newest probe of each role, without roles for which none was written."""
    states = probe_states(rounds).values()
    return tuple(Probe(role=state.role, query=state.query) for state in states if state.query)


def unaudited_probes(rounds: Sequence[ProbeRound]) -> tuple[Probe, ...]:
    """Current probes without a verdict."""
    states = probe_states(rounds)
    return tuple(probe for probe in current_probes(rounds) if states[probe.role].audit is None)


def rejected_queries(rounds: Sequence[ProbeRound]) -> tuple[str, ...]:
    """Requests that were found to be invalid, in the order they were written, without repeats."""
    queries = [
        probe.query
        for probe_round in rounds
        for probe in probe_round.probes
        if any(audit.role == probe.role and not audit.passes for audit in probe_round.audits)
    ]
    return tuple(dict.fromkeys(queries))


@dataclass(frozen=True, kw_only=True)
class ClippedHistory:
    """The part of a history that models are shown."""

    turns: tuple[Turn, ...]
    """Oldest first."""
    left_out: int
    """Turns that are not shown."""
    cut_short: bool = False
    """Whether one turn alone was too long, and only its end is shown."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the receipt."""
        total = self.left_out + len(self.turns)
        notes: list[str] = []
        if self.left_out:
            notes.append(
                f"the history was clipped: {self.left_out} of {total} turns were not shown; the "
                "newest turns and those of the candidate were kept"
            )
        if self.cut_short:
            notes.append(
                "the history was clipped: of one turn that is too long, only the end was shown"
            )
        return tuple(notes)


def clip_history(
    turns: Sequence[Turn], *, named: Collection[str], max_turns: int, max_chars: int
) -> ClippedHistory:
    """Choose the turns to show: those that the candidate names, then the newest.

    This rule is our own; it is not in the paper.

    Args:
        turns: The history, oldest first.
        named: Ids of the turns that the candidate names.
        max_turns: Maximum number of turns.
        max_chars: Maximum number of characters. If not even one turn fits, its end is shown.
    """
    order = sorted(range(len(turns)), key=lambda i: (turns[i].id in named, i), reverse=True)
    chosen: list[int] = []
    room = max_chars
    for index in order[:max_turns]:
        length = len(turns[index].content)
        if length > room:
            # A gap in the recent history would mislead: stop at the first turn that does not fit.
            # A named turn is chosen on its own, so the next one may still fit.
            if turns[index].id not in named:
                break
            continue
        chosen.append(index)
        room -= length
    if not chosen and turns:
        last = turns[order[0]]
        end = last.model_copy(update={"content": last.content[-max_chars:]})
        return ClippedHistory(turns=(end,), left_out=len(turns) - 1, cut_short=True)
    return ClippedHistory(
        turns=tuple(turns[index] for index in sorted(chosen)), left_out=len(turns) - len(chosen)
    )
