"""Which units of a read are so clearly of another topic that no model needs to be asked."""

import re
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from memguard.instructions import find_instruction
from memguard.local.adjudicator.cues import ANSWER_FORM
from memguard.local.pieces import kind_without_verdict
from memguard.local.relevance.requests import asks_for_everything, continues
from memguard.local.relevance.topics import are_apart, share_words, topics_of
from memguard.local.safety import looks_like_safety
from memguard.schema.memory import Turn
from memguard.schema.units import Unit

if TYPE_CHECKING:
    from memguard.local.relevance.model import RelevanceModel

STRICT = 0.15
"""Maximum score of a unit that is left out, below `CLEARLY_OTHER`. Measured: see
`python -m benchmarks.relevance.local_first`."""
# Wishes about the form of answers concern every answer; these words are of five languages.
_FORM_WORDS = (
    "answer", "reply", "replies", "respons", "emoji", "bullet", "tone", "language", "units",
    "antwort", "sprache", "ton ", "du-form", "respuesta", "respond", "responde", "idioma", "tono",
    "réponse", "répond", "langue", "tutoie", "vouvoie", "回答", "回复", "语言", "语气", "称呼",
)  # fmt: skip
# A request of these words may rest on anything that the user likes or does.
_OPEN_WORDS = re.compile(
    r"\b(?:interests?|preferences?|tastes?|hobb(?:y|ies)|activit(?:y|ies)|ideas?|outlets?|projects?|"
    r"style|align(?:s|ed)?|based on|personality|interesse|vorliebe|geschmack|hobb|aktivität|idee|"
    r"intereses|preferencia|gustos|afici|actividad|intérêt|préférence|goûts|loisir|activité|idée)|"
    r"兴趣|爱好|偏好|活动|主意|想法",
    re.IGNORECASE,
)
_NEVER = frozenset({"safety", "constraint"})


class OtherTopics:
    """Finds units of other topics; the relevance model is loaded on first use. Thread-safe."""

    def __init__(self, model: "RelevanceModel | None" = None) -> None:
        self._model = model
        self._lock = Lock()

    def find(
        self, query: str, units: Sequence[Unit], *, dialogue: Sequence[Turn] = ()
    ) -> tuple[str, ...]:
        """Ids of the units that are clearly of another topic than the query.

        Both must say so: the score, and the words of the two texts, whose topics have nothing to
        do with each other. Never left out are safety constraints, other constraints, wishes about
        the form of answers, and what shares a longer word or a number with the query. Nothing is
        left out if the query asks for all that is remembered, continues an earlier turn, or has no
        word of any topic.
        """
        if not is_understood(query):
            return ()
        candidates = [unit for unit in units if may_be_left_out(unit, query=query)]
        if not candidates:
            return ()
        # All units are scored, because a score is relative to the others of the read.
        scores = self._loaded().score(query, [unit.text for unit in units], dialogue=dialogue)
        by_id = {unit.id: float(score) for unit, score in zip(units, scores, strict=True)}
        return tuple(unit.id for unit in candidates if by_id[unit.id] < STRICT)

    def _loaded(self) -> "RelevanceModel":
        with self._lock:
            if self._model is None:
                # Imported here, because numpy and the model are slow to import.
                from memguard.local.relevance.model import RelevanceModel  # noqa: PLC0415

                self._model = RelevanceModel()
            return self._model


def is_understood(query: str) -> bool:
    """Whether a query tells by itself what it is about, and asks for less than everything."""
    if asks_for_everything(query) or continues(query) or _OPEN_WORDS.search(query):
        return False
    return bool(topics_of(query))


def may_be_left_out(unit: Unit, *, query: str) -> bool:
    """Whether the words of a unit allow to leave it out of a read."""
    if unit.kind in _NEVER or looks_like_safety(unit.text) or find_instruction(unit.text):
        return False
    if kind_without_verdict(unit) in _NEVER or _is_about_answers(unit.text):
        return False
    return are_apart(query, unit.text) and not share_words(query, unit.text)


def _is_about_answers(text: str) -> bool:
    lowered = text.casefold()
    return ANSWER_FORM.search(text) is not None or any(word in lowered for word in _FORM_WORDS)
