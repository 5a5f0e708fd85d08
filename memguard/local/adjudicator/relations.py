"""How the texts of one read relate to one another, by their words and cosines.

`read_situation` says what a query asks for. `measure_nearness` and `relevance_of` relate units to
the query. `contradict` and `replaces` relate units to each other, and `read_stances` relates them
to the evidence that came with the query. The thresholds are ours, chosen on hand-written examples.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.cues import is_update, without_label
from memguard.local.encoder import LocalEmbeddings, Matrix
from memguard.local.statements import split_sentences
from memguard.local.verifier import lexicon
from memguard.local.verifier.support import SupportVerifier
from memguard.local.verifier.words import (
    OPPOSITE_STEMS,
    looks_foreign,
    read_words,
    split_words,
    stem,
    stems_of,
)
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Turn
from memguard.schema.read import Evidence, Mode, ReadCase, Situation, Target
from memguard.schema.units import Kind, Relevance, Unit

FOREIGN = "the query is probably not English, and the rules read English only"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")

Stance = Literal["confirms", "contradicts"]
"""What evidence says about a unit."""

DIRECT = 0.40
"""Minimum cosine for direct relevance: the query is about this unit."""
INDIRECT = 0.22
"""Minimum cosine for indirect relevance."""
INDIRECT_PREFERENCE = 0.15
"""The same for preferences if the query asks for advice."""
INDIRECT_CONSTRAINT = 0.12
"""The same for constraints, which apply to much that they share no word with."""
DIRECT_PERSONAL = 0.20
"""Minimum cosine for direct relevance if users ask about themselves: such questions are short and
share few words with the answer."""
# Pairs of a minimum cosine and a number of shared stems that together make a unit direct.
_DIRECT_BY_WORDS = ((0.30, 1), (INDIRECT, 2))
# Factor on the cosine with an earlier turn of the user, relative to the query's own.
_EARLIER = 0.85
# How many earlier turns of the user count if the query does not point back to one.
_RECENT_TURNS = 3
# Maximum number of characters that are embedded; the model reads about a thousand.
_TEXT_CHARS = 2_000
_ADVICE = frozenset({"recommendation", "planning"})
_USER_WORD = re.compile(r"^(?:the )?user(?:['\u2019]s)?\s+", re.IGNORECASE)

# Share of the shorter sentence's content stems that both must have to be about the same thing.
_SAME_TOPIC = 0.5
# The same share for two numbers, or two opposites, to be about the same thing.
_SAME_STATEMENT = 0.7
REPLACES = 0.45
"""Minimum cosine for a sentence that reports a change to replace another one."""
_REPLACEABLE: frozenset[Kind] = frozenset({"preference", "constraint", "fact", "belief"})
_DISLIKING = stems_of("dislike hate detest avoid refuse quit stopped allergic")
# Words that say how a statement is meant, not what it is about.
_MEANINGLESS = _DISLIKING | stems_of(
    " ".join(lexicon.POSITIVE) + " prefers likes wants fond into user now longer anymore really"
)
_I = re.IGNORECASE
# Facts that have one value at a time: two values of one slot contradict each other.
_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("home", re.compile(r"\b(?:lives? in|moved to|based in|resides? in) ([A-Z][\w' -]*)")),
    ("job", re.compile(r"\b(?:works? as|job is|employed as) (?:an? )?([\w' -]+)", _I)),
    ("employer", re.compile(r"\b(?:works? (?:at|for)|employed by) ([\w' -]+)", _I)),
    ("age", re.compile(r"\b(?:is|am|turned) (\d{1,3})(?: years old)?$", _I)),
    ("marriage", re.compile(r"\b(?:is|am) (single|married|divorced|engaged|widowed)\b", _I)),
    ("name", re.compile(r"\bname is ([\w' -]+)", _I)),
)  # fmt: skip
_FAVOURITE = re.compile(r"\bfavou?rite ([\w -]{1,60}?) (?:is|are) ([\w' -]+)", _I)
# Where the value of a slot ends: "a nurse and lives in Lyon" is the job "a nurse".
_VALUE_END = re.compile(r"\b(?:and|but|because|since|with|where|which|who|now|instead)\b.*", _I)

MAX_RELATED = 1_000
"""Maximum number of units that are compared with one another, in the order of recall."""
MAX_SENTENCES = 600
"""Maximum number of sentences of evidence that are read, from the beginning."""
MAX_UNITS = 30
"""Maximum number of units that are compared with evidence, in the order of recall."""
# Maximum number of sentences that one unit is compared with.
_NEAREST = 4
# Share of a unit's content stems that a sentence must contain to be about it.
_MIN_SHARED = 0.5


def read_situation(query: str, *, dialogue: Sequence[Turn] = ()) -> Situation | Inconclusive:
    """The situation of a query.

    The last question decides, or the last sentence if there is no question. If the query points
    back ("the situation we discussed"), the user's last turns in `dialogue` are read as well.

    Returns:
        The situation, or `Inconclusive` if the query does not seem to be English.
    """
    if is_foreign(query):
        return Inconclusive(reason="too_close", detail=FOREIGN)
    ask = last_request(query)
    mode = _mode(ask, query=query)
    target = _target(ask, query=query, mode=mode, dialogue=dialogue)
    asks_view = cues.VIEW.search(query.casefold()) is not None
    return Situation(target=target, mode=mode, asks_view=asks_view)


def recent_user_text(dialogue: Sequence[Turn]) -> str:
    """What the user said in the last four turns."""
    return " ".join(turn.content for turn in dialogue[-4:] if turn.role == "user")


def last_request(query: str) -> str:
    """The last question of a query, or its last sentence if there is no question."""
    sentences = [hit[0].strip() for hit in _SENTENCE.finditer(query) if hit[0].strip()]
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    return (questions or sentences or [query.strip()])[-1]


def is_small_talk(query: str) -> bool:
    """Whether a query asks nothing: a greeting, thanks."""
    return cues.SMALL_TALK.match(query.strip()) is not None


def is_foreign(query: str) -> bool:
    """Whether a query does not seem to be English."""
    # Stricter than `looks_foreign`, since a query is short: words that several languages share are
    # not counted for any of them.
    words = {span.text.casefold() for span in split_words(query)} - cues.SHARED
    abroad = words & (cues.ABROAD | lexicon.ABROAD)
    english = words & (lexicon.STOP - cues.ABROAD - lexicon.ABROAD)
    return looks_foreign(query) or len(abroad) > len(english)


def points_back(query: str) -> bool:
    """Whether a query refers to what was said before: "the situation we discussed"."""
    return cues.POINTING.search(query) is not None


def _mode(ask: str, *, query: str) -> Mode:
    # The last request first; the rest of the query decides only if that tells nothing.
    for text in (ask, query):
        if cues.RECOMMENDATION.search(text):
            return "recommendation"
        if cues.PLANNING.search(text):
            return "planning"
        if cues.DOING.search(text):
            return "support"
        if text.endswith("?"):
            return "factual"
    return "support"


def _target(ask: str, *, query: str, mode: Mode, dialogue: Sequence[Turn]) -> Target:
    back = f" {recent_user_text(dialogue)}" if points_back(query) else ""
    if cues.FOR_OTHER.search(query + back):
        return "third_party"
    # "What should I give my sister?" is about the sister, so this is tried second.
    return "user" if mode in _ADVICE or cues.FIRST_PERSON.search(ask) else "world"


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearness:
    """Cosines of one read."""

    query: Matrix
    """Cosine of each of the N units with the query, shape (N,)."""
    between: Matrix
    """Cosine of every two of the first M units, shape (M, M); M is at most `MAX_RELATED`."""
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

    `texts` are those of the units, and `names` those of the user, case-folded.
    """
    # The end of a long query, and its last request alone: what comes before is often background.
    queries = [case.query[-_TEXT_CHARS:], last_request(case.query)[-_TEXT_CHARS:]]
    spoken = [turn.content for turn in case.dialogue if turn.role == "user"]
    back = points_back(case.query)
    turns = [text[:_TEXT_CHARS] for text in (spoken if back else spoken[-_RECENT_TURNS:])]
    topics = [_topic(text, names=names) for text in texts]
    rows = np.array(embeddings.embed_documents([*queries, *turns, *topics]), dtype=np.float32)
    first, later, units = rows[:2], rows[2 : 2 + len(turns)], rows[2 + len(turns) :]
    near = (units @ first.T).max(axis=1) if len(units) else np.zeros(0, dtype=np.float32)
    if len(later) and len(units):
        earlier = (units @ later.T).max(axis=1) * (1.0 if back else _EARLIER)
        # Unless the query points back, an earlier topic strengthens a nearness but creates none.
        near = np.maximum(near, earlier if back else np.where(near >= INDIRECT / 2, earlier, near))
    content = content_stems(case.query)
    return Nearness(
        query=near,
        between=units[:MAX_RELATED] @ units[:MAX_RELATED].T,
        shared=tuple(content & content_stems(text) for text in texts),
    )


