"""Reads the statements of a conversation, and doubts those that do not stand alone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from memguard.local.languages import CHINESE, Language, language_of
from memguard.local.safety import looks_like_safety
from memguard.local.statements import doubts
from memguard.local.statements.changes import Spoken, apply_changes
from memguard.local.statements.completion import complete_subject, main_clause
from memguard.local.statements.doubts import Statement
from memguard.local.statements.grammar import StatementGrammar, grammar_of
from memguard.local.statements.sentences import opens_with_stage_direction, split_sentences
from memguard.schema.memory import Turn

_ARTICLES = frozenset(["the", "der", "die", "das", "el", "la", "los", "las", "le", "les"])
_QUOTED = re.compile(
    '"[^"\\n]*"|\u201c[^\u201c\u201d\\n]*\u201d|\u00ab[^\u00ab\u00bb\\n]*\u00bb'
    "|\u201e[^\u201e\u201c\\n]*\u201c|\u300c[^\u300c\u300d\\n]*\u300d"
)
# A quotation mark in one place, or an apostrophe that opens or closes a word.
_OPENED = re.compile("(?:^|[\\s:(,])['\u2018](?=\\w)|[\u201c\u201e]")
_CLOSED = re.compile("[.!?,]['\u2019\"\u201d](?!\\w)")
_QUESTION_MARK = re.compile("[?\uff1f][\\s\"')\u201d]*$")
_ANY_QUESTION_MARK = re.compile("[?\uff1f]")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NAME = re.compile(r"(?<=[\w,;] )[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]+")
_NAME_AT_START = re.compile(r"[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]+")
# Somebody who writes about storing or scoring addresses the memory, as a prompt injection does.
_ABOUT_STORING = re.compile(
    r"\b(?:store|save|memori[sz]e|remember)\b.{0,40}\b(?:always|forever|permanently)\b|"
    r"\bscore\s{0,3}[:=]?\s{0,3}\d|\b(?:previous|prior|all|your) (?:rules|instructions)\b|"
    r"\bthe user(?:'s)?\b",
    re.IGNORECASE,
)
# What only somebody else can grant is no fact because the user says so.
_RIGHTS = re.compile(
    r"\b(?:admin\w*|root|superuser|authori[sz]ed|permission|clearance|(?:full|unlimited) access|"
    r"access to (?:all|every)|exempt|berechtig\w+|zugriff auf alle|befugt|autorizad\w|permiso\w*|"
    r"acceso (?:total|a todo)|autoris\w+|droits? d'|acc\u00e8s (?:total|\u00e0 tout))\b|"
    r"\u7ba1\u7406\u5458|\u6743\u9650|\u6388\u6743",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"(?:yes|no|nope|yeah|yep|nah|ja|nein|doch|s\u00ed|oui|non|si|\u662f\u7684?|\u5bf9|"
    r"\u6ca1\u6709|\u6709|\u4e0d)(?![^\W_]|[\u3400-\u9fff]{3})",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:shall|should|would|want|like|need|can i|may i|soll|m\u00f6chten?s?t?|willst|brauchst|"
    r"darf ich|quieres|necesitas|puedo|veux|voulez|besoin|puis-je|souhait\w+|anything|ready|"
    r"sure)\b|[\u8981\u60f3]|\u9700\u8981|\u5417\u6211",
    re.IGNORECASE,
)
_PRESUPPOSED = re.compile(
    r"\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mis?|nuestr\w+|mon|ma|mes|notre|nos) [^,.?!]{1,40},? "
    r"(?:who|whose|qui)\b|\b(?:mein\w{0,2}|unser\w{0,2}) [^,.?!]{1,40}, (?:der|die|das)\b|"
    r"\b(?:mis?|nuestr\w+) [^,.?!]{1,40}, que\b",
    re.IGNORECASE,
)
_PAUSE = re.compile("[,.:;!\u2013\u2014\uff0c\u3002\uff1a\uff01-]\\s{0,5}|\\s[\u2013\u2014-]\\s")
_SEPARATORS = " \t\n,;:.!\u2013\u2014-\u2026\uff0c\u3001\u3002\uff01\uff1a"
_MAX_FILLERS = 5
_MIN_CHINESE = 4
_FEW_WORDS = 3
_LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "fr", "zh")
# What follows belongs to the clause before.
_SUBORDINATOR = re.compile(
    r"(?:that|which|who|whom|whose|where|when|while|until|dass|ob|der|die|das|den|dem|wo|was|weil|"
    r"als|damit|obwohl|que|qui|dont|où|donde|quien|cuando|aunque|quand|lorsque|except|but only|"
    r"unless|außer|salvo|excepto|sauf)\b",
    re.IGNORECASE,
)
_TITLE_WORDS = 5


@dataclass(frozen=True)
class _Setting:
    """What is known of the conversation when a sentence is read."""

    names: frozenset[str]
    """Names of persons and other capitalised words from the middle of sentences."""
    question: str
    """The question of another speaker just before; empty if there is none."""
    fiction: bool
    """Whether a role play or a story goes on."""
    is_document: bool
    """Whether no person speaks, but a document or a tool: it is about the world."""


def read_statements(turns: Sequence[Turn]) -> tuple[Statement, ...]:
    """The statements of all turns that the assistant did not write, in order.

    A greeting, a question, a request, or a fragment without content is no statement. Every other
    sentence is one, and its doubt says why it may not be stored; an empty doubt means that it
    stands alone and lasts.

    Args:
        turns: A conversation or a part of it; later turns take back or replace earlier ones.

    Returns:
        Statements word for word, except those that are `completed`.
    """
    return _read(tuple((turn.id, turn.role, turn.speaker, turn.content) for turn in turns))


def find_statements(text: str) -> tuple[str, ...]:
    """The sentences of a text that its speaker states as so, whether or not they stand alone."""
    statements = _read((("", "user", "", text),))
    return tuple(statement.text for statement in statements if statement.asserted)


# Cached, because every candidate of a run is compared with the statements of the same turns.
@lru_cache(maxsize=64)
def _read(turns: tuple[tuple[str, str, str, str], ...]) -> tuple[Statement, ...]:
    contents = [content for _, role, _, content in turns if role == "user"]
    common = language_of("\n".join(contents)) if contents else "en"
    names = frozenset(name for content in contents for name in _NAME.findall(content))
    spoken: list[Spoken] = []
    playing = False
    question = ""
    for position, (turn_id, role, speaker, content) in enumerate(turns):
        if role == "assistant":
            question = _last_question(content)
            continue
        if role == "system":
            continue
        language = language_of(content, default=common if common != "other" else "en")
        rows, playing = _read_turn(
            content,
            language=language,
            names=names,
            question=question,
            playing=playing,
            is_document=role != "user",
        )
        for row in rows:
            statements = tuple(
                replace(statement, turn_id=turn_id, speaker=speaker, position=position)
                for statement in row.statements
            )
            spoken.append(
                replace(row, statements=statements, position=position, speaker=(role, speaker))
            )
        question = _last_question(content) if role == "user" else ""
    changed = apply_changes(spoken)
    return tuple(statement for row in changed for statement in row.statements)


def _last_question(content: str) -> str:
    sentences = split_sentences(content)
    return sentences[-1] if sentences and _QUESTION_MARK.search(sentences[-1]) else ""


def _read_turn(
    content: str,
    *,
    language: Language,
    names: frozenset[str],
    question: str,
    playing: bool,
    is_document: bool,
) -> tuple[list[Spoken], bool]:
    """The sentences of one turn, and whether a role play goes on after it."""
    staged = opens_with_stage_direction(content)
    fiction = False
    rows: list[Spoken] = []
    for index, sentence in enumerate(split_sentences(content)):
        spoken_in = language_of(sentence, default=language)
        if spoken_in == "other" != language and len(sentence.split()) <= _TITLE_WORDS:
            spoken_in = language
        if spoken_in == "other":
            rows.append(Spoken(sentence, "other", _foreign(sentence)))
            continue
        grammar = grammar_of(spoken_in)
        plain = _plain(sentence)
        if grammar.game_over.search(plain):
            playing = False
        playing = playing or grammar.game.search(plain) is not None
        here = grammar.fiction.search(plain) is not None
        staging = playing or fiction or here or staged
        setting = _Setting(names, "" if index else question, staging, is_document)
        # "Write a note to Tom." is over with its sentence; "translate this:" is not.
        fiction = fiction or (here and (":" in plain or not _asks(plain, grammar)))
        statements = tuple(_classify(sentence, grammar, setting))
        if not statements and _is_yes_or_no(plain, grammar, setting):
            doubt = f"{doubts.ANSWER}: {setting.question}"
            statements = (Statement(text=sentence, doubt=doubt),)
        row = Spoken(sentence, spoken_in, statements)
        rows.append(_with_subject(row, rows[-1], setting) if rows else row)
    return _with_irony(rows), playing


def _with_subject(row: Spoken, before: Spoken, setting: _Setting) -> Spoken:
    """A sentence with a pronoun, with the only person of the sentence before as its subject."""
    if len(row.statements) != 1 or row.language != before.language:
        return row
    statement = row.statements[0]
    if not doubts.is_incomplete(statement.doubt):
        return row
    # What is said as a condition or in irony introduces nobody.
    if not all(one.asserted for one in before.statements):
        return row
    named = before.statements[-1].text if before.statements else before.sentence
    grammar = grammar_of(row.language)
    text = complete_subject(statement.text, named, grammar)
    if not text or _doubt(_plain(text), grammar, setting) != "":
        return row
    completed = replace(statement, text=text, doubt="", completed=before.sentence)
    return replace(row, statements=(completed,))


def _with_irony(rows: list[Spoken]) -> list[Spoken]:
    """A remark such as "yeah right" makes the sentences next to it ironic."""
    ironic = {
        index
        for index, row in enumerate(rows)
        if row.language != "other" and grammar_of(row.language).remark.match(_plain(row.sentence))
    }
    return [
        row.doubted(doubts.IRONIC, asserted=False) if {index - 1, index + 1} & ironic else row
        for index, row in enumerate(rows)
    ]


def _foreign(sentence: str) -> tuple[Statement, ...]:
    if _ANY_QUESTION_MARK.search(sentence) or len(sentence) < _MIN_CHINESE:
        return ()
    return (Statement(text=sentence, doubt=doubts.LANGUAGE),)


def _classify(sentence: str, grammar: StatementGrammar, setting: _Setting) -> Iterator[Statement]:
    """The statements of one sentence."""
    plain = _plain(sentence)
    start, end, demanded = _core(plain, grammar)
    core, text = plain[start:end], sentence[start:end]
    if not _has_content(core, grammar):
        return
    quoted = _quotes(core)
    if setting.fiction or _ABOUT_STORING.search(plain) or quoted:
        if not _asks(core, grammar) or quoted:
            doubt = doubts.QUOTES if quoted else doubts.FICTION
            yield Statement(text=text, doubt=doubt, asserted=False)
        return
    if grammar.irony.search(plain):
        yield Statement(text=text, doubt=doubts.IRONIC, asserted=False)
        return
    if _is_wish(core, grammar):
        yield Statement(text=text, doubt=doubts.WISH, asserted=False)
        return
    if _is_small_talk(plain, core, grammar, setting):
        return
    doubt = _doubt(core, grammar, setting)
    if doubt == "":
        yield _in_order(text, sentence) if demanded else Statement(text=text)
        return
    clauses = list(_clauses(text, core, grammar, setting, doubt=doubt))
    # What is left of the sentence is held, and without a clause that stands alone, all of it is.
    if any(not clause.doubt for clause in clauses):
        yield from clauses
    elif doubt is None and (_PRESUPPOSED.search(core) or _is_about_safety(core)):
        yield Statement(text=text, doubt=doubts.ASKED, asserted=False)
    elif doubt is not None and (demanded or _may_carry_a_fact(core, grammar, doubt)):
        asserted = doubt not in doubts.NOT_ASSERTED
        yield Statement(text=text, doubt=_named(doubt, setting), asserted=asserted)


def _in_order(text: str, sentence: str) -> Statement:
    """A clause behind "that" as a sentence of its own, which German orders in another way."""
    ordered = main_clause(text)
    return Statement(text=ordered, completed=sentence) if ordered else Statement(text=text)


def _is_yes_or_no(plain: str, grammar: StatementGrammar, setting: _Setting) -> bool:
    """Whether a sentence answers a question about the user, and not an offer."""
    question = setting.question
    if not question or not _YES_OR_NO.match(plain) or _OFFER.search(question):
        return False
    return len(plain.split()) <= _FEW_WORDS + 1 and grammar.addressed.search(question) is not None


def _is_wish(core: str, grammar: StatementGrammar) -> bool:
    """Whether a sentence says how the assistant is to answer, and not what its speaker does."""
    if not grammar.wish.search(core) or _QUESTION_MARK.search(core):
        return False
    return not grammar.subject.match(core) or grammar.addressed.search(core) is not None


def _is_small_talk(plain: str, core: str, grammar: StatementGrammar, setting: _Setting) -> bool:
    if grammar.subject.search(core) or grammar.value.search(core):
        return False
    # People greet and sign in other languages too.
    short = len(plain.split()) <= _FEW_WORDS
    grammars = [grammar_of(language) for language in _LANGUAGES] if short else [grammar]
    texts = [core]
    # "Oh, peanuts" answers a question, while "thanks, very kind" does not.
    if not setting.question and len(core.split()) <= _FEW_WORDS:
        texts.append(plain)
    return any(one.small_talk.match(text) for one in grammars for text in texts)


def _named(doubt: str, setting: _Setting) -> str:
    """A fragment after a question answers it, and so does a sentence without its subject."""
    if setting.question and doubt in {doubts.FRAGMENT, doubts.SUBJECT}:
        return f"{doubts.ANSWER}: {setting.question}"
    return doubt


def _plain(sentence: str) -> str:
    """The sentence with straight apostrophes, of the same length."""
    return sentence.replace("\u2019", "'")


def _core(plain: str, grammar: StatementGrammar) -> tuple[int, int, bool]:
    """Start and end of a sentence without fillers and demands; whether it has a demand."""
    start, end, demanded = 0, len(plain), False
    after = grammar.demand_after.search(plain)
    if after and after.start() > 0:
        end, demanded = after.start(), True
    for _ in range(_MAX_FILLERS):
        rest = plain[start:end]
        hit = grammar.demand.match(rest)
        demanded = demanded or hit is not None
        hit = hit or grammar.filler.match(rest) or _taken_back(rest, grammar)
        if not hit or not hit.end():
            break
        start += hit.end()
    while start < end and plain[start] in _SEPARATORS:
        start += 1
    return start, end, demanded


def _taken_back(rest: str, grammar: StatementGrammar) -> re.Match[str] | None:
    """Words at the start that take back the sentence before, up to the comma behind them."""
    hit = grammar.retraction.match(rest)
    return _PAUSE.match(rest, hit.end()) if hit else None


def _has_content(core: str, grammar: StatementGrammar) -> bool:
    if CHINESE.search(core):
        return CHINESE.search(core[1:]) is not None
    return any(not grammar.stop.fullmatch(word) for word in _WORD.findall(core))


def _quotes(core: str) -> bool:
    """Whether a sentence quotes somebody; a title of a few words is no quotation."""
    hits = [hit[0] for hit in _QUOTED.finditer(core)]
    if any(len(hit.split()) > _TITLE_WORDS or ":" in core for hit in hits):
        return True
    if hits:
        return len(hits[0]) >= len(core) - 2
    return (_OPENED.search(core) is not None) or _CLOSED.search(core) is not None


def _asks(core: str, grammar: StatementGrammar) -> bool:
    return bool(
        _QUESTION_MARK.search(core)
        or grammar.question.match(core)
        or grammar.imperative.match(core)
    )


def _doubt(core: str, grammar: StatementGrammar, setting: _Setting) -> str | None:
    """Why a sentence may not be stored: empty if it may, `None` if it states nothing."""
    if _asks(core, grammar) or grammar.conversational.match(core):
        return None
    for pattern, doubt in (
        (grammar.hypothetical, doubts.HYPOTHETICAL),
        (grammar.request, doubts.REQUEST),
        (grammar.addressed, doubts.ADDRESSED),
        (grammar.reported, doubts.REPORTED),
    ):
        if pattern.search(core):
            return doubt
    return _doubt_of_form(core, grammar, setting) or _doubt_of_content(core, grammar, setting)


def _doubt_of_form(core: str, grammar: StatementGrammar, setting: _Setting) -> str:
    """Why a sentence does not stand alone; empty if it does."""
    if grammar.ellipsis.match(core):
        return doubts.SUBJECT
    value = grammar.value.match(core)
    # "Six, I forgot my brother" answers or corrects, whatever follows.
    if value and core[value.end() : value.end() + 1] in {",", "\uff0c"}:
        return doubts.FRAGMENT
    if not (grammar.subject.search(core) or grammar.finite.search(core)):
        return doubts.FRAGMENT
    word = _dangling(core, grammar, setting)
    return doubts.refers(word) if word else ""


def _doubt_of_content(core: str, grammar: StatementGrammar, setting: _Setting) -> str:
    """Why a sentence that stands alone is no lasting statement of the user; empty if it is."""
    if grammar.retraction.search(core):
        return doubts.RETRACTED
    if grammar.momentary.search(core):
        return doubts.MOMENTARY
    if _RIGHTS.search(core):
        return doubts.RIGHTS
    # A general truth, or somebody who has not been introduced, is not known to be the user's.
    name = _NAME_AT_START.match(core)
    if (
        setting.is_document
        or grammar.first_person.search(core)
        or (name and name[0] in setting.names)
    ):
        return ""
    return doubts.OWNER


def _dangling(core: str, grammar: StatementGrammar, setting: _Setting) -> str:
    """The word whose referent is outside the sentence; empty if there is none."""
    hit = grammar.start.match(core)
    if hit:
        return hit[0]
    name = _NAME_AT_START.match(core)
    pairs = ((grammar.person, grammar.people), (grammar.thing, grammar.things))
    # "Anita broke her wrist": a name at the start is what a pronoun for a person means.
    for pronoun, antecedent in pairs[1:] if name and name[0] in setting.names else pairs:
        first = antecedent.search(core)
        hit = pronoun.search(core)
        # Only what stands before a pronoun can be meant by it.
        if hit and (first is None or first.end() > hit.start()):
            return hit[0]
    words = (hit[0].strip() for hit in grammar.elsewhere.finditer(core))
    # A document is about its things: "The meeting room has a projector."
    introducing = _ARTICLES if setting.is_document else frozenset[str]()
    return next((word for word in words if word.casefold() not in introducing), "")


def _clauses(
    text: str, core: str, grammar: StatementGrammar, setting: _Setting, *, doubt: str | None
) -> Iterator[Statement]:
    """Clauses that stand alone inside a sentence that as a whole does not.

    "I'm vegan, what can I cook?" states that the speaker is vegan.
    """
    if doubt in {doubts.RETRACTED, doubts.FRAGMENT, doubts.OWNER}:
        return
    ends = [hit.span() for hit in grammar.clause.finditer(core)]
    if not ends:
        return
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(core)]
    for opening, stop, following in zip(starts, stops, [*starts[1:], len(core)], strict=True):
        because = grammar.because.match(core[opening:stop])
        start = opening + (because.end() if because else 0)
        clause = core[start:stop].rstrip("?\uff1f!. ")
        # Behind a condition, or "my boss says", everything is said under it.
        if grammar.hypothetical.search(clause) or grammar.reported.search(clause):
            return
        # What limits a clause, such as an "if" or a "that", is no part that can be left out.
        limits = _SUBORDINATOR.match(core, following) or grammar.hypothetical.match(core, following)
        if limits and not grammar.request.match(core, following):
            continue
        if not grammar.subject.match(clause) and not grammar.first_person.match(clause):
            continue
        reason = _doubt(clause, grammar, setting)
        if reason is None:
            continue
        stated = text[start : start + len(clause)]
        if reason:
            asserted = reason not in doubts.NOT_ASSERTED
            yield Statement(text=stated, doubt=reason, asserted=asserted)
        else:
            yield _in_order(stated, text) if because else Statement(text=stated)


def _is_about_safety(core: str) -> bool:
    """Whether what looks like a request may tell of an allergy: "can't have nuts"."""
    return not _ANY_QUESTION_MARK.search(core) and looks_like_safety(core)


def _may_carry_a_fact(core: str, grammar: StatementGrammar, doubt: str) -> bool:
    """Whether a doubtful sentence is worth a review."""
    if doubt in {doubts.ADDRESSED, doubts.REQUEST}:
        return grammar.first_person.search(core) is not None
    if doubt != doubts.FRAGMENT:
        return True
    if CHINESE.search(core):
        return bool(grammar.value.search(core)) or len(CHINESE.findall(core)) >= _MIN_CHINESE
    words = [word for word in _WORD.findall(core) if not grammar.stop.fullmatch(word)]
    return len(words) >= 1
