"""Recognises a candidate that says again, in other words, what one clause of its owner states.

`The user dislikes kale` says what `I can't stand kale` says, and `Der Nutzer trinkt Tee` what `Ich
trinke Tee, meine Frau Kaffee` says. The rules compare words and know inflections and a few equal
predicates of English, German, Spanish, French and Chinese; the scores of the network do not enter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memguard.local.languages import language_of
from memguard.local.owners import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.tokens import tokens_of
from memguard.local.owners.words import GRAMMARS, RELATIONS, word_set
from memguard.local.verifier.ownership import ClauseMap, says_of, source_of
from memguard.local.verifier.predicates import (
    CHINESE,
    STRONGER,
    UNREAL,
    expose,
    key_of,
    plain,
    stop_words,
)

_NO_EVIDENCE = frozenset({"assistant", "tool", "document", "system"})
_JOINS = word_set("and but or und aber oder sowie y e pero o et mais ou , ; : ( )") | {"\u2014"}
# `from Oslo` and `to Oslo` are not the same, `in May` and `on May` are.
_DIRECTIONS = word_set(
    "from to without until except aus von nach bis ohne desde hasta sin sans jusqu' before after "
    "vor antes avant après después"
)
_CHANGES = re.compile(
    r"\b(?:mov(?:ed|ing)|relocat|transferr|switch(?:ed|ing)|umgezogen|gezogen|ziehe|gewechselt|mud[aéo]|"
    r"déménag)"
)
# After `have` or `be` these are the verb: `I have lost a dog`.
_PARTICIPLES = {
    "en": re.compile(
        r"^(?:\w{3,}ed|lost|sold|given|seen|met|eaten|left|bought|gone|broken|been|to)$"
    ),
    "de": re.compile(
        r"^(?:ge\w{2,}(?:t|en)|(?:ver|be|er|ent|zer)\w{2,}(?:t|en)|\w{3,}(?:ieren|iert))$"
    ),
    "es": re.compile(r"^\w{3,}(?:ado|ido)$"),
    "fr": re.compile(r"^(?:\w{2,}é|vendu|perdu|vu|eu)$"),
}
_WISHES = re.compile(
    r"\b(?:might|may|wish|hope to|want to|would (?:love|like)|dream(?:ing)? of|"
    r"thinking (?:of|about)|"
    r"consider(?:ing)?|planning)\b|['\u2019]d (?:love|like)\b"
)
_PLANS = re.compile(
    r"\b(?:plans?|planned|interest|interested|considers|wants?|hopes?|hoping|would|could|likes?|will|"
    r"going|intends?|dreams?|wishes|goals?|aims?|desires?|looking|excited|saving|possibly|prefers?|"
    r"loves?|needs?|thinks?|aspires?|ambition|enjoys?)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:n't|not|nicht|no|pas|never) (?:really )?(?:think|believe|know if|creo)\W*"
    r"(?:that)?$|"
    r"n't (?:really )?(?:think|believe)(?: that)?$|\bglaube nicht$",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were) (?:an?|the)\b|(?<!have )(?<!['\u2019]ve )\blived\b|\bused to\b", re.IGNORECASE
)
_PRESENT = re.compile(r"\b(?:is|are) (?:an?|the)\b|\b(?:lives?|works?|resides?)\b", re.IGNORECASE)
_BARE_VERBS = frozenset({"be", "have"})
_ZH_DENIES = re.compile(r"不|没|无法|别|戒|从未")
_ZH_UNREAL = re.compile(
    r"想|打算|如果|要是|以前|可能|也许|希望|曾|讨厌|怕|拒绝|停|避免|应该|差点|除了|吗|过敏|"
    r"准备|计划|本来|最好|从.{1,6}搬"
)
_ZH_LIGHT = frozenset(
    "0123456789一二两三四五六七八九十个杯只条次名位些几多半年岁去都也就很还已经常"
)
_CONTRACTED = re.compile(r"['\u2019](?:m|s|re|ve|d|ll)$")
_MAX_JOINED = 6


@dataclass(frozen=True, slots=True)
class _ClauseWord:
    """A word of a clause that carries meaning."""

    key: str
    low: str
    segment: int
    before: str
    """The preposition in front of it that tells a direction; empty for none."""
    is_governed: bool
    """Whether any preposition is in front of it."""
    is_detail: bool


@dataclass(frozen=True, slots=True)
class _ClauseReading:
    """A clause without the words that every clause has."""

    words: tuple[_ClauseWord, ...]
    denied: frozenset[int]
    """Segments with a negation."""
    light: frozenset[int]
    """Segments that begin with an article, a preposition or a number: they share the verb."""
    verbs: frozenset[int]
    """Indices of words that may be the verb of their segment."""


@dataclass(frozen=True, slots=True)
class Restatement:
    """How far one clause of the owner states a candidate."""

    share: float
    """Share of the candidate's words that it states, in [0, 1]; 1 if it says the same."""
    is_unreal: bool = False
    """Whether the context states it as past, a wish or a possibility: `I might move to Rome`."""
    is_foreign: bool = False
    """Whether the candidate is in another language than English."""


