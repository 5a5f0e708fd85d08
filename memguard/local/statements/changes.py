"""What a later sentence of a conversation takes back or replaces."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memguard.local.languages import CHINESE, Language
from memguard.local.statements import doubts
from memguard.local.statements.completion import complete_value
from memguard.local.statements.doubts import Statement
from memguard.local.statements.grammar import StatementGrammar, grammar_of
from memguard.local.verifier.words import stem

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_QUESTION_MARK = re.compile("[?\uff1f]\\s*$")
_CHANGES_NOTHING = frozenset({doubts.HYPOTHETICAL, doubts.IRONIC, doubts.FICTION, doubts.WISH})
_MIN_SHARED = 2
"""Words or values that two sentences share, if only a word inside says that something changed."""
_MAX_BACK = 40
"""Sentences before a correction in which it looks for what it corrects."""


@dataclass(frozen=True)
class Spoken:
    """One sentence of a conversation with its statements."""

    sentence: str
    language: Language
    statements: tuple[Statement, ...]
    position: int = 0
    """The index of its turn."""
    speaker: tuple[str, str] = ("", "")
    """Role and name."""

    def doubted(self, doubt: str, *, asserted: bool = True) -> "Spoken":
        """The same sentence with statements that may not be stored."""
        statements = tuple(
            replace(one, doubt=one.doubt or doubt, asserted=one.asserted and asserted)
            for one in self.statements
        )
        return replace(self, statements=statements)


def apply_changes(rows: Sequence[Spoken]) -> list[Spoken]:
    """Doubt every statement that a later sentence of the same speaker takes back or replaces."""
    changed = list(rows)
    for index, later in enumerate(rows):
        if later.language == "other" or _QUESTION_MARK.search(later.sentence):
            continue
        # What is said in irony or as a condition corrects nothing.
        if any(one.doubt in _CHANGES_NOTHING for one in later.statements):
            continue
        targets = list(dict.fromkeys(_targets(rows, index)))
        if len(targets) == 1:
            changed[index] = _completed(changed[index], rows[targets[0]])
        for at in targets:
            doubt = f"{doubts.REPLACED}: {later.sentence}"
            changed[at] = changed[at].doubted(doubt, asserted=False)
    return changed


def _completed(later: Spoken, old: Spoken) -> Spoken:
    """A fragment that only changes the value of one earlier statement, as that statement."""
    if len(later.statements) != 1 or len(old.statements) != 1:
        return later
    fragment, statement = later.statements[0], old.statements[0]
    if statement.doubt or not doubts.is_incomplete(fragment.doubt):
        return later
    text = complete_value(fragment.text, statement.text, grammar_of(later.language))
    if not text:
        return later
    completed = replace(fragment, text=text, doubt="", asserted=True, completed=old.sentence)
    return replace(later, statements=(completed,))


def _targets(rows: Sequence[Spoken], index: int) -> list[int]:
    """The earlier sentences that a sentence takes back or replaces."""
    later = rows[index]
    position = later.position
    grammar = grammar_of(later.language)
    earlier = [
        at
        for at in range(max(0, index - _MAX_BACK), index)
        if rows[at].speaker == later.speaker and rows[at].statements
    ]
    plain = later.sentence.replace("\u2019", "'")
    targets = [at for at in earlier if _same_frame(rows[at], plain, grammar)]
    targets += _negated(rows, earlier, plain, grammar)
    retracts = grammar.retraction.search(plain)
    corrects = grammar.correction.match(plain)
    if retracts or corrects or grammar.change.search(plain):
        # "Now" and "instead" inside a sentence say less than a "sorry" at its start.
        shared = 1 if retracts or corrects else _MIN_SHARED
        alike = [
            at
            for at in reversed(earlier)
            if _same_owner(rows[at], plain, grammar)
            and _alike(rows[at], plain, grammar, shared=shared)
        ]
        targets += alike[:1]
        if retracts and not alike:
            targets += _just_before(rows, earlier, index)
        elif corrects and not alike and _is_fragment(later):
            targets += [at for at in earlier if at == index - 1 and rows[at].position == position]
    return targets


def _is_fragment(row: Spoken) -> bool:
    return any(doubts.is_incomplete(one.doubt) for one in row.statements)


def _just_before(rows: Sequence[Spoken], earlier: Sequence[int], index: int) -> list[int]:
    """The sentence before in the same turn, or the speaker's whole last turn."""
    same = [at for at in earlier if rows[at].position == rows[index].position]
    if same:
        return same[-1:]
    return [at for at in earlier if rows[at].position == rows[earlier[-1]].position]


