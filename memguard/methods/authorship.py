"""Whose words a candidate rests on: fixed rules that come before every judge. Pure.

A judge may be misled into storing what the assistant itself said, and the store would then grow
from the agent's words. These rules use the roles of the turns that a candidate names and the words
that they share, so no model can lift them. A mail or chat that a user pasted into a turn is another
author's, though it is the user's turn. What the rules withhold goes into quarantine.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memguard.conversations.passages import expand_turns
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.decision import AdmissionDecision, ReasonCode
from memguard.schema.memory import (
    CandidateMemory,
    SaidBy,
    SourceRole,
    Turn,
    speaker_roles,
    turn_time,
)

Problem = tuple[ReasonCode, str]
"""A reason for withholding, as a code and in words."""

USER_ONLY: tuple[SourceRole, ...] = ("user",)
"""By default only a user's words are a source of memories."""

# Letters and digits, with the marks that scripts put above, below or after them.
_WORD = re.compile(
    r"[^\W_](?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])*"
)
_SENTENCE = re.compile(r"[^.!?\u061f\u3002\uff01\uff1f\n]+[.!?\u061f\u3002\uff01\uff1f]*")
_QUESTION_MARKS = ("?", "\u061f", "\uff1f")
# Scripts that are written without spaces; their words are compared by pairs of characters.
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")