def _topic(text: str, *, names: frozenset[str]) -> str:
    """A unit's text without "The user" or the user's name, which would make all units alike."""
    topic = _USER_WORD.sub("", without_label(text))
    named = cues.NAMED.match(topic)
    if named is not None and named[1].casefold() in names:
        topic = topic[named.end() :].strip()
    return topic[:_TEXT_CHARS] or text[:_TEXT_CHARS]


def content_stems(text: str) -> frozenset[str]:
    """Stems of a text's words that are neither stop words nor negations."""
    empty = lexicon.STOP | lexicon.NEGATIONS
    return frozenset(
        stem(span.text) for span in split_words(text) if span.text.casefold() not in empty
    )


def relevance_of(
    cosine: float, *, kind: Kind, query: str, shared: frozenset[str], situation: Situation
) -> Relevance:
    """How relevant a unit of some kind is to a query.

    `cosine` is that of the two, `shared` are the content stems that they have in common, and
    `situation` is what the query asks for.
    """
    by_words = any(
        cosine >= minimum and len(shared) >= count for minimum, count in _DIRECT_BY_WORDS
    )
    personal = situation.target == "user" and situation.mode == "factual"
    if cosine >= (DIRECT_PERSONAL if personal else DIRECT) or by_words:
        return "direct"
    # "Where shall we eat?" shares no word with a peanut allergy.
    if kind == "safety" and cues.HEALTH.search(query):
        return "direct"
    minimum = INDIRECT
    if kind in {"safety", "constraint"}:
        minimum = INDIRECT_CONSTRAINT
    elif kind == "preference" and situation.mode in _ADVICE:
        minimum = INDIRECT_PREFERENCE
    return "indirect" if cosine >= minimum else "none"


