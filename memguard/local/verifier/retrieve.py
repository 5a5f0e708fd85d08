"""Lexical retrieval: the units of a long context that a candidate is compared with."""

from collections.abc import Mapping, Sequence

from memguard.local.verifier.units import TextUnit
from memguard.local.verifier.words import idf_of, read_words


def best_units(
    claim: str,
    units: Sequence[TextUnit],
    *,
    limit: int,
    idf: Mapping[str, float],
    default: float,
) -> tuple[TextUnit, ...]:
    """The units that share the rarest words with a claim, and their neighbours, in context order.

    Args:
        claim: The claim.
        units: All units.
        limit: How many units to return at most.
        idf: Inverse document frequency by stem.
        default: The same for a stem that is not in the table.
    """
    if len(units) <= limit:
        return tuple(units)
    words = read_words(claim)
    rarity = idf_of(words, table=idf, default=default)
    weights = {
        word: float(value)
        for word, value, stop in zip(words.stems, rarity, words.stop, strict=True)
        if not stop
    }
    scores: list[float] = []
    for unit in units:
        unit_words = read_words(unit.labelled, at=unit.at)
        shared = sum(weights.get(word, 0.0) for word in frozenset(unit_words.stems))
        # A shared number or date counts as much as the rarest word.
        scores.append(shared + default * len(words.values & unit_words.values))
    # Ties go to the later unit: a memory is more likely to come from what was just said.
    ranked = sorted(range(len(units)), key=lambda index: (-scores[index], -index))
    chosen: set[int] = set()
    for index in ranked:
        # The neighbours too: "Yes, for years" shares no word with the claim, its question does.
        for neighbour in (index, index - 1, index + 1):
            if 0 <= neighbour < len(units) and len(chosen) < limit:
                chosen.add(neighbour)
    return tuple(units[index] for index in sorted(chosen))