NOT_STATED = Restatement(0.0)
"""No clause of the owner states the candidate."""


def find_restatement(
    clause_map: ClauseMap, *, claim: Sequence[Clause], start: int, end: int, text: str
) -> Restatement:
    """How well clauses of the same owners state the part of a candidate from `start` to `end`.

    Args:
        clause_map: The clauses of the context.
        claim: The clauses of the candidate.
        start: Offset of the sentence in the candidate.
        end: Offset one past the sentence.
        text: The candidate.
    """
    language = language_of(text, unknown="en")
    shares: list[float] = []
    for clause in claim:
        if clause.end <= start or clause.start >= end:
            continue
        if clause.owner in {UNKNOWN, WORLD} or clause.is_elided:
            return NOT_STATED
        shares.append(
            max(
                (_share(clause_map, index, clause, language)
                 for index in range(len(clause_map.clauses))),
                default=0.0,
            )
        )  # fmt: skip
    share = min(shares, default=0.0)
    is_unreal = language == "en" and _is_unreal(clause_map, claim, text)
    return Restatement(share, is_unreal=is_unreal, is_foreign=language != "en")


def _is_unreal(clause_map: ClauseMap, claim: Sequence[Clause], text: str) -> bool:
    """Whether every clause of the owner with words of the candidate is a wish, or past."""
    planned = _WISHES.search(text) or _PLANS.search(text)
    present = _PRESENT.search(text) and not _PAST.search(text)
    wishes: list[bool] = []
    for clause in claim:
        keys = {word.key for word in _read(clause, "en", is_claim=True).words} - _BARE_VERBS
        for owned in clause_map.clauses:
            if (
                owned.speaker not in _NO_EVIDENCE
                and language_of(owned.clause.text, unknown="en") == "en"
            ):
                shared = keys & {word.key for word in _read(owned.clause, "en").words}
                if shared and says_of(clause, owned, clause_map):
                    stated = owned.clause.text
                    is_past = present and _PAST.search(stated)
                    wishes.append(bool(is_past or (not planned and _WISHES.search(stated))))
    return bool(wishes) and all(wishes)


def _share(  # noqa: PLR0911 - one condition each
    clause_map: ClauseMap, index: int, claim: Clause, language: str
) -> float:
    """What share of a clause of the candidate one clause of the context states."""
    owned = clause_map.clauses[index]
    if owned.speaker in _NO_EVIDENCE or not says_of(claim, owned, clause_map):
        return 0.0
    if owned.clause.is_elided:
        source = source_of(clause_map, index)
        if source is None:
            return 0.0
        owned = clause_map.clauses[source]
        index = source
    clause = owned.clause
    opinion = clause_map.clauses[index - 1].clause.text if index else ""
    if _DOUBTED.search(opinion):
        return 0.0
    if owned.is_question or language_of(clause.text, unknown="en") not in {language, "en"}:
        return 0.0
    if language == "zh":
        return float(_repeats_chinese(claim, clause))
    wanted, stated = _read(claim, language, is_claim=True), _read(clause, language)
    if clause.shares_verb and index and wanted.words:
        verb = wanted.words[0].key
        before = _read(clause_map.clauses[index - 1].clause, language)
        if verb in {word.key for word in before.words}:
            rest = _ClauseReading(wanted.words[1:], wanted.denied, wanted.light, frozenset())
            return _matched(rest, stated, language)
    return _matched(wanted, stated, language)


