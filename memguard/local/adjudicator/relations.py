"""How the texts of one read relate to one another, by their words and cosines.

`measure_nearness` and `relevance_of` relate units to the query. `contradict` and `replaces` relate
units to each other, and `read_stances` relates them to the evidence that came with the query. The
thresholds are ours, chosen on hand-written examples.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from memguard.local.adjudicator import cues
from memguard.local.adjudicator.attributes import is_update
from memguard.local.adjudicator.cues import without_label
from memguard.local.adjudicator.languages import FUNCTION_WORDS, language_of
from memguard.local.adjudicator.people import names_in, same_owner
from memguard.local.encoder import LocalEmbeddings, Matrix
from memguard.local.relevance import CLEARLY_OTHER, DIRECT, RelevanceModel
from memguard.local.relevance.topics import share_topic, topics_of
from memguard.local.statements import split_sentences
from memguard.local.verifier import lexicon
from memguard.local.verifier.support import SupportVerifier
from memguard.local.verifier.words import (
    OPPOSITE_STEMS,
    read_words,
    split_words,
    stem,
    stems_of,
)
from memguard.schema.read import Evidence, ReadCase
from memguard.schema.units import Kind, Relevance, Unit

Stance = Literal["confirms", "contradicts"]
"""What evidence says about a unit."""

SOMEWHAT_ALIKE = 0.5
"""Minimum score of a unit about a person in a question about the world, without a common word."""
FAR = 0.15
"""Below this score, even what is wanted is clearly about something else."""
DISTANT = 0.1
"""Below this score, a common word or topic is no sign of relevance."""
# Minimum score of a unit whose topics have nothing to do with those of the query.
_APART = 0.35
# A word that no more texts of a read have tells something about each of them.
_MIN_COMMON = 3
# Pairs of a minimum score and a number of shared content stems that together make a unit direct.
_DIRECT_BY_WORDS = ((0.45, 1), (0.3, 2))
# Maximum number of characters that are embedded; the model reads about a thousand.
_TEXT_CHARS = 2_000
_USER_WORD = re.compile(
    r"^(?:(?:the )?user(?:['\u2019]s)?|(?:der|die) nutzer(?:in)?|el usuario|la usuaria|"
    r"l['\u2019]utilisat(?:eur|rice)) |^用户",
    re.IGNORECASE,
)

# Share of the shorter sentence's content stems that both must have to state the same thing.
_SAME_STATEMENT = 0.7
# The same share to be about the same attribute, of which one reports a change.
_SAME_ATTRIBUTE = 0.34
REPLACES = 0.45
"""Minimum cosine for a sentence that reports a change to replace another one."""
SAME_CHOICE = 0.55
"""The same for two preferences that share no word, such as coffee and tea."""
_REPLACEABLE: frozenset[Kind] = frozenset({"preference", "constraint", "fact", "belief"})
_DISLIKING = stems_of("dislike hate detest avoid refuse quit stopped allergic")
# Words that say how a statement is meant, not what it is about.
_MEANINGLESS = _DISLIKING | stems_of(
    " ".join(lexicon.POSITIVE) + " prefers likes wants fond into user now longer anymore really"
)
_NEGATIONS = lexicon.NEGATIONS | lexicon.word_set(
    "nicht kein keine keinen keinem keiner nie niemals ohne pas jamais aucun aucune sans nunca "
    "ningún ninguna sin"
)
_EMPTY = lexicon.STOP | lexicon.NEGATIONS
# Numbers in words; two values of one statement differ in them alone.
_COUNTS = stems_of(" ".join([*lexicon.SMALL_NUMBERS, *lexicon.TENS, *lexicon.OTHER_NUMBERS]))
_DIGIT = re.compile(r"\d")
_HAN = re.compile("[\u3400-\u9fff]+")
_HAN_STOP = lexicon.word_set("用户 我的 我们 什么 怎么 多少 现在 一个 今天 喜欢 是什")
_I = re.IGNORECASE
# Facts that have one value at a time: two values of one slot contradict each other.
_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "home",
        re.compile(
            r"\b(?i:lives? in|moved to|based in|resides? in|"
            r"(?:wohn|leb)[te](?: jetzt| nun)? in|"
            r"viv[eo](?: ahora)? en|"
            r"(?:habite|vis|vit)(?: maintenant| désormais)? à) "
            r"([A-ZÀ-Þ][\w' -]*)|"
            r"(?:住在|搬到)([\u3400-\u9fff]{2,6})"
        ),
    ),
    ("job", re.compile(r"\b(?:works? as|job is|employed as) (?:an? )?([\w' -]+)", _I)),
    (
        "employer",
        re.compile(
            r"\b(?:works? (?:at|for)|employed by|arbeitet?e?(?: jetzt| nun)? bei|"
            r"trabaj[ao](?: ahora)? (?:en|para)|"
            r"travaille(?: maintenant| désormais)? (?:chez|pour)) "
            r"([\w' -]+)|在([\u3400-\u9fff]{2,6})(?:工作|上班)",
            _I,
        ),
    ),
    ("age", re.compile(r"\b(?:is|am|turned) (\d{1,3})(?: years old)?$", _I)),
    ("marriage", re.compile(r"\b(?:is|am) (single|married|divorced|engaged|widowed)\b", _I)),
    ("name", re.compile(r"\bname is ([\w' -]+)", _I)),
)  # fmt: skip
_FAVOURITE = re.compile(r"\bfavou?rite ([\w -]{1,60}?) (?:is|are) ([\w' -]+)", _I)
_DAYS: tuple[str, ...] = (
    "mondays? montags? lunes lundis? 周一 星期一 礼拜一",
    "tuesdays? dienstags? martes mardis? 周二 星期二 礼拜二",
    "wednesdays? mittwochs? miércoles mercredis? 周三 星期三 礼拜三",
    "thursdays? donnerstags? jueves jeudis? 周四 星期四 礼拜四",
    "fridays? freitags? viernes vendredis? 周五 星期五 礼拜五",
    "saturdays? samstags? sonnabends? sábados? samedis? 周六 星期六 礼拜六",
    "sundays? sonntags? domingos? dimanches? 周日 周天 星期日 星期天 礼拜天",
)
_WEEKDAYS = tuple(
    re.compile(r"(?<![a-zà-ÿ])(?:" + "|".join(names.split()) + r")(?![a-zà-ÿ])", _I)
    for names in _DAYS
)
_OF_A_THING = re.compile(
    r"^(?:the (?!user\b)|the user['\u2019]s|my|our|mein\w{0,2}|unser\w{0,2}|der|die|das|el|la|los|"
    r"las|mis?|nuestr[oa]s?|le|les|mon|ma|mes|notre|nos)\b|^(?:我们?的|用户的|(?!我|用户|他|她)"
    r"[\u3400-\u9fff])|^l['\u2019]",
    _I,
)
"""A sentence about a thing rather than about what a person does."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearness:
    """Scores and cosines of one read."""

    query: Matrix
    """Relevance of each of the N units to the query in [0, 1], shape (N,)."""
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
    relevance: RelevanceModel,
) -> Nearness:
    """Compute the scores and cosines of a read; cached texts are not embedded again.

    `texts` are those of the units, and `names` those of the user, case-folded.
    """
    # Of the units that are compared with one another only.
    topics = [_topic(text, names=names) for text in texts[:MAX_RELATED]]
    rows = embeddings.embed_documents(topics) if topics else []
    units = np.array(rows, dtype=np.float32) if topics else np.zeros((0, 1), dtype=np.float32)
    # A name that a question and all memories have in common tells nothing about the topic.
    named = names_in(case.query, tuple(names)) | names
    content = content_stems(case.query) - stems_of(" ".join(named))
    return Nearness(
        query=relevance.score(case.query, texts, dialogue=case.dialogue),
        between=units @ units.T,
        shared=_shared_stems(content, [content_stems(text) for text in texts]),
    )


