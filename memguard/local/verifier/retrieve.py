"""The units of a long context that are worth laying beside a candidate."""

from collections.abc import Mapping, Sequence

from memguard.local.verifier.units import Unit
from memguard.local.verifier.words import idf_of, read_words


def best_units(
    claim: str,
    units: Sequence[Unit],
    *,
    limit: int,
    idf: Mapping[str, float],
    default: float,
) -> tuple[Unit, ...]:
    """The units that share the rarest words with a claim, and their neighbours, in order.

    Args:
        claim: The claim.
        units: All units.
        limit: How many to keep; all of them when there are no more than that.
        idf: Rarity by stem.
        default: Rarity of a stem outside that table.
    """
    if len(units) <= limit:
        return tuple(units)
    words = read_words(claim)
    rarity = idf_of(words, table=idf, default=default)
    weights = {
        each: float(value)
        for each, value, stop in zip(words.stems, rarity, words.stop, strict=True)
        if not stop
    }
    scores: list[float] = []
    for unit in units:
        theirs = read_words(unit.labelled, at=unit.at)
        shared = sum(weights.get(each, 0.0) for each in frozenset(theirs.stems))
        scores.append(shared + default * len(words.values & theirs.values))
    # Ties go to what was said last: it is more likely what a memory was just made from.
    ranked = sorted(range(len(units)), key=lambda index: (-scores[index], -index))
    kept: dict[int, None] = {}
    for index in ranked:
        for place in (index, index - 1, index + 1):
            if 0 <= place < len(units) and len(kept) < limit:
                kept.setdefault(place)
    return tuple(units[index] for index in sorted(kept))
