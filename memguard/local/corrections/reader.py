"""Reads the relations of a candidate to its neighbours."""

from collections.abc import Sequence
from datetime import datetime

from memguard.local.corrections.claims import ClaimText, read_claim
from memguard.local.corrections.lexicon import kinds
from memguard.local.corrections.relating import RelationSign, relate
from memguard.local.event_times import event_time
from memguard.schema.memory import CandidateMemory, SaidBy
from memguard.schema.relations import Assertion, Neighbour, RelationReading, RelationVerdict

NOTE = "relations read by rules from the words, without a language model"
"""The note on every reading."""
# `mixed` is a user's turn among others, such as the answer to a question.
_OTHER_AUTHORS: frozenset[SaidBy] = frozenset({"assistant", "tool", "document"})
_OTHER_SPEAKER = RelationSign("coexists", reason="said by different people")


def read_relations(
    candidate: CandidateMemory, neighbours: Sequence[Neighbour], *, now: datetime
) -> RelationReading:
    """Read how a candidate relates to each neighbour, from their words alone.

    Args:
        candidate: The new memory. Its speaker, if it has one, is the user.
        neighbours: Stored memories that are near it; their similarity is not needed.
        now: The time of the decision, to which the candidate's words of time refer if nothing
            tells when it was said.

    Returns:
        One verdict per neighbour. `supersedes` means that one of the two replaces the other;
        which of them does, their times tell. It is certain only on a clear sign: words of change
        about the same matter, or two values of an attribute that has one at a time. What another
        author said is never certain to replace anything, and what the rules do not understand
        coexists. Reads English, German, Spanish, French and Chinese.
    """
    names = _names_of(candidate.speaker)
    claim = read_claim(candidate.text, names)
    verdicts = tuple(_verdict(candidate, claim, neighbour) for neighbour in neighbours)
    event_at = event_time(candidate.text, said_at=candidate.said_at or now)
    # The date of an appointment is its value, and not when it was made.
    if claim.content & kinds()["event"]:
        event_at = None
    return RelationReading(
        verdicts=verdicts, assertion=_assertion(claim), event_at=event_at, notes=(NOTE,)
    )


def _names_of(speaker: str) -> frozenset[str]:
    folded = speaker.casefold().strip()
    return frozenset({folded, *folded.split()}) if folded else frozenset()


def _verdict(candidate: CandidateMemory, claim: ClaimText, neighbour: Neighbour) -> RelationVerdict:
    origin = neighbour.provenance
    speaker = origin.speaker if origin is not None else ""
    names = _names_of(candidate.speaker) or _names_of(speaker)
    other = read_claim(neighbour.text, names, default=claim.language)
    if not candidate.speaker or claim.language != other.language:
        claim = read_claim(candidate.text, names, default=other.language)
    # Of two people who each say "I", nothing is the same but what is about somebody else.
    if candidate.speaker and speaker and not names & _names_of(speaker):
        sign = _OTHER_SPEAKER
    else:
        sign = relate(claim, other, names=names)
    authors = {candidate.said_by, origin.said_by if origin is not None else "unknown"}
    is_certain = sign.certain
    if sign.relation in {"supersedes", "contradicts"}:
        # A correction of what is said of somebody else is that person's to make.
        is_own = sign.is_own or claim.owner == "user"
        is_certain = is_certain and not authors & _OTHER_AUTHORS and is_own
    return RelationVerdict(
        key=neighbour.key, relation=sign.relation, certain=is_certain, reason=sign.reason
    )


def _assertion(claim: ClaimText) -> Assertion:
    if claim.flags & {"unreal", "reported"}:
        return "doubtful"
    # A visit next week is a plan, while an appointment next week is one already.
    if "ahead" in claim.flags and not claim.content & kinds()["event"]:
        return "doubtful"
    return "temporary" if "temporary" in claim.flags else "plain"