def _shared_stems(
    query: frozenset[str], texts: Sequence[frozenset[str]]
) -> tuple[frozenset[str], ...]:
    """The stems that each text shares with the query, without those that most of them have.

    Where a third of the memories is about the person who is asked about, that name tells nothing.
    """
    counts = Counter(word for text in texts for word in text & query)
    limit = max(_MIN_COMMON, len(texts) / 3)
    telling = frozenset(word for word in query if counts[word] <= limit)
    return tuple(text & telling for text in texts)


def _topic(text: str, *, names: frozenset[str]) -> str:
    """A unit's text without "The user" or the user's name, which would make all units alike."""
    topic = _USER_WORD.sub("", without_label(text))
    first, _, rest = topic.partition(" ")
    topic = rest.strip() if first.casefold() in names else topic
    return topic[:_TEXT_CHARS] or text[:_TEXT_CHARS]


def content_stems(text: str) -> frozenset[str]:
    """Stems of a text's words that are neither stop words nor negations."""
    if language_of(text) == "zh":
        # Nothing here knows the words of Chinese, so pairs of characters stand for them.
        runs = _HAN.findall(text)
        return frozenset(run[at : at + 2] for run in runs for at in range(len(run) - 1)) - _HAN_STOP
    language = language_of(text)
    # The words of grammar of one language may have a meaning in another.
    empty = _EMPTY if language == "en" else _EMPTY | FUNCTION_WORDS[language]
    return frozenset(
        stem(span.text) for span in split_words(text) if span.text.casefold() not in empty
    )


