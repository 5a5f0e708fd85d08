"""Reads the clauses of a text from left to right."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache

from memguard.local.languages import language_of
from memguard.local.owners.chinese import read_chinese
from memguard.local.owners.clause import UNKNOWN, WORLD, Clause
from memguard.local.owners.phrases import (
    GENERIC_LABELS,
    PRO_VERBS,
    Phrase,
    PhraseReader,
    Speech,
    gender_of,
    normal,
)
from memguard.local.owners.tokens import Token, tokens_of, words_of
from memguard.local.owners.words import AGREEMENT, GRAMMARS, HUMAN, NAMES, word_set

_TITLES = word_set("mr mrs ms dr prof st vs no e.g i.e frau herr sr sra m mme")
_LABEL = re.compile(r"^[^\S\n]*([A-Z][\w'.\-]{0,30}(?: [A-Za-z][\w'.\-]{0,30})?): +", re.MULTILINE)
_PAUSES = frozenset(",:()\u2014\u2013\u2026")
_QUOTES = frozenset('"\u201c\u201d\u201e\u00ab\u00bb')
_STOPS = frozenset(".!?;\n")
_SAME_OWNER = word_set("it it's that that's this these there there's das es dies ça c'est c' eso")
# Between the verb and the end, these alone leave a clause without content: `Tomas doesn't, I do`.
_TAIL = word_set(
    "too either though as well also neither not auch nicht schon aussi sí no non oui si doch "
    "también tampoco"
)
_MAX_BARE = 2
_MAX_THING = 7
"""Words between the first word of a thing and its verb."""
_REPORTS = word_set("read heard know think believe say says said learned mentioned told hear")
_FRAGMENTS = word_set(
    "love like hate prefer live work can't cannot don't never always enjoy got have am was want "
    "need just grew trying went going looking currently mostly proud vegan vegetarian"
)
_MY_FAVOURITE = re.compile(
    r"\b(?:my|our) (?:\w+ ){0,2}?(?:favou?rites?|passion|hobby|thing|dream|go-to|specialty)\b"
    r"|\b(?:suits?|makes?|annoys?|calms?|relaxes|bores?|scares?|fascinates?|helps?) (?:me|us)\b"
    r"|\b(?:mein|meine) \w{0,20}?(?:lieblings|hobby|leidenschaft)\w*"
    r"|\b(?:mon|ma|mes|mi|mis) (?:\w+ ){0,2}?(?:préféré|favorit|passion|pasión|hobby)\w*",
    re.IGNORECASE,
)

_OPINION = re.compile(
    r"(?:well,? )?(?:i|we) (?:\w+ )?(?:think|know|believe|guess|heard|hear|hope|learned|said|"
    r"mentioned|told \w+)(?: that)?[\s,]*$|(?:did you know|fyi|note)\b.{0,8}$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Draft:
    """A clause whose end is not known yet; `first` is the index of its first token."""

    first: int
    subject: Phrase | None = None
    subject_end: int = 0
    is_relative: bool = False


def split_clauses(
    text: str, *, speaker: str = "", user_names: AbstractSet[str] = frozenset(), listener: str = ""
) -> tuple[Clause, ...]:
    """The clauses of a text in order, each with its owner.

    Args:
        text: What somebody said, or a memory. A line that begins with a person's name and a colon
            is that person's.
        speaker: Who says it. Without a name, `I` is the user.
        user_names: Names that mean the user, in any case.
        listener: Whom `you` means; by default unknown.

    Returns:
        Clauses that do not overlap. Between them is only white space, punctuation and labels.
    """
    names = frozenset(name.casefold() for name in user_names)
    return split(text, speaker.casefold().strip(), names, listener.casefold().strip())


def owner_of(
    text: str, *, speaker: str = "", user_names: AbstractSet[str] = frozenset(), listener: str = ""
) -> str:
    """The owner of a whole text: that of its main clause.

    This is the first clause that has an owner, and whose subject is not resumed by a later one
    (`I think my brother is vegan` is the brother's). The arguments are those of `split_clauses`.
    """
    clauses = split_clauses(text, speaker=speaker, user_names=user_names, listener=listener)
    for index, clause in enumerate(clauses):
        if _OPINION.match(clause.text) and index + 1 < len(clauses):
            continue
        if clause.owner != UNKNOWN:
            return clause.owner
    return UNKNOWN


def aliases_of(clauses: tuple[Clause, ...]) -> dict[str, str]:
    """Names that clauses give to relations: `my sister Clara` gives `clara` the owner `sister`."""
    return {clause.name: clause.owner for clause in clauses if clause.name}


# Cached, because the judge reads the same turns for every candidate of a run.
@lru_cache(maxsize=1024)
def split(
    text: str,
    speaker: str,
    user_names: frozenset[str],
    listener: str,
    people: tuple[str, ...] = (),
) -> tuple[Clause, ...]:
    """Like `split_clauses`, for folded names; `people` may be meant by `she` in this text."""
    clauses: list[Clause] = []
    aliases: dict[str, str] = {}
    for start, end, label in _passages(text, user_names):
        speech = Speech(
            text=text,
            me=normal(label or speaker, user_names),
            you=normal(listener, user_names) if listener else UNKNOWN,
            user_names=user_names,
            aliases=aliases,
            people=[(owner, gender_of(owner)) for owner in people],
        )
        clauses += _read(speech, start, end)
    return tuple(clauses)


def _passages(text: str, user_names: frozenset[str]) -> list[tuple[int, int, str]]:
    """Start, end and label of each part of the text that one speaker says."""
    hits = [
        hit
        for hit in _LABEL.finditer(text)
        if (label := hit[1].casefold()) in GENERIC_LABELS
        or label in user_names
        or label.split()[0] in NAMES
    ]
    parts: list[tuple[int, int, str]] = []
    starts = [hit.start() for hit in hits]
    first = starts[0] if starts else len(text)
    if text[:first].strip():
        parts.append((0, first, ""))
    for hit, end in zip(hits, [*starts[1:], len(text)], strict=False):
        parts.append((hit.end(), end, hit[1].casefold()))
    return parts


def _read(speech: Speech, start: int, end: int) -> list[Clause]:
    passage = speech.text[start:end]
    language = language_of(passage, unknown="en")
    speech.language = "en" if language == "other" else language
    if speech.language == "zh":
        return read_chinese(speech.text, start, end, me=speech.me, you=speech.you)
    speech.grammar = GRAMMARS[speech.language]
    speech.tokens = tokens_of(passage, speech.language, start)
    first = 0
    for index, token in enumerate(speech.tokens):
        if token.low in _STOPS and not _goes_on(speech, index):
            _sentence(speech, first, index)
            first = index + 1
    _sentence(speech, first, len(speech.tokens))
    return speech.clauses


def _goes_on(speech: Speech, index: int) -> bool:
    """Whether a full stop ends no sentence, as in `Dr. Weber`."""
    if speech.tokens[index].text != "." or index == 0:
        return False
    before = speech.tokens[index - 1]
    return before.end == speech.tokens[index].start and (
        before.low in _TITLES or (len(before.text) == 1 and before.is_capital)
    )


def _sentence(speech: Speech, first: int, last: int) -> None:
    if any(token.is_word for token in speech.tokens[first:last]):
        _Sentence(speech, first, last).read()


@dataclass(slots=True)
class _Sentence(PhraseReader):
    """Reads one sentence clause by clause."""

    drafts: list[_Draft] = field(default_factory=list[_Draft])
    main: Phrase | None = None
    """The subject that is resumed after a relative clause."""
    quoted: str = ""
    """Who spoke before a quotation began, while it lasts."""

    def read(self) -> None:
        """Split the sentence and add its clauses."""
        self.drafts = [_Draft(self.first)]
        index, border, at_border = self.first, self.first, True
        while index < self.last:
            token = self.tokens[index]
            low = token.low
            if low in _QUOTES:
                self._toggle_quotation()
            if low in _QUOTES or low in _PAUSES:
                if self.drafts[-1].is_relative and self._resumes(index + 1):
                    self._begin(index + 1, self.main, end=index + 1)
                border = border if at_border else index + 1
                at_border, index = True, index + 1
                continue
            if self._is_relative(index, at_border=at_border):
                index = self._begin_relative(index)
                at_border = False
                continue
            if self._is_break(index):
                border = border if at_border else index
                at_border, index = True, index + 1
                continue
            phrase = self._subject(index, at_border=at_border)
            if phrase is not None:
                self._place(phrase, index, border if at_border else index)
                index, at_border = phrase.end, False
                continue
            if at_border and low in self.grammar.fillers:
                index += 1
                continue
            index, at_border = index + 1, False
        self._finish()

    def _is_break(self, index: int) -> bool:
        low = self.low(index)
        if low not in self.grammar.breaks:
            return False
        # `as a nurse` and `wie ein` begin no clause, `as I said` does.
        return low not in {"as", "als", "wie", "como", "comme"} or index == self.first

    def _toggle_quotation(self) -> None:
        """Inside a quotation `I` is whoever was named before it."""
        if self.quoted:
            self.speech.me, self.quoted = self.quoted, ""
            return
        subject = self.drafts[-1].subject
        self.quoted = self.speech.me
        if subject is not None and subject.owner != self.speech.me:
            self.speech.me = subject.owner

    def _begin(self, first: int, subject: Phrase | None, *, end: int) -> None:
        offset = self.tokens[end - 1].end if end > self.first else 0
        self.drafts.append(_Draft(first, subject, offset))
        self.subject = subject

    def _place(self, phrase: Phrase, index: int, border: int) -> None:
        """Make a phrase the subject of the current clause, or of a new one."""
        draft = self.drafts[-1]
        has_words = any(token.is_word for token in self.tokens[draft.first : border])
        new = draft.subject is not None or (border > draft.first and has_words and border != index)
        if new and border > draft.first:
            self._begin(border, phrase, end=phrase.end)
        elif draft.subject is None:
            draft.subject, draft.subject_end = phrase, self.tokens[phrase.end - 1].end
            self.subject = phrase
        if phrase.kind in {"person", "third"}:
            self.latest = phrase
        if not self.drafts[-1].is_relative:
            self.main = phrase

    def _is_relative(self, index: int, *, at_border: bool) -> bool:
        low = self.low(index)
        grammar = self.grammar
        if self.latest is None or index == self.first:
            return False
        near = self.latest.end in {index, index - 1}
        if low in grammar.relative and self.speech.language != "de":
            return near and (self.speech.language == "en" or self.low(index - 1) != "")
        if self.speech.language == "de" and low in grammar.relative:
            return near and at_border and self.low(index - 1) == ","
        return low == "that" and self.latest.end == index and self.is_verb(index + 1)

    def _begin_relative(self, index: int) -> int:
        antecedent = self.latest
        if antecedent is None:
            return index + 1
        end = index + 1
        subject = replace(antecedent, kind="third")
        if self.low(index) in {"whose", "dessen", "deren", "cuyo", "cuya"}:
            owned = self.relation_at(end, antecedent.owner)
            subject = owned or subject
            end = owned.end if owned else end
        if self.main is None:
            self.main = antecedent
        self._begin(index, subject, end=end)
        self.drafts[-1].is_relative = True
        return end

    def _resumes(self, index: int) -> bool:
        """Whether the main clause goes on after the comma that ends a relative clause."""
        if self.main is None:
            return False
        if self.low(index) in {"and", "und", "y", "et"}:
            return self.speech.language == "en" and self.is_verb(index + 1, loose=True)
        return self.is_verb(index) or self.speech.language != "en"

    def _is_contact(self, phrase: Phrase) -> bool:
        is_english = self.speech.language == "en"
        return (
            is_english and phrase.kind == "person" and self.base(phrase.end) in self.grammar.first
        )

    def _subject(  # noqa: PLR0911 - one case each
        self, index: int, *, at_border: bool
    ) -> Phrase | None:
        """The subject that begins at a token, or `None`."""
        has_subject = self.drafts[-1].subject is not None
        before = self.low(index - 1)
        phrase = self.phrase(index, joins=at_border or not has_subject)
        if phrase is None:
            return self._thing(index) if at_border else None
        if phrase.kind == "person":
            self.remember(phrase)
        if before in self.grammar.prepositions and not (at_border and phrase.kind == "first"):
            return None
        # `The woman I work with is ill`: the relative clause has no word of its own.
        if self._is_contact(phrase) and at_border and not has_subject:
            return replace(phrase, end=phrase.end + 1)
        follows_verb = phrase.has_verb or self.is_verb(phrase.end, loose=at_border)
        follows_verb |= before in PRO_VERBS and self.low(index - 2) in {"so", "neither", "nor"}
        if phrase.kind == "first":
            return phrase
        if self.speech.language == "en":
            if phrase.kind == "third":
                return phrase
            if phrase.kind == "second":
                return phrase if at_border or not has_subject or follows_verb else None
            if before in self.grammar.articles or before in self.grammar.mine:
                return None
            ok = follows_verb or self._is_before_relative(phrase.end)
            ok |= not has_subject and self._is_before_attribute(phrase.end)
            ok |= at_border and self._is_gap(phrase.end, has_subject=has_subject)
            return phrase if ok and (at_border or not has_subject or follows_verb) else None
        # Verbs stand before and after subjects, so that position and case must do.
        if has_subject and not (at_border and self._has_more(phrase.end)):
            return None
        return phrase

    def _is_before_relative(self, index: int) -> bool:
        index += self.low(index) == ","
        return self.low(index) in self.grammar.relative and self.drafts[-1].subject is None

    def _is_before_attribute(self, index: int) -> bool:
        """Whether a verb follows after an attribute: `a colleague from work has`."""
        if self.low(index) not in self.grammar.prepositions:
            return False
        for at in range(index + 1, index + _MAX_THING):
            low = self.low(at)
            if not low or not self.tokens[at].is_word or self.base(at) in self.grammar.first:
                return False
            if low in self.grammar.auxiliaries or low in HUMAN:
                return True
        return False

    def _is_gap(self, index: int, *, has_subject: bool) -> bool:
        """Whether the verb is left out: `I am from Porto, my wife from Lyon`, `Tomas too`."""
        low = self.low(index)
        if not low:
            return False
        token = self.tokens[index]
        if low in _TAIL:
            return True
        gap = low in self.grammar.prepositions or token.text[0].isdigit()
        if not has_subject or not gap or low in self.grammar.of:
            return False
        # `I see my therapist on Tuesdays and my dentist on Fridays`: an object like the first.
        earlier = range(self.drafts[-1].first, index - 3)
        return not any(
            self.low(at) in self.grammar.mine
            and self.tokens[at].start >= self.drafts[-1].subject_end
            for at in earlier
        )

    def _has_more(self, index: int) -> bool:
        """Whether words follow before the next pause or conjunction."""
        low = self.low(index)
        return bool(low) and low not in _PAUSES and low not in self.grammar.breaks

    def _thing(self, index: int) -> Phrase | None:  # noqa: PLR0911 - one case each
        """A subject that is not a person: `the kitchen is`, `my car is`, `it is`, `Python is`."""
        grammar, kind = self.grammar, "thing"
        if self.low(index) in _SAME_OWNER and self.low(index + 1):
            return Phrase(UNKNOWN, index + 1, "it")
        owner = self._owner_of_thing(index)
        if not owner:
            return None
        if self.low(index - 1) == "that" and self.low(index - 2) in _REPORTS:
            return Phrase(owner, index + 1, kind)
        for at in range(index + 1, min(index + _MAX_THING, self.last)):
            after = self.low(at)
            if self._is_thing_gap(index, at):
                return Phrase(owner, at, kind)
            possessor = self.possessor(at) if after in grammar.of else None
            if possessor is not None:
                return Phrase(possessor.owner, possessor.end, "person")
            if not self.tokens[at].is_word or after in grammar.breaks:
                return None
            if self.base(at) in grammar.first or self.base(at) in grammar.third:
                return None
            if after in grammar.auxiliaries and after not in grammar.fillers:
                return Phrase(owner, at, kind)
        return None

    def _owner_of_thing(self, index: int) -> str:
        """The owner of a thing by its first word; empty if no thing begins here."""
        low, grammar = self.low(index), self.grammar
        if low in grammar.mine:
            return self.speech.me
        if low in grammar.theirs:
            return self.speech.owner_of_third(grammar.theirs[low])
        if low in grammar.yours:
            return self.speech.you
        closed = low in grammar.auxiliaries | grammar.prepositions or low in grammar.fillers
        foreign = self.speech.language != "en" and low not in grammar.articles
        return "" if closed or foreign or not self.tokens[index].is_word else WORLD

    def _is_thing_gap(self, first: int, index: int) -> bool:
        """Whether the verb is left out: `my car is in Elm Street, my bike in Oak Street`."""
        owned = self.low(first) in self.grammar.mine and self.low(first - 1) in {",", "and", ";"}
        if not owned or index <= first + 1 or self.subject is None:
            return False
        return self._is_gap(index, has_subject=True)

    def _finish(self) -> None:
        if self.quoted:
            self.speech.me = self.quoted
        ends = [draft.first for draft in self.drafts[1:]]
        for draft, end in zip(self.drafts, [*ends, self.last], strict=True):
            words = [token for token in self.tokens[draft.first : end] if token.is_word]
            if words:
                self._add(draft, words)

    def _add(self, draft: _Draft, words: list[Token]) -> None:
        start, end = words[0].start, words[-1].end
        text = self.speech.text[start:end]
        subject = draft.subject
        before = self.speech.clauses[-1] if self.speech.clauses else None
        subject_end = min(max(draft.subject_end, start), end)
        agrees = _agrees(text, self.speech.language)
        rest = [word.low for word in words if word.start >= subject_end]
        elided = subject is not None and bool(rest) and _says_nothing(rest)
        owner, is_carried = self._owner(subject, text, before)
        if owner == WORLD and _MY_FAVOURITE.search(text):
            owner = self.speech.me
        if agrees:
            owner = self.speech.me
        is_noun = subject is not None and subject.kind in {"person", "thing"}
        gap = bool(rest) and (rest[0] in self.grammar.prepositions or rest[0][0].isdigit())
        repeats = ""
        if (agrees or elided) and before is not None:
            repeats = before.repeats if before.is_elided else before.text
        self.speech.clauses.append(
            Clause(
                text=text,
                start=start,
                end=end,
                owner=owner,
                subject_end=subject_end,
                also=subject.also if subject else (),
                name=subject.name if subject else "",
                repeats=repeats,
                is_elided=agrees or elided,
                shares_verb=gap and is_noun and before is not None,
                is_carried=is_carried,
            )
        )
        if subject is not None and subject.kind == "person":
            self.speech.mention(owner, gender_of(owner))

    def _owner(  # noqa: PLR0911 - one case each
        self, subject: Phrase | None, text: str, before: Clause | None
    ) -> tuple[str, bool]:
        """The owner of a clause, and whether it is that of the clause before."""
        if subject is not None and subject.kind != "it":
            return subject.owner, False
        if subject is None:
            words = _words_of(text)
            if words & self.grammar.me or _MY_FAVOURITE.search(text):
                return self.speech.me, False
            if self.speech.language == "es" and self.speech.people:
                return self.speech.people[-1][0], True
            alone = before is None or before.owner in {UNKNOWN, WORLD, self.speech.me}
            if alone and self.speech.language == "en" and self._is_sentence_start(text):
                return self._without_subject(text), False
            # German and French sentences have a subject, and this one's is not a person.
            if before is None and self.speech.language in {"de", "fr"} and len(words) > _MAX_BARE:
                return WORLD, False
        # `My wife got a job. It is at a clinic.`: still about the wife.
        if before is None:
            return UNKNOWN, False
        loose = subject is None and before.owner != self.speech.me
        return (UNKNOWN if loose and self._is_sentence_start(text) else before.owner), True

    def _is_sentence_start(self, text: str) -> bool:
        first = next(token for token in self.tokens[self.first :] if token.is_word)
        return self.speech.text.startswith(text, first.start)

    def _without_subject(self, text: str) -> str:
        """The owner of a fragment: `Allergic to nuts` is the speaker's, `Jazz relaxes` nobody's."""
        first = text.split(maxsplit=1)[0].lower()
        if first in _FRAGMENTS or first in HUMAN:
            return self.speech.me
        tail = text.split()[1:]
        verbs = self.grammar.auxiliaries
        has_verb = any(word.lower() in verbs or word.endswith("s") for word in tail)
        return WORLD if has_verb else UNKNOWN


def _says_nothing(rest: list[str]) -> bool:
    return all(word in PRO_VERBS or word in _TAIL for word in rest)


def _agrees(text: str, language: str) -> bool:
    form = " ".join(words_of(text)[:8])
    form = form.removeprefix("yes , ").removeprefix("and ").removeprefix("oh , ")
    return any(form == phrase or form.startswith(phrase + " ") for phrase in AGREEMENT[language])


def _words_of(text: str) -> frozenset[str]:
    return frozenset(words_of(text))
