"""From the top tokens at one position to the probability of yes.

ConsistencyGate's log-probability variant, arXiv 2607.22962, section 4: `p = softmax([log p(yes),
log p(no)])[yes]`. Sums the mass of every spelling of a word, since a tokenizer has several.
"""

import math
from collections.abc import Sequence

from memguard.schema.verdict import Inconclusive

_SENTINEL = -9999.0
"""What some providers return for a token whose log-probability was not computed."""

_WORD_MARKS = "\u2581\u0120\u010a"
"""What sentencepiece and byte-level BPE show for a leading space or line end."""

_MARKUP = " \t\r\n\"'`*_#>([{}]).,:;!" + _WORD_MARKS


def bare_token(token: str) -> str:
    """A token without white space, word marks and markup, in lower case."""
    return token.strip(_MARKUP).casefold()


def yes_no_probability(top: Sequence[tuple[str, float]]) -> float | Inconclusive:
    """The probability of yes among yes and no.

    A side that is not among the top tokens has at most the probability of the least likely token
    returned, and at most what the returned tokens leave over; it is given the smaller of the two.
    The second bound is ours: with one token returned, the first says nothing.

    Args:
        top: Tokens with their natural log-probabilities, in any order.

    Returns:
        A number in [0, 1]; inconclusive when neither side is there.
    """
    usable = [(bare_token(token), logp) for token, logp in top if _is_usable(logp)]
    masses = [min(1.0, math.exp(logp)) for _, logp in usable]
    yes = _mass("yes", usable)
    no = _mass("no", usable)
    if yes is None and no is None:
        shown = ", ".join(repr(token) for token, _ in sorted(top)[:8])
        return Inconclusive(
            reason="parse_failure", detail=f"neither yes nor no among the top tokens: {shown}"
        )
    rest = min(*masses, max(0.0, 1.0 - math.fsum(masses)))
    p_yes = rest if yes is None else yes
    p_no = rest if no is None else no
    total = p_yes + p_no
    if total <= 0.0:
        return Inconclusive(reason="parse_failure", detail="yes and no have no probability mass")
    return p_yes / total


def _is_usable(logp: float) -> bool:
    return math.isfinite(logp) and logp > _SENTINEL


def _mass(word: str, usable: Sequence[tuple[str, float]]) -> float | None:
    found = [min(1.0, math.exp(logp)) for token, logp in usable if token == word]
    # `fsum` is exact, so the order of the tokens cannot show.
    return math.fsum(found) if found else None