def relevance_of(
    score: float,
    *,
    kind: Kind,
    query: str,
    text: str,
    shared: frozenset[str],
    is_wanted: bool = False,
    is_about_world: bool = False,
) -> Relevance:
    """How relevant a unit of some kind is to a query.

    Args:
        score: That of the unit, by the relevance model.
        kind: The kind of the unit.
        query: What the user asks.
        text: The unit.
        shared: The content stems that the two have in common.
        is_wanted: Whether such units bear on much: wishes where advice is asked for.
        is_about_world: Whether the query is about nobody, so that a unit about a person bears on it
            only if they have something in common.

    Returns:
        `none` only for what is clearly about something else.
    """
    if score >= DIRECT or any(score >= low and len(shared) >= n for low, n in _DIRECT_BY_WORDS):
        return "direct"
    # "Where shall we eat?" shares no word with a peanut allergy.
    if kind == "safety" and is_shared_matter(query):
        return "direct"
    same = share_topic(query, text)
    if is_about_world and not (same or shared) and score < SOMEWHAT_ALIKE:
        return "none"
    # A taste or a limit need not be of the same topic to bear on a request.
    apart = same is False and not shared and kind not in {"preference", "constraint"}
    if score >= (_APART if apart else CLEARLY_OTHER):
        # Where neither words nor topics tell anything of another language, nothing is known.
        is_english = language_of(query) == language_of(text) == "en"
        return "indirect" if is_english or same or shared else "uncertain"
    # A constraint applies to much that it shares no word with, and a wish to much of its topic.
    is_limit = kind == "constraint" and same is not False
    if score >= DISTANT and (is_limit or (kind == "preference" and same)):
        return "indirect"
    return "uncertain" if is_wanted and same is not False and score >= FAR else "none"


def is_shared_matter(query: str) -> bool:
    """Whether a query is about food, travel, health and the like, which safety always bears on."""
    return cues.HEALTH.search(query) is not None or bool(
        topics_of(query) & {"food", "travel", "health", "sport"}
    )


def contradict(first: str, second: str) -> bool:
    """Whether two sentences contradict each other, judged by their words."""
    first_slots, second_slots = slots_of(first), slots_of(second)
    shared_slots = first_slots.keys() & second_slots.keys()
    if any(first_slots[name].isdisjoint(second_slots[name]) for name in shared_slots):
        return True
    if _on_other_days(first, second):
        return True
    stems, others = _content(first), _content(second)
    shorter = min(len(stems), len(others))
    if shorter == 0:
        return False
    common = len(stems & others) / shorter
    if common >= _SAME_STATEMENT and _is_affirmative(first) != _is_affirmative(second):
        return True
    numbers = _numbers(first), _numbers(second)
    if common >= _SAME_STATEMENT and all(numbers) and numbers[0].isdisjoint(numbers[1]):
        return True
    # Without the pair of opposites itself, which the two cannot have in common.
    rest = shorter - 1
    opposites = (OPPOSITE_STEMS.get(word, frozenset()) for word in stems - others)
    opposed = any(words & (others - stems) for words in opposites)
    return opposed and rest > 0 and len(stems & others) / rest >= _SAME_STATEMENT