@lru_cache(maxsize=1024)
def _read(clause: Clause, language: str, *, is_claim: bool = False) -> _ClauseReading:
    """The words of a clause by key; of a candidate, without those of its owner."""
    text = clause.text
    subject_end = max(0, clause.subject_end - clause.start)
    stop, grammar = stop_words(language), GRAMMARS[language]
    owners = set(re.split(r"'s | ", clause.owner)) | {clause.name} if is_claim else set[str]()
    # The verb of `I'm` belongs to the predicate.
    contracted = _CONTRACTED.search(text[:subject_end]) if language == "en" else None
    cut = contracted.start() if contracted else subject_end
    head, tail = plain(text[:cut], language), plain(text[cut:], language)
    if language == "en" and clause.owner == USER and not is_claim:
        tail = expose(tail)
    words: list[_ClauseWord] = []
    denied: set[int] = set()
    light: set[int] = set()
    verbs: set[int] = set()
    capitals = {token.low for token in tokens_of(text, language) if token.is_capital}
    is_governed = False
    segment, begins, direction, border = 0, True, "", len(tokens_of(head, language))
    for at, token in enumerate((*tokens_of(head, language), *tokens_of(tail, language))):
        low = token.low
        if at == border:
            if words:
                verbs.add(len(words) - 1)
            begins = True
        if low in _JOINS and at < border and low == ",":
            continue
        if low in _JOINS:
            segment, begins, direction = segment + 1, True, ""
            continue
        if not token.is_word:
            continue
        if low in grammar.negations:
            denied.add(segment)
            continue
        if begins and (low in grammar.articles | grammar.prepositions or low[0].isdigit()):
            light.add(segment)
        direction = low if low in _DIRECTIONS else direction
        is_governed |= low in grammar.prepositions or low in grammar.of
        relation = RELATIONS[language].get(low.removesuffix("'s"), low.removesuffix("'s"))
        if low in stop or (owners and relation in owners):
            continue
        if begins:
            verbs.add(len(words))
        begins = False
        is_name = low in capitals and language != "de"
        key = key_of(low, language)
        is_detail = is_name or key[0].isdigit()
        words.append(_ClauseWord(key, low, segment, direction, is_governed, is_detail))
        direction, is_governed = "", False
    return _ClauseReading(tuple(words), frozenset(denied), frozenset(light), frozenset(verbs))


def _matched(wanted: _ClauseReading, stated: _ClauseReading, language: str) -> float:
    """The share of the wanted words that segments of a clause state, part by part."""
    parts = {word.segment for word in wanted.words}
    segments = {word.segment for word in stated.words}
    if not parts or not segments:
        return 0.0
    return min(
        max(_in_segment(wanted, stated, part, segment, language) for segment in segments)
        for part in parts
    )


