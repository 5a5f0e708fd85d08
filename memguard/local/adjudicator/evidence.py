"""Whether evidence confirms a unit (by the support verifier) or contradicts it (by its words)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memguard.local.adjudicator.contradiction import contradict
from memguard.local.adjudicator.nearness import content_stems
from memguard.local.verifier.support import SupportVerifier
from memguard.local.verifier.words import stems_of
from memguard.policy.statements import split_sentences
from memguard.schema.read import Evidence
from memguard.schema.units import Unit

Stance = Literal["confirms", "contradicts"]
"""What evidence says about a unit."""

MAX_SENTENCES = 600
"""Maximum number of sentences of evidence that are read, from the beginning."""
MAX_UNITS = 30
"""Maximum number of units that are compared with evidence, in the order of recall."""
# Maximum number of sentences that one unit is compared with.
_NEAREST = 4
# Share of a unit's content stems that a sentence must contain to be about it.
_MIN_SHARED = 0.5


@dataclass(frozen=True, kw_only=True)
class EvidenceReader:
    """Compares units with the sentences of evidence that share the most content with them."""

    verifier: SupportVerifier
    """Judges whether sentences support a unit."""

    def read(self, evidence: Sequence[Evidence], *, units: Sequence[Unit]) -> dict[str, Stance]:
        """The stance of the evidence on the units it is about, by unit id.

        Args:
            evidence: Evidence that came with the query.
            units: Units that it may confirm or contradict.
        """
        sentences = [sentence for source in evidence for sentence in split_sentences(source.text)][
            :MAX_SENTENCES
        ]
        stems = [stems_of(sentence) for sentence in sentences]
        stances: dict[str, Stance] = {}
        for unit in units[:MAX_UNITS] if sentences else ():
            near = _about(unit.text, sentences, stems)
            stance = self._stance(unit.text, near) if near else None
            if stance is not None:
                stances[unit.id] = stance
        return stances

    def _stance(self, text: str, sentences: Sequence[str]) -> Stance | None:
        judged = self.verifier.judge(candidate=text, context="\n".join(sentences))
        if judged.ruling == "supported":
            return "confirms"
        # Lack of support is no contradiction: the words must deny the unit.
        if any(contradict(text, sentence) for sentence in sentences):
            return "contradicts"
        return None


def _about(text: str, sentences: Sequence[str], stems: Sequence[frozenset[str]]) -> list[str]:
    wanted = content_stems(text)
    if not wanted:
        return []
    # The index is negated, so that the sort prefers the earlier of two equal sentences.
    shares = [(len(wanted & words) / len(wanted), -at) for at, words in enumerate(stems)]
    best = sorted(shares, reverse=True)[:_NEAREST]
    return [sentences[-at] for share, at in best if share >= _MIN_SHARED]