def contradict(first: str, second: str) -> bool:
    """Whether two sentences contradict each other, judged by their words."""
    first_slots, second_slots = _slots(first), _slots(second)
    shared_slots = first_slots.keys() & second_slots.keys()
    if any(first_slots[name].isdisjoint(second_slots[name]) for name in shared_slots):
        return True
    stems, others = _content(first), _content(second)
    shorter = min(len(stems), len(others))
    if shorter == 0:
        return False
    common = len(stems & others) / shorter
    if common >= _SAME_TOPIC and _is_affirmative(first) != _is_affirmative(second):
        return True
    numbers = _numbers(first), _numbers(second)
    if common >= _SAME_STATEMENT and all(numbers) and numbers[0].isdisjoint(numbers[1]):
        return True
    # Without the pair of opposites itself, which the two cannot have in common.
    rest = shorter - 1
    opposites = (OPPOSITE_STEMS.get(word, frozenset()) for word in stems - others)
    opposed = any(words & (others - stems) for words in opposites)
    return opposed and rest > 0 and len(stems & others) / rest >= _SAME_STATEMENT


def replaces(later: str, earlier: str, *, kinds: tuple[Kind, Kind], cosine: float) -> bool:
    """Whether a sentence that reports a change replaces another one about the same thing.

    `kinds` are those of `later` and `earlier`, and `cosine` is that of the two sentences.
    """
    same_kind = kinds[0] == kinds[1] or set(kinds) <= {"preference", "constraint"}
    if not same_kind or kinds[0] not in _REPLACEABLE or cosine < REPLACES:
        return False
    return is_update(later) and not is_update(earlier)


# Every unit is compared with all the others, so what these find in one text is cached.
@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    stems = content_stems(without_label(text)) - _MEANINGLESS
    return frozenset(word for word in stems if not any(char.isdigit() for char in word))


@lru_cache(maxsize=4096)
def _is_affirmative(text: str) -> bool:
    """Whether a text has an even number of negations and words of dislike."""
    negations = 0
    for span in split_words(without_label(text)):
        word = span.text.casefold().replace("\u2019", "'")
        negations += word in lexicon.NEGATIONS or word.endswith("n't")
        negations += stem(word) in _DISLIKING
    return negations % 2 == 0


@lru_cache(maxsize=4096)
def _numbers(text: str) -> frozenset[str]:
    return read_words(text).values


@lru_cache(maxsize=4096)
def _slots(text: str) -> dict[str, frozenset[str]]:
    statement = without_label(text).rstrip(".! ")
    values: dict[str, frozenset[str]] = {}
    for name, pattern in _SLOTS:
        hit = pattern.search(statement)
        if hit is not None:
            values[name] = _value(hit[1])
    hit = _FAVOURITE.search(statement)
    if hit is not None:
        values[f"favourite {hit[1].casefold()}"] = _value(hit[2])
    return {name: value for name, value in values.items() if value}


def _value(text: str) -> frozenset[str]:
    return content_stems(_VALUE_END.sub("", text))


def read_stances(
    evidence: Sequence[Evidence], units: Sequence[Unit], *, verifier: SupportVerifier
) -> dict[str, Stance]:
    """The stance of the evidence on the units it is about, by unit id.

    A unit is compared with the sentences that share the most content with it. The verifier judges
    whether they support it.
    """
    sentences = [sentence for source in evidence for sentence in split_sentences(source.text)]
    sentences = sentences[:MAX_SENTENCES]
    stems = [stems_of(sentence) for sentence in sentences]
    stances: dict[str, Stance] = {}
    # The nearest units come first; each costs a run of the verifier.
    for unit in units[:MAX_UNITS]:
        near = _about(unit.text, sentences, stems)
        if not near:
            continue
        if verifier.judge(candidate=unit.text, context="\n".join(near)).ruling == "supported":
            stances[unit.id] = "confirms"
        # Lack of support is not a contradiction: the words must deny the unit.
        elif any(contradict(unit.text, sentence) for sentence in near):
            stances[unit.id] = "contradicts"
    return stances


def _about(text: str, sentences: Sequence[str], stems: Sequence[frozenset[str]]) -> list[str]:
    content = content_stems(text)
    if not content:
        return []
    # The index is negated, so that the sort prefers the earlier of two equal sentences.
    shares = [(len(content & words) / len(content), -at) for at, words in enumerate(stems)]
    best = sorted(shares, reverse=True)[:_NEAREST]
    return [sentences[-at] for share, at in best if share >= _MIN_SHARED]
