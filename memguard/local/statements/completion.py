"""Completes a sentence from another one, where only one reading is possible.

"My sister Clara lives in Lyon. She is a nurse." has one person whom "she" can mean. Of "My flight
is on Monday. Sorry, Tuesday." only the weekday changes.
"""

import re

from memguard.local.statements.grammar import Grammar

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
# A capitalised word that no preposition of place or time makes a town or a date.
_PERHAPS_A_PERSON = re.compile(
    r"(?<!\bin )(?<!\bat )(?<!\bto )(?<!\bon )(?<!\bfrom )(?<!\bnear )(?<!\bin der )(?<!\bnach )"
    r"(?<!\baus )(?<!\ben )(?<!\ba )(?<!\b\u00e0 )(?<!\bde )(?<=\w )[A-Z\u00c0-\u00de]"
    r"[a-z\u00df-\u00ff]+"
)
_WITH = re.compile(r"\b(?:and|with|und|mit|y|con|et|avec)\b|[\u548c\u8ddf]", re.IGNORECASE)
_END = " .!\u3002\uff01\u2026\t\n"


def complete_subject(core: str, before: str, grammar: Grammar) -> str:
    """The sentence with the person of the sentence before in place of its pronoun.

    Args:
        core: A sentence with a pronoun as its first word.
        before: The sentence before it, of the same turn.
        grammar: Of the language of both.

    Returns:
        The completed sentence; empty if the pronoun could mean anybody else.
    """
    pronoun = grammar.completed.match(core)
    relations = list(grammar.relation.finditer(before))
    if not pronoun or len(relations) != 1 or _WITH.search(before):
        return ""
    who = relations[0]["who"]
    rest = before[: relations[0].start("who")] + before[relations[0].end("who") :]
    # German writes every noun with a capital, so that a name cannot be told from it.
    if _PERHAPS_A_PERSON.search(rest) and not _is_german(who):
        return ""
    genders = ((grammar.female, grammar.male), (grammar.male, grammar.female))
    if any(one.search(pronoun[0]) and other.search(who) for one, other in genders):
        return ""
    return who + core[pronoun.end() :]


def _is_german(who: str) -> bool:
    return re.match(r"(?:meine?|unsere?)\b", who, re.IGNORECASE) is not None


def complete_value(core: str, old: str, grammar: Grammar) -> str:
    """The earlier statement with the value of a fragment in place of its own.

    Args:
        core: A fragment with one value, such as "Tuesday" or "four spaces".
        old: The statement that it corrects, with one value of this kind.
        grammar: Of the language of both.

    Returns:
        The corrected statement; empty if the fragment says anything else.
    """
    fragment = core.strip(_END)
    new = list(grammar.value.finditer(fragment))
    if len(new) != 1:
        return ""
    same = [hit for hit in grammar.value.finditer(old) if hit.lastgroup == new[0].lastgroup]
    if len(same) != 1:
        return ""
    rest = fragment[: new[0].start()] + " " + fragment[new[0].end() :]
    if not _contained(rest, old):
        return ""
    return old[: same[0].start()] + new[0][0] + old[same[0].end() :]


def _contained(rest: str, old: str) -> bool:
    """Whether every word or Chinese character of a text stands in another one too."""
    pattern = _CHINESE if _CHINESE.search(old) else _WORD
    words = {word.lower() for word in pattern.findall(old)}
    return all(word.lower() in words for word in pattern.findall(rest))
