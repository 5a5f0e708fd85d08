"""How near units are to a query and to one another, by cosines of the built-in embedder.

The thresholds are our own, chosen on hand-written examples. The embedder gives unrelated sentences
a cosine of about 0.0 to 0.15.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memguard.local.adjudicator import patterns
from memguard.local.adjudicator.cues import without_label
from memguard.local.adjudicator.situation import last_request, points_back
from memguard.local.embedder import LocalEmbeddings, Matrix
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import split_words, stem
from memguard.schema.read import ReadCase, Situation
from memguard.schema.units import Kind, Relevance

DIRECT = 0.40
"""Minimum cosine for direct relevance: the query is about this unit."""
INDIRECT = 0.22
"""Minimum cosine for indirect relevance."""
INDIRECT_PREFERENCE = 0.15
"""The same for preferences if the query asks for advice."""
INDIRECT_CONSTRAINT = 0.12
"""The same for constraints, which apply to much that they share no word with."""
# Pairs of a minimum cosine and a number of shared stems that together make a unit direct.
_DIRECT_BY_WORDS = ((0.30, 1), (INDIRECT, 2))
DIRECT_PERSONAL = 0.20
"""Minimum cosine for direct relevance if users ask about themselves: such questions are short and
share few words with the answer."""
# Factor on the cosine with an earlier turn of the user, relative to the query's own.
_EARLIER = 0.85
# How many earlier turns of the user count if the query does not point back to one.
_RECENT_TURNS = 3
_ADVICE = frozenset({"recommendation", "planning"})
# Maximum number of characters that are embedded; the model reads about a thousand.
_TEXT_CHARS = 2_000

_USER_WORD = re.compile(r"^(?:the )?user(?:['\u2019]s)?\s+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearness:
    """Cosines of one read."""

    query: Matrix
    """Cosine of each of the N units with the query, shape (N,)."""
    between: Matrix
    """Cosine of every two units, shape (N, N)."""
    shared: tuple[frozenset[str], ...]
    """For each unit, the content stems that it shares with the query."""


def measure_nearness(
    case: ReadCase,
    texts: Sequence[str],
    *,
    names: frozenset[str],
    embeddings: LocalEmbeddings,
) -> Nearness:
    """Compute the cosines of a read; cached texts are not embedded again.

    Args:
        case: The query, and the dialogue that it may point back to.
        texts: The texts of the units.
        names: Names of the user, case-folded.
        embeddings: The embedder.
    """
    # The end of a long query, and its last request alone: what comes before is often background.
    queries = [case.query[-_TEXT_CHARS:], last_request(case.query)[-_TEXT_CHARS:]]
    spoken = [turn.content for turn in case.dialogue if turn.role == "user"]
    back = points_back(case.query)
    turns = [text[:_TEXT_CHARS] for text in (spoken if back else spoken[-_RECENT_TURNS:])]
    rows = np.array(
        embeddings.embed_documents(
            [*queries, *turns, *(_topic(text, names=names) for text in texts)]
        ),
        dtype=np.float32,
    )
    first, later, units = rows[:2], rows[2 : 2 + len(turns)], rows[2 + len(turns) :]
    near = (units @ first.T).max(axis=1) if len(units) else np.zeros(0, dtype=np.float32)
    if len(later) and len(units):
        earlier = (units @ later.T).max(axis=1) * (1.0 if back else _EARLIER)
        # Unless the query points back, an earlier topic strengthens a nearness but creates none.
        near = np.maximum(near, earlier if back else np.where(near >= INDIRECT / 2, earlier, near))
    content = content_stems(case.query)
    return Nearness(
        query=near,
        between=units @ units.T,
        shared=tuple(content & content_stems(text) for text in texts),
    )


def relevance_of(
    cosine: float, *, kind: Kind, query: str, shared: frozenset[str], situation: Situation
) -> Relevance:
    """How relevant a unit is to the query.

    Args:
        cosine: The unit's cosine with the query.
        kind: The unit's kind.
        query: The query.
        shared: Content stems that the two share.
        situation: What the query asks for.
    """
    by_words = any(
        cosine >= minimum and len(shared) >= count for minimum, count in _DIRECT_BY_WORDS
    )
    personal = situation.target == "user" and situation.mode == "factual"
    if cosine >= (DIRECT_PERSONAL if personal else DIRECT) or by_words:
        return "direct"
    # "Where shall we eat?" shares no word with a peanut allergy.
    if kind == "safety" and patterns.HEALTH.search(query):
        return "direct"
    minimum = INDIRECT
    if kind in {"safety", "constraint"}:
        minimum = INDIRECT_CONSTRAINT
    elif kind == "preference" and situation.mode in _ADVICE:
        minimum = INDIRECT_PREFERENCE
    return "indirect" if cosine >= minimum else "none"


def content_stems(text: str) -> frozenset[str]:
    """Stems of a text's words that are neither stop words nor negations."""
    return frozenset(
        stem(span.text)
        for span in split_words(text)
        if span.text.casefold() not in lexicon.STOP
        and span.text.casefold() not in lexicon.NEGATIONS
    )


def _topic(text: str, *, names: frozenset[str]) -> str:
    """A unit's text without "The user" or the user's name, which would make all units alike."""
    topic = _USER_WORD.sub("", without_label(text))
    named = patterns.NAMED.match(topic)
    if named is not None and named[1].casefold() in names:
        topic = topic[named.end() :].strip()
    return topic[:_TEXT_CHARS] or text[:_TEXT_CHARS]
