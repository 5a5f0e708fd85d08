"""Computes the probability of yes from the top tokens at one position.

ConsistencyGate's log-probability variant, arXiv 2607.22962, section 4: `p = softmax([log p(yes),
log p(no)])[yes]`. The probabilities of all spellings are added, since a tokenizer has several.
"""

import math
from collections.abc import Sequence

from memguard.schema.decision import Inconclusive

# Some providers return this for a token whose log-probability was not computed.
_SENTINEL = -9999.0

# How sentencepiece and byte-level BPE write a leading space or a line end.
_WORD_MARKS = "\u2581\u0120\u010a"

_MARKUP = " \t\r\n\"'`*_#>([{}]).,:;!" + _WORD_MARKS


def bare_token(token: str) -> str:
    """The token in lower case, without white space, word marks and markup."""
    return token.strip(_MARKUP).casefold()


def yes_no_probability(top: Sequence[tuple[str, float]]) -> float | Inconclusive:
    """The probability of yes, relative to that of yes and no.

    If one of the two is not among the top tokens, an upper bound of its probability is used: the
    smaller of the lowest probability of a returned token and the mass that the returned tokens
    leave. The second bound is an addition to the paper, since the first says nothing if one token
    is returned.

    Args:
        top: Tokens with their natural log-probabilities, in any order.

    Returns:
        A number in [0, 1], or inconclusive if neither yes nor no is among the tokens.
    """
    usable = [
        (bare_token(token), logp) for token, logp in top if math.isfinite(logp) and logp > _SENTINEL
    ]
    # Rounding can make a log-probability slightly positive.
    masses = [min(1.0, math.exp(logp)) for _, logp in usable]
    yes = _mass("yes", usable)
    no = _mass("no", usable)
    if yes is None and no is None:
        tokens = ", ".join(repr(token) for token, _ in sorted(top)[:8])
        return Inconclusive(
            reason="parse_failure", detail=f"neither yes nor no among the top tokens: {tokens}"
        )
    rest = min(*masses, max(0.0, 1.0 - math.fsum(masses)))
    p_yes = rest if yes is None else yes
    p_no = rest if no is None else no
    total = p_yes + p_no
    if total <= 0.0:
        return Inconclusive(reason="parse_failure", detail="yes and no have no probability mass")
    return p_yes / total


def _mass(word: str, usable: Sequence[tuple[str, float]]) -> float | None:
    masses = [min(1.0, math.exp(logp)) for token, logp in usable if token == word]
    # `fsum` is exact, so the result does not depend on the order of the tokens.
    return math.fsum(masses) if masses else None
