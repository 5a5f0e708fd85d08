"""Whether evidence confirms a unit, by the support verifier, or contradicts it, by its words."""

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
"""What evidence says of a unit, where it says anything."""

MOST_SENTENCES = 600
"""Sentences of evidence that are looked at, from its beginning."""
MOST_UNITS = 30
"""Units that are laid beside evidence, in the order of recall."""
_NEAREST = 4
_IN_COMMON = 0.5
"""Share of a unit's content that a sentence must hold to be about it."""


@dataclass(frozen=True, kw_only=True)
class EvidenceReader:
    """Lays units beside the sentences of evidence that share the most with them."""

    verifier: SupportVerifier

    def read(self, evidence: Sequence[Evidence], *, units: Sequence[Unit]) -> dict[str, Stance]:
        """The stance on each unit that evidence speaks of, by unit id.

        Args:
            evidence: What came with the query.
            units: What may be confirmed or contradicted.
        """
        sentences = [sentence for each in evidence for sentence in split_sentences(each.text)][
            :MOST_SENTENCES
        ]
        stems = [stems_of(sentence) for sentence in sentences]
        found: dict[str, Stance] = {}
        for unit in units[:MOST_UNITS] if sentences else ():
            near = _about(unit.text, sentences, stems)
            stance = self._stance(unit.text, near) if near else None
            if stance is not None:
                found[unit.id] = stance
        return found

    def _stance(self, text: str, sentences: Sequence[str]) -> Stance | None:
        judged = self.verifier.judge(candidate=text, context="\n".join(sentences))
        if judged.ruling == "supported":
            return "confirms"
        if any(contradict(text, sentence) for sentence in sentences):
            return "contradicts"
        return None


def _about(text: str, sentences: Sequence[str], stems: Sequence[frozenset[str]]) -> list[str]:
    wanted = content_stems(text)
    if not wanted:
        return []
    shares = [(len(wanted & each) / len(wanted), -at) for at, each in enumerate(stems)]
    best = sorted(shares, reverse=True)[:_NEAREST]
    return [sentences[-at] for share, at in best if share >= _IN_COMMON]