def _same_frame(earlier: Spoken, later: str, grammar: StatementGrammar) -> bool:
    """Whether both say another value of the same thing, such as where the speaker lives."""
    for frame in grammar.frames:
        new = frame.search(later)
        old = frame.search(earlier.sentence.replace("\u2019", "'")) if new else None
        if not new or not old:
            continue
        if _squeezed(new["frame"]) != _squeezed(old["frame"]):
            continue
        if _squeezed(new["rest"]) == _squeezed(old["rest"]):
            continue
        if _excludes(new, old, grammar):
            return True
    return False


def _excludes(new: re.Match[str], old: re.Match[str], grammar: StatementGrammar) -> bool:
    """Whether two values of one frame cannot both be true.

    "My sister is a nurse" and "my sister is 30" are both true, and so are "I have two dogs" and
    "I have three cats"; nobody lives in two towns or has two favourite colours.
    """
    if len(new["frame"].split()) <= 1:
        return True
    kinds = _kinds(new["rest"], grammar)
    if kinds != _kinds(old["rest"], grammar):
        return False
    if not kinds:
        return grammar.single.search(new["frame"]) is not None
    first, second = (_plain_content(hit["rest"], grammar) for hit in (new, old))
    return not first or not second or bool(first & second)


def _plain_content(text: str, grammar: StatementGrammar) -> frozenset[str]:
    return _content(grammar.value.sub(" ", text), grammar)


def _negated(
    rows: Sequence[Spoken], earlier: Sequence[int], later: str, grammar: StatementGrammar
) -> list[int]:
    """The earlier sentences with a value that this one says is no longer so."""
    targets: list[int] = []
    for hit in grammar.negated.finditer(later):
        # The value is the first words behind "not".
        old = frozenset(_content_words(hit["old"], grammar)[:_MIN_SHARED])
        targets += [
            at
            for at in earlier
            if old
            and old <= _content(rows[at].sentence, grammar)
            and _same_owner(rows[at], later, grammar)
        ]
    return targets


def _same_owner(earlier: Spoken, later: str, grammar: StatementGrammar) -> bool:
    """Whether both are about the same relation of the speaker, or a fragment follows."""
    owners = {hit["who"].lower() for hit in grammar.relation.finditer(earlier.sentence)}
    others = {hit["who"].lower() for hit in grammar.relation.finditer(later)}
    return owners == others or (not others and not grammar.subject.search(later))


def _alike(earlier: Spoken, later: str, grammar: StatementGrammar, *, shared: int) -> bool:
    """Whether two sentences share words of content, or a kind of value."""
    words = _content(earlier.sentence, grammar) & _content(later, grammar)
    kinds = _kinds(earlier.sentence, grammar) & _kinds(later, grammar)
    return len(words) + len(kinds) >= shared


def _content(text: str, grammar: StatementGrammar) -> frozenset[str]:
    """Stems of the words with content; pairs of characters in Chinese."""
    return frozenset(_content_words(text, grammar))


def _content_words(text: str, grammar: StatementGrammar) -> list[str]:
    if CHINESE.search(text):
        plain = grammar.stop.sub(" ", text)
        return [
            plain[at : at + 2]
            for at in range(len(plain) - 1)
            if CHINESE.match(plain[at]) and CHINESE.match(plain[at + 1])
        ]
    words = _WORD.findall(text.replace("\u2019", "'").lower())
    return [stem(word) for word in words if not grammar.stop.fullmatch(word)]


def _kinds(text: str, grammar: StatementGrammar) -> frozenset[str]:
    """The kinds of values in a text, such as `weekday`."""
    return frozenset(hit.lastgroup or "" for hit in grammar.value.finditer(text))


def _squeezed(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .,!")
