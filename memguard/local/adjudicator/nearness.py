"""How near units are to a query and to one another: cosines of the built-in embedder."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memguard.local.adjudicator import patterns
from memguard.local.adjudicator.cues import bare
from memguard.local.adjudicator.situation import last_ask, points_back
from memguard.local.embedder import LocalEmbeddings, Matrix
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import split_words, stem
from memguard.schema.read import ReadCase, Situation
from memguard.schema.units import Kind, Relevance

DIRECT = 0.40
"""Cosine from which a unit is taken to be what the query is about. Ours, chosen on hand-written
examples; the embedder gives about 0.0 to 0.15 to unrelated sentences."""
INDIRECT = 0.22
"""Cosine from which it is taken to bear on it."""
INDIRECT_PREFERENCE = 0.15
"""The same for preferences where advice is asked for."""
INDIRECT_CONSTRAINT = 0.12
"""The same for constraints, which bear on much that they share no word with."""
_DIRECT_BY_WORDS = ((0.30, 1), (INDIRECT, 2))
"""With so many words in common, a cosine from here on makes a unit direct."""
DIRECT_PERSONAL = 0.20
"""Cosine from which a unit answers a question of the user about the user, which is mostly short and
shares few words with what was said."""
_EARLIER = 0.85
"""What nearness to an earlier turn of the user counts beside that to the query."""
_LATE_TURNS = 3
_ADVICE = frozenset({"recommendation", "planning"})
_TEXT_CHARS = 2_000
"""Characters of a text that are embedded; the model reads about a thousand."""

_USER_WORD = re.compile(r"^(?:the )?user(?:['\u2019]s)?\s+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearness:
    """Cosines of one read."""

    query: Matrix
    """Of each unit with the query."""
    between: Matrix
    """Of each unit with each other."""
    shared: tuple[frozenset[str], ...]
    """The stems of content that each unit has in common with the query."""


def measure(
    case: ReadCase,
    texts: Sequence[str],
    *,
    names: frozenset[str],
    embeddings: LocalEmbeddings,
) -> Nearness:
    """The cosines of a read; what was embedded before costs nothing.

    Args:
        case: The query, and the dialogue that it may point back to.
        texts: The units.
        names: Names of the user, in lower case.
        embeddings: The embedder.
    """
    asked = [case.query[-_TEXT_CHARS:], last_ask(case.query)[-_TEXT_CHARS:]]
    spoken = [turn.content for turn in case.dialogue if turn.role == "user"]
    back = points_back(case.query)
    turns = [text[:_TEXT_CHARS] for text in (spoken if back else spoken[-_LATE_TURNS:])]
    rows = np.array(
        embeddings.embed_documents(
            [*asked, *turns, *(_topic(text, names=names) for text in texts)]
        ),
        dtype=np.float32,
    )
    first, later, units = rows[:2], rows[2 : 2 + len(turns)], rows[2 + len(turns) :]
    near = (units @ first.T).max(axis=1) if len(units) else np.zeros(0, dtype=np.float32)
    if len(later) and len(units):
        earlier = (units @ later.T).max(axis=1) * (1.0 if back else _EARLIER)
        # Without a pointer back, an earlier topic adds to a nearness and makes none.
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
    """How a unit bears on the query.

    Args:
        cosine: Its nearness.
        kind: What it is.
        query: What is asked.
        shared: Stems of content in common.
        situation: What the query asks for.
    """
    by_words = any(cosine >= least and len(shared) >= words for least, words in _DIRECT_BY_WORDS)
    personal = situation.target == "user" and situation.mode == "factual"
    if cosine >= (DIRECT_PERSONAL if personal else DIRECT) or by_words:
        return "direct"
    if kind == "safety" and patterns.HEALTH.search(query):
        return "direct"
    least = INDIRECT
    if kind in {"safety", "constraint"}:
        least = INDIRECT_CONSTRAINT
    elif kind == "preference" and situation.mode in _ADVICE:
        least = INDIRECT_PREFERENCE
    return "indirect" if cosine >= least else "none"


def content_stems(text: str) -> frozenset[str]:
    """Stems of the words that carry content."""
    return frozenset(
        stem(span.text)
        for span in split_words(text)
        if span.text.casefold() not in lexicon.STOP
        and span.text.casefold() not in lexicon.NEGATIONS
    )


def _topic(text: str, *, names: frozenset[str]) -> str:
    """What a unit speaks of: without "The user" or the user's name, which all have in common."""
    said = _USER_WORD.sub("", bare(text))
    named = patterns.NAMED.match(said)
    if named is not None and named[1].casefold() in names:
        said = said[named.end() :].strip()
    return said[:_TEXT_CHARS] or text[:_TEXT_CHARS]