def _on_other_days(first: str, second: str) -> bool:
    """Whether two sentences say the same of different days of the week."""
    (days, text), (other_days, other) = _weekdays(first), _weekdays(second)
    if not days or not other_days or not days.isdisjoint(other_days):
        return False
    # Somebody may swim on two days; "my choir meets on" names its day.
    if not (_OF_A_THING.search(first) and _OF_A_THING.search(second)):
        return False
    stems, others = _content(text), _content(other)
    shorter = min(len(stems), len(others))
    return shorter > 0 and len(stems & others) / shorter >= _SAME_STATEMENT


@lru_cache(maxsize=4096)
def _weekdays(text: str) -> tuple[frozenset[int], str]:
    """The days of the week in a text, and the text without them."""
    days = frozenset(day for day, pattern in enumerate(_WEEKDAYS) if pattern.search(text))
    for day in days:
        text = _WEEKDAYS[day].sub(" ", text)
    return days, text


def replaces(later: str, earlier: str, *, kinds: tuple[Kind, Kind], cosine: float) -> bool:
    """Whether a sentence that reports a change replaces another one about the same thing.

    `kinds` are those of `later` and `earlier`, and `cosine` is that of the two sentences.
    """
    same_kind = kinds[0] == kinds[1] or set(kinds) <= {"preference", "constraint"}
    if not same_kind or kinds[0] not in _REPLACEABLE or cosine < REPLACES:
        return False
    if not is_update(later) or is_update(earlier):
        return False
    new, old = _content(later), _content(earlier)
    common = len(new & old) / (min(len(new), len(old)) or 1)
    return common >= _SAME_ATTRIBUTE or (kinds[0] == "preference" and cosine >= SAME_CHOICE)


# Every unit is compared with all the others, so what these find in one text is cached.
@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    # A name says whose statement it is, which is compared elsewhere.
    stems = content_stems(without_label(text)) - _MEANINGLESS - stems_of(" ".join(names_in(text)))
    return frozenset(word for word in stems if word not in _COUNTS and not _DIGIT.search(word))


@lru_cache(maxsize=4096)
def _is_affirmative(text: str) -> bool:
    """Whether a text has an even number of negations and words of dislike."""
    negations = 0
    for span in split_words(without_label(text)):
        word = span.text.casefold().replace("\u2019", "'")
        negations += word in _NEGATIONS or word.endswith("n't")
        negations += stem(word) in _DISLIKING
    return negations % 2 == 0


@lru_cache(maxsize=4096)
def _numbers(text: str) -> frozenset[str]:
    return read_words(text).values


@lru_cache(maxsize=4096)
def slots_of(text: str) -> dict[str, frozenset[str]]:
    """The values that a text gives to attributes that have one value at a time."""
    statement = without_label(text).rstrip(".! ")
    values: dict[str, frozenset[str]] = {}
    for name, pattern in _SLOTS:
        hit = pattern.search(statement)
        if hit is not None:
            values[name] = _value(hit[hit.lastindex or 1])
    hit = _FAVOURITE.search(statement)
    if hit is not None:
        values[f"favourite {hit[1].casefold()}"] = _value(hit[2])
    return {name: value for name, value in values.items() if value}


def _value(text: str) -> frozenset[str]:
    return content_stems(_VALUE_END.sub("", text))


def read_stances(
    evidence: Sequence[Evidence],
    units: Sequence[Unit],
    *,
    names: frozenset[str],
    verifier: SupportVerifier,
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
        elif any(_opposes(unit.text, sentence, names) for sentence in near):
            stances[unit.id] = "contradicts"
    return stances


def _opposes(text: str, sentence: str, names: frozenset[str]) -> bool:
    """Whether a sentence of the evidence contradicts a unit, and is about the same person."""
    return same_owner(text, sentence, names) and contradict(text, sentence)


def _about(text: str, sentences: Sequence[str], stems: Sequence[frozenset[str]]) -> list[str]:
    content = content_stems(text)
    if not content:
        return []
    # The index is negated, so that the sort prefers the earlier of two equal sentences.
    shares = [(len(content & words) / len(content), -at) for at, words in enumerate(stems)]
    best = sorted(shares, reverse=True)[:_NEAREST]
    return [sentences[-at] for share, at in best if share >= _MIN_SHARED]