def _in_segment(
    wanted: _ClauseReading, stated: _ClauseReading, part: int, segment: int, language: str
) -> float:
    """How much of one part of the candidate one segment states, with the verb it shares."""
    claimed = [word for word in wanted.words if word.segment == part]
    inside = [at for at, word in enumerate(stated.words) if word.segment == segment]
    matches: dict[int, int] = {}
    used = {segment}
    for row, word in enumerate(claimed):
        column = next((at for at in inside if _is_same(word, stated.words[at])), -1)
        if (
            column < 0
            and row == 0
            and (segment in stated.light or _begins(claimed, stated, inside))
        ):
            # `I take 20 mg in the morning and 10 mg at night`: the verb is shared.
            earlier = [at for at in stated.verbs if stated.words[at].segment < segment]
            column = next((at for at in earlier if _is_same(word, stated.words[at])), -1)
        if column >= 0:
            matches[row] = column
            used.add(stated.words[column].segment)
        elif word.is_detail:
            return 0.0
    if (part in wanted.denied) != bool(used & stated.denied):
        return 0.0
    first = part == min(word.segment for word in wanted.words)
    if not _is_so(claimed, stated, inside, matches, language, needs_verb=first):
        return 0.0
    return len(matches) / len(claimed)


def _begins(claimed: list[_ClauseWord], stated: _ClauseReading, inside: list[int]) -> bool:
    """Whether the segment begins with a word of the candidate, and so with no other verb."""
    return any(_is_same(word, stated.words[inside[0]]) for word in claimed[1:])


def _is_same(word: _ClauseWord, other: _ClauseWord) -> bool:
    return (
        word.key == other.key or other.key in STRONGER.get(word.key, ())
    ) and word.before == other.before


def _is_so(  # noqa: PLR0911 - one condition each
    claimed: list[_ClauseWord],
    stated: _ClauseReading,
    inside: list[int],
    matches: dict[int, int],
    language: str,
    *,
    needs_verb: bool,
) -> bool:
    """Whether what the candidate leaves out of a segment does not change what it says."""
    left_out = [stated.words[at] for at in inside if at not in matches.values()]
    if any(word.low in UNREAL[language] for word in left_out):
        return False
    text = " ".join(word.low for word in stated.words)
    if _CHANGES.search(text) and any(word.is_detail for word in left_out):
        return False
    if not needs_verb or not stated.verbs:
        return True
    # The verb that the candidate begins with is the clause's, and not one of `I hate to drink`.
    if 0 in matches and matches[0] not in stated.verbs:
        return False
    if claimed[0].key in _BARE_VERBS:
        # `I have a fear of dogs` is not `has dogs`, nor `a nurse's assistant` a nurse.
        following = next((row for row in sorted(matches) if row > 0), 0)
        other = stated.words[matches[following]] if following else claimed[0]
        if following and claimed[following].is_governed != other.is_governed:
            return False
        if other.low.endswith("'s") and not claimed[following].low.endswith("'s"):
            return False
        return not any(_PARTICIPLES[language].match(word.low) for word in left_out)
    return True


def _repeats_chinese(claim: Clause, clause: Clause) -> bool:
    """Whether the predicate of a Chinese candidate is in a clause, apart from light words."""
    wanted = _predicate(claim)
    stated = _predicate(clause)
    if not wanted or bool(_ZH_DENIES.search(wanted)) != bool(_ZH_DENIES.search(stated)):
        return False
    unreal = {hit[0] for hit in _ZH_UNREAL.finditer(clause.text)}
    if unreal - {hit[0] for hit in _ZH_UNREAL.finditer(claim.text)}:
        return False
    begin = stated.find(wanted[0])
    while begin >= 0:
        if _is_subsequence(wanted, stated[begin:]):
            return True
        begin = stated.find(wanted[0], begin + 1)
    return False


def _predicate(clause: Clause) -> str:
    text = clause.text[max(0, clause.subject_end - clause.start) :].strip()
    for pattern, replacement in CHINESE:
        text = pattern.sub(replacement, text)
    return text.lstrip("也都就")


def _is_subsequence(wanted: str, stated: str) -> bool:
    at = 0
    for number, char in enumerate(wanted):
        following = stated.find(char, at)
        if following < 0:
            return False
        gap = stated[at:following]
        joined = gap[-1:] in {"和", "、", "跟"} and len(gap) <= _MAX_JOINED
        joined = joined and not set(gap) & set(wanted[:number])
        if not joined and not set(gap) <= _ZH_LIGHT:
            return False
        at = following + 1
    return True
