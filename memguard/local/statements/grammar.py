"""What the rules need to know of a language, read from `grammars.toml`."""

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from memguard.local.languages import Language

Pattern = re.Pattern[str]

# A leading space of a line belongs to the pattern, if it is the only one.
_LINE_BREAK = re.compile(r"\n")
_NOTHING = r"(?!)"


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The patterns of one language.

    They are searched in sentences with straight apostrophes, without regard to case. A pattern
    for the start of a sentence is matched there, after the words that add nothing.
    """

    filler: Pattern
    """Words at the start that add nothing, such as "by the way"."""
    demand: Pattern
    """A request at the start to remember what follows."""
    demand_after: Pattern
    """A request at the end to remember what was said."""
    question: Pattern
    """The start of a question without a question mark."""
    imperative: Pattern
    """The start of a request."""
    request: Pattern
    """A clause that asks for something, wherever it begins."""
    small_talk: Pattern
    """A whole sentence without a fact."""
    wish: Pattern
    """A wish about the answers of the assistant, wherever it stands."""
    addressed: Pattern
    """A word of the second person."""
    hypothetical: Pattern
    """A condition, a wish or a doubt."""
    irony: Pattern
    """A sign of irony in the sentence itself."""
    remark: Pattern
    """A whole sentence that makes those next to it ironic."""
    game: Pattern
    """The beginning of a role play, which lasts until it is ended."""
    game_over: Pattern
    """The end of a role play."""
    fiction: Pattern
    """The beginning of a text that states nothing about its author."""
    reported: Pattern
    """What another person says or thinks."""
    momentary: Pattern
    """A statement about the moment or the present task."""
    conversational: Pattern
    """The start of a sentence about this conversation, without a fact."""
    ellipsis: Pattern
    """A whole sentence whose verb or object is in another one: "I do too"."""
    first_person: Pattern
    """A word of the first person."""
    subject: Pattern
    """A subject of the first person with its verb."""
    finite: Pattern
    """A finite verb behind another subject."""
    clause: Pattern
    """What joins two clauses, before a subject of the first person or a request."""
    because: Pattern
    """A conjunction of cause at the start of a clause, which states it as so."""
    start: Pattern
    """A subject at the start whose referent is in another sentence."""
    person: Pattern
    """A pronoun for a person."""
    people: Pattern
    """What such a pronoun can refer to."""
    thing: Pattern
    """Another pronoun."""
    things: Pattern
    """What such a pronoun can refer to."""
    elsewhere: Pattern
    """Words that always refer to another sentence."""
    relation: Pattern
    """A person named by the relation to the speaker; the group `who` is the noun phrase."""
    completed: Pattern
    """A pronoun as the subject at the start, which a person of the sentence before can replace."""
    female: Pattern
    """Such a pronoun for a woman, and the relations of women."""
    male: Pattern
    """Such a pronoun for a man, and the relations of men."""
    retraction: Pattern
    """Words that take back what was said before."""
    correction: Pattern
    """Words at the start that replace what was said before, if what follows is alike."""
    change: Pattern
    """Words elsewhere that may do so."""
    negated: Pattern
    """Words before a value that is no longer so; the group `old` is the value."""
    stop: Pattern
    """Words without content of their own."""
    value: Pattern
    """A weekday, month, number or time."""
    single: Pattern
    """What somebody has one of, so that another value replaces it: a name, a birthday."""
    frames: tuple[Pattern, ...]
    """Statements of which only one can be true at a time: the group `frame` says of what."""


@cache
def grammar_of(language: Language) -> Grammar:
    """The grammar of a language that has one, which are all but `other`."""
    return _grammars()[language]


@cache
def _grammars() -> dict[str, Grammar]:
    text = (files("memguard.local.statements") / "grammars.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str | list[str]]] = tomllib.loads(text)
    return {language: _compiled(table) for language, table in tables.items()}


def _compiled(table: dict[str, str | list[str]]) -> Grammar:
    patterns: dict[str, Any] = {}
    for field in fields(Grammar):
        # An entry that a language does not need matches nothing.
        source = table.get(field.name, _NOTHING)
        if isinstance(source, str):
            patterns[field.name] = _pattern(source)
        else:
            patterns[field.name] = tuple(_pattern(one) for one in source)
    return Grammar(**patterns)


def _pattern(source: str) -> Pattern:
    return re.compile(_LINE_BREAK.sub("", source.strip("\n")), re.IGNORECASE)
