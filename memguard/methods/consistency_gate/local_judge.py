"""Judging with no language model: what is repeated word for word, else the support verifier."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pydantic import JsonValue

from memguard.methods.consistency_gate.state import Judgement
from memguard.policy.statements import find_statements
from memguard.schema.config import ConsistencyGate
from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.schema.verdict import Inconclusive, SupportSample

if TYPE_CHECKING:
    from memguard.local import SupportJudgement, SupportVerifier

WEAKER = (
    "judged by the local verifier, which is weaker than a strong language model: it misses details "
    "swapped within a turn and facts that are only implied, and knows English only"
)


@cache
def _verifier() -> "SupportVerifier":
    """One verifier per process; it loads its weights at the first judgement."""
    from memguard.local import SupportVerifier  # noqa: PLC0415 - loads numpy

    return SupportVerifier()


@dataclass(frozen=True, kw_only=True)
class LocalJudge:
    """The support verifier as a judge: one sample, the same each time."""

    spec: ConsistencyGate

    @property
    def fingerprint(self) -> str:
        """Of the verifier's weights."""
        from memguard.local.verifier.assets import PINNED  # noqa: PLC0415 - loads numpy

        return f"local:{sorted(PINNED.items())}"

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judgement:
        """One deterministic sample; in the verifier's band of doubt it is inconclusive.

        The verifier's own calibrated threshold holds, unless the spec names another.
        """
        turn = repeated_turn(candidate.text, source)
        if turn is not None:
            sample = SupportSample(
                score=1.0, reason=f"said word for word in turn {turn.id}", turn_ids=(turn.id,)
            )
            return Judgement(samples=(sample,), k=1, tau=tau, mode="local", model="local:verbatim")
        judgement = await _verifier().ajudge(
            candidate=candidate, context=Conversation(turns=source)
        )
        sample = _sample(judgement)
        stated = statements_of(source)
        if judgement.ruling == "supported" and stated != source:
            again = await _verifier().ajudge(
                candidate=candidate, context=Conversation(turns=stated)
            )
            if again.ruling != "supported":
                sample = Inconclusive(reason="too_close", detail=_only_mentioned(judgement, again))
        threshold = tau if {"tau", "threshold"} & self.spec.model_fields_set else judgement.tau
        return Judgement(
            samples=(sample,),
            k=1,
            tau=threshold,
            mode="local",
            model=f"local:{judgement.version}",
            details={"local": _details(judgement)},
            notes=(WEAKER, *(f"outside what it was made for: {n}" for n in judgement.notes)),
        )


def repeated_turn(text: str, source: tuple[Turn, ...]) -> Turn | None:
    """The turn in which its speaker states this text as so, word for word, or `None`.

    The text may begin with the speaker's name and a colon, as the local writer puts it.
    """
    name, colon, rest = text.partition(": ")
    for turn in source:
        if turn.role != "user":
            continue
        named = colon and name in {turn.speaker, "The user"} and name
        statement = rest if named else text
        if (named or not turn.speaker) and statement in find_statements(turn.content):
            return turn
    return None


def statements_of(source: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The source with only what people state as so: no question, no "if", no quotation.

    The verifier compares words, and cannot tell "I bought it" from "if I were rich I'd buy it".
    What is supported with such sentences and not without them is in doubt.
    """
    statements: list[Turn] = []
    for turn in source:
        if turn.role != "user":
            continue
        content = " ".join(find_statements(turn.content))
        if content:
            statements.append(turn.model_copy(update={"content": content}))
    return tuple(statements)


def _only_mentioned(judgement: "SupportJudgement", again: "SupportJudgement") -> str:
    return (
        f"local support {judgement.score:.2f}, but {again.score:.2f} on what a user states as so, "
        "without questions, hypotheticals and quotations"
    )


def _sample(judgement: "SupportJudgement") -> SupportSample | Inconclusive:
    if judgement.ruling == "inconclusive":
        low, high = judgement.band
        return Inconclusive(
            reason="too_close",
            detail=f"local support {judgement.score:.2f} lies between {low:.2f} and {high:.2f}",
        )
    turns = dict.fromkeys(word.turn_id for word in judgement.words if word.turn_id)
    missing = ", ".join(judgement.unsupported_words)
    reason = f"without support: {missing}" if missing else "every detail was found"
    if judgement.ruling == "unsupported" and not missing:
        reason = "the words are there, but they do not say this"
    return SupportSample(score=judgement.score, reason=reason, turn_ids=tuple(turns))


def _details(judgement: "SupportJudgement") -> JsonValue:
    return judgement.model_dump(mode="json")