def _folded(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


_YES = frozenset(
    _folded("""
    yes yeah yep yup aye exactly correct right indeed absolutely definitely certainly precisely
    true no nope nah never neither both either all none oui ouais si exactement non ja jawohl genau
    stimmt richtig doch nein sí exacto correcto sim certo exato não да верно точно нет tak nie
    evet vâng đúng không כן לא نعم أجل لا हाँ हां जी नहीं はい うん そう そうです
    いいえ 是 是的 对 對 没错 嗯 不 不是 네 예 맞아요 아니요 ใช่ ไม่
    """)
)
"""Words that answer a question, or agree with a statement, and say nothing by themselves."""
_CONSENT = frozenset(
    _folded("""
    ok okay k sure fine alright please do agreed good great perfect claro vale bien bueno klar gut
    gerne natürlich bitte bon accord хорошо ладно конечно 好 好的 可以 行 좋아요 tamam dobrze
    """)
)
"""Words that consent to a question. After a statement they are only polite."""
_PROCEED = frozenset(
    _folded("""
    continue go on next more keep going proceed weiter sigue siga continuez дальше 继续 続けて
    """)
)
"""Words that only ask to go on. After a statement, "yes, go on" does not agree with it."""
_FILLER = frozenset(
    _folded("""
    a thanks thank you and then so oh hi hello hey cool nice wow it is was i am did that this s the
    of course for now much again step merci danke gracias obrigado спасибо 谢谢 ありがとう
    """)
)
"""Words that neither state nor answer anything."""
_BARE = _YES | _CONSENT | _PROCEED | _FILLER
_STOP = frozenset(
    _folded("""
    the user users and that this with has have had was were are his her their they she you your for
    from not but said says assistant who will would about tool document der die das und ist hat
    nicht ein eine que los las una est les des pas
    """)
)
"""Words that do not tell what a text is about."""
_STEM = 4
"""Letters of a word that are compared, so that "lives" is "live" and "sailing" is "sail"."""
_MIN_WORD = 3
"""Letters of the shortest word that is compared."""
_MAX_BARE = 200
"""Characters of the longest turn that may be a bare answer."""


@dataclass(frozen=True)
class SourceWords:
    """The turns of a source, and who said which words; built once for all its candidates."""

    evidence: tuple[Turn, ...]
    """The turns that may be evidence, in order; those of users may contain pasted text."""
    sources: tuple[SourceRole, ...] = USER_ONLY
    """The roles whose words candidates may rest on."""

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The evidence, with pasted text as turns of its own under the same id."""
        return expand_turns(self.evidence)

    @cached_property
    def statements(self) -> tuple[Turn, ...]:
        """The turns of permitted authors that say something by themselves."""
        return tuple(turn for turn in self.turns if turn.role in self.sources and not is_bare(turn))

    @cached_property
    def stated(self) -> frozenset[str]:
        """The words of the statements."""
        return _words_of(self.statements)

    @cached_property
    def foreign(self) -> frozenset[str]:
        """The words of all other authors, such as the assistant."""
        return _words_of([turn for turn in self.turns if turn.role not in self.sources])

    @cached_property
    def answers(self) -> tuple[tuple[Turn, Turn, frozenset[str]], ...]:
        """Each bare answer of a user, the turn that it answers, and the words that it confirms."""
        answers: list[tuple[Turn, Turn, frozenset[str]]] = []
        before: Turn | None = None
        for turn in self.turns:
            if turn.pasted_as != "own":
                # "Exactly!" below a pasted mail does not make every line of it the user's.
                before = None
            elif not is_bare(turn):
                before = turn
            # "Yes." "Exactly." in two messages answer the same turn.
            elif before is not None and (words := _confirmed_words(turn, before=before)):
                answers.append((turn, before, words))
        return tuple(answers)

    def withhold(self, candidate: CandidateMemory) -> AdmissionDecision | None:
        """Withhold a candidate that does not rest on the words of a permitted author.

        A candidate that names turns rests on these alone, whatever else its source contains. A
        bare answer such as "yes" counts only if the candidate also names the turn that it answers,
        and has a word of that turn. A candidate that names no turn rests on the whole source.

        Returns:
            The decision to quarantine it, or `None` if a judge may decide.
        """
        if not self.evidence:
            return None
        words = content_words(candidate.text)
        ids = frozenset(candidate.turn_ids)
        named = [turn for turn in self.turns if turn.id in ids] if ids else []
        problem: Problem | None
        if self._confirms(candidate, words):
            problem = None
        elif ids and not named:
            problem = "no_user_words", "no turn that it names is evidence"
        elif (pasted := self._problem_with_pasted(candidate, named)) is not None:
            problem = pasted
        # A guarded store names all turns of its source, which tells no more than naming none.
        elif not named or len(named) == len(self.turns) > 1:
            problem = self._problem_with_source(words)
        else:
            problem = self._problem_with_turns(named, words)
        if problem is None:
            return None
        reason, explanation = problem
        turns = ", ".join(candidate.turn_ids[:5])
        # In quarantine rather than refused: a person may know that the user meant it.
        return AdmissionDecision(
            outcome="quarantine",
            reason=reason,
            explanation=f"not judged: {explanation}{f' (turns {turns})' if turns else ''}",
        )

    def _confirms(self, candidate: CandidateMemory, words: frozenset[str]) -> bool:
        """Whether it names a question and the answer, and is about what the question asks."""
        return any(
            {turn.id, before.id} <= {*candidate.turn_ids} and not words.isdisjoint(confirmed)
            for turn, before, confirmed in self.answers
        )

    def _problem_with_pasted(
        self, candidate: CandidateMemory, named: Sequence[Turn]
    ) -> Problem | None:
        """Why a candidate rests on text that the user pasted, not on the user's own words."""
        turns = named or self.turns
        if all(turn.pasted_as == "own" for turn in turns):
            return None
        # What the user says elsewhere is the user's too: a mail may repeat it.
        users = [turn for turn in self.statements if turn.pasted_as == "own"]
        passage = pasted_passage(candidate, [*users, *turns], strict=bool(named))
        if passage is None:
            return None
        if "document" in self.sources and _is_attributed(candidate.text, passage):
            return None
        return "no_user_words", f"its words are from {describe(passage)}, not the user's own"

    def _problem_with_turns(self, named: Sequence[Turn], words: frozenset[str]) -> Problem | None:
        """Why a candidate does not rest on the turns that it names."""
        if not any(turn.role in self.sources for turn in named):
            roles = " and ".join(sorted({turn.role for turn in named}))
            return "no_user_words", f"it rests only on what the {roles} said"
        statements = [turn for turn in named if turn in self.statements]
        if not statements:
            return (
                "bare_answer",
                "it rests on an answer such as 'yes' without the question that this answers",
            )
        if words.isdisjoint(_words_of(statements)) and 2 * len(words & self.foreign) > len(words):
            return "no_user_words", "its words are another author's, not those of its turns"
        return None

    def _problem_with_source(self, words: frozenset[str]) -> Problem | None:
        """Why a candidate does not rest on its source as a whole."""
        if not self.statements and any(turn.role not in self.sources for turn in self.evidence):
            return "no_user_words", "its source has no statement of a user or a permitted source"
        if 2 * len((words & self.foreign) - self.stated) > len(words):
            return "no_user_words", "most of its words were said by another author alone"
        return None


def withhold(candidate: CandidateMemory, evidence: Sequence[Turn]) -> AdmissionDecision | None:
    """As `SourceWords.withhold`, for one candidate that may rest on a user's words only."""
    return SourceWords(tuple(evidence)).withhold(candidate)


def pasted_passage(
    candidate: CandidateMemory, turns: Sequence[Turn], *, strict: bool = False
) -> Turn | None:
    """The pasted passage that a candidate rests on; `None` if it rests on other words.

    Args:
        candidate: The candidate. The name of its subject counts for nobody.
        turns: The turns that it may rest on, with pasted passages as turns of their own.
        strict: Whether a candidate that has no word of anybody but those who pasted is taken for a
            passage's, as a translation is.

    Returns:
        The passage with most of its words, if at least half of the words that occur in the turns
        occur in passages alone.
    """
    pasted = [turn for turn in turns if turn.pasted_as != "own"]
    if not pasted:
        return None
    words = content_words(candidate.text) - content_words(candidate.subject)
    stated = _words_of([turn for turn in turns if turn.pasted_as == "own"])
    borrowed = (words & _words_of(pasted)) - stated
    shared = len(words & stated) + len(borrowed)
    if 2 * len(borrowed) < shared or not (borrowed or (strict and words and not shared)):
        return None
    return max(pasted, key=lambda turn: len(borrowed & _turn_words(turn.content)))


_KINDS = {
    "quotation": "a quotation",
    "mail": "a mail",
    "transcript": "a chat or transcript",
    "code": "code",
    "log": "a log",
    "table": "a table",
    "system": "text in the form of a system message",
}


def describe(passage: Turn) -> str:
    """A pasted passage in words: "a mail by Karl Meier that the user pasted"."""
    author = f" by {passage.speaker}" if passage.speaker else ""
    return f"{_KINDS.get(passage.pasted_as, 'text')}{author} that the user pasted"


_ATTRIBUTION = re.compile(
    r"^\W{0,3}(?:according to|as per|laut|gemäß|zufolge|según|de acuerdo con|selon|d['\u2019]après|"
    r"根据|據|据)",
    re.IGNORECASE,
)


def _is_attributed(text: str, passage: Turn) -> bool:
    """Whether a text says whose words it repeats."""
    label = f"{passage.speaker or 'The document'}: "
    return text.startswith(label) or _ATTRIBUTION.match(text) is not None


def roles_behind(candidate: CandidateMemory, turns: Sequence[Turn]) -> SaidBy:
    """Whose words a candidate rests on, of the turns that it names.

    Of a turn with pasted text, the candidate rests on either the user's own words or the passage.
    """
    parts = expand_turns(turns)
    if all(part.pasted_as == "own" for part in parts):
        return speaker_roles(tuple(turns))
    if pasted_passage(candidate, parts, strict=True) is not None:
        return "document"
    return speaker_roles(tuple(part for part in parts if part.pasted_as == "own"))


def speaker_behind(candidate: CandidateMemory, turns: Sequence[Turn]) -> str:
    """The name of the user who said the latest of some turns; empty if none of them has one.

    Of a candidate that rests on a passage which a user pasted, it is the name of its author.
    """
    parts = expand_turns(turns)
    passage = pasted_passage(candidate, parts, strict=True)
    if passage is not None:
        return passage.speaker
    names = [part.speaker for part in parts if part.role == "user" and part.pasted_as == "own"]
    return next((name for name in reversed(names) if name), "")


def is_bare(turn: Turn) -> bool:
    """Whether a user's turn only answers, consents or greets, and states nothing by itself."""
    if turn.role != "user" or len(turn.content) > _MAX_BARE:
        return False
    return _BARE.issuperset(_folded(turn.content))


def _confirmed_words(answer: Turn, *, before: Turn) -> frozenset[str]:
    """The words of the turn before an answer that the answer confirms; empty if it does not."""
    words = {*_folded(answer.content)}
    asked = " ".join(s for s in _SENTENCE.findall(before.content) if s.endswith(_QUESTION_MARKS))
    if not words & (_YES | _CONSENT):
        return frozenset()
    # "Sailing is fun. Shall I go on?" "Yes." says nothing about sailing.
    agrees = words & _YES and not words & _PROCEED
    return content_words(asked or (before.content if agrees else ""))


def content_words(text: str) -> frozenset[str]:
    """The words of a text that tell what it is about, by their first letters."""
    words: set[str] = set()
    for word in _folded(text):
        if _SPACELESS.search(word):
            words.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word.isdecimal() or (len(word) >= _MIN_WORD and word not in _STOP):
            words.add(word if len(word) == _MIN_WORD else word.removesuffix("s")[:_STEM])
    return frozenset(words)


# Many candidates rest on the same turns, and a turn may be long.
@lru_cache(maxsize=256)
def _turn_words(content: str) -> frozenset[str]:
    return content_words(content)


def _words_of(turns: Sequence[Turn]) -> frozenset[str]:
    return frozenset[str]().union(*(_turn_words(turn.content) for turn in turns))


def attribute(
    candidate: CandidateMemory, turns: Sequence[Turn], *, conversation_id: str
) -> CandidateMemory:
    """Give a candidate that names turns their time, speaker and conversation.

    Args:
        candidate: The candidate.
        turns: The turns that it names, as far as the conversation has them.
        conversation_id: Id of the conversation; empty if it has none.

    Raises:
        InvalidInputError: If it names a turn that the conversation does not have, or has another
            time, speaker or conversation than its turns.
    """
    known = {turn.id for turn in turns}
    unknown = next((name for name in candidate.turn_ids if name not in known), None)
    if unknown is not None:
        msg = (
            f"candidate {candidate.text!r} names turn {unknown!r}, which the conversation does "
            "not have: name turns by their ids, or leave `turn_ids` out"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    update: dict[str, object] = {}
    roles = roles_behind(candidate, turns)
    if roles == "document" and candidate.said_by in {"user", "mixed"}:
        # The caller knows the turn, not who wrote the passage in it.
        candidate = candidate.model_copy(update={"said_by": "unknown"})
    for name, unset, value in (
        ("said_by", "unknown", roles),
        ("said_at", None, turn_time(tuple(turns))),
        ("conversation_id", "", conversation_id),
        ("speaker", "", speaker_behind(candidate, turns)),
    ):
        present = getattr(candidate, name)
        if value == unset:
            continue
        if present not in (unset, value):
            msg = (
                f"candidate {candidate.text!r} has `{name}` {str(present)!r}, but its turns have "
                f"{str(value)!r}: leave it out, and the turns give it"
            )
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        update[name] = value
    return candidate.model_copy(update=update)
