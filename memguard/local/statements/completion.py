"""Completes a sentence from another one, where only one reading is possible.

"My sister Clara lives in Lyon. She is a nurse." has one person whom "she" can mean. Of "My flight
is on Monday. Sorry, Tuesday." only the weekday changes.
"""

import re

from memguard.local.languages import CHINESE
from memguard.local.statements.grammar import StatementGrammar

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# A capitalised word that no preposition of place or time makes a town or a date.
_PERHAPS_A_PERSON = re.compile(
    r"(?<!\bin )(?<!\bat )(?<!\bto )(?<!\bon )(?<!\bfrom )(?<!\bnear )(?<!\bin der )(?<!\bnach )"
    r"(?<!\baus )(?<!\ben )(?<!\ba )(?<!\b\u00e0 )(?<!\bde )(?<=\w )[A-Z\u00c0-\u00de]"
    r"[a-z\u00df-\u00ff]+"
)
# Somebody without a name, or a friend of the person.
_SOMEBODY = re.compile(
    r"\b(?:with|mit|con|avec) (?:an?|ein\w*|una?|une) |\b(?:of|von|de) $", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?:is (?:called|named)|'s name is|hei\u00dft|se llama|s'appelle) [A-Z\u00c0-\u00de]\w+"
)
_POSSESSIVE = re.compile("'s?\\b|\u2019s?\\b|\u7684")
# Behind "meine Frau", a capital may belong to her name or to the object.
_CLAUSE = re.compile(
    r"^(?P<subject>(?i:ich|wir)|(?i:meine?|unsere?) \w+(?= [^A-Z\u00c4\u00d6\u00dc])) "
    r"(?P<rest>.{1,300}) "
    r"(?!(?:um|an|auf|aus|ein|ab|zu|vor|mit|nach|her|hin|weg|los|zur\u00fcck)\w{3})"
    r"(?P<verb>\w+)(?P<end>[\s.!]*)$"
)
_VERBS = {
    "ich": re.compile(
        r"^(?:\w{2,}e|bin|hab|kann|muss|darf|mag|will|soll|wei\u00df|war|hatte)$", re.IGNORECASE
    ),
    "wir": re.compile(r"^(?:\w{2,}en|sind|tun)$", re.IGNORECASE),
}
_OTHER_VERB = re.compile(
    r"^(?:\w{2,}t|ist|kann|muss|darf|mag|will|soll|war|hatte|wurde)$", re.IGNORECASE
)
_END = " .!\u3002\uff01\u2026\t\n"


def complete_subject(core: str, before: str, grammar: StatementGrammar) -> str:
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
    if not pronoun or len(relations) != 1:
        return ""
    who = relations[0]["who"]
    ahead, behind = before[: relations[0].start("who")], before[relations[0].end("who") :]
    if _SOMEBODY.search(ahead) or _SOMEBODY.search(behind) or _POSSESSIVE.match(behind):
        return ""
    behind = _NAMED.sub(" ", behind)
    # German writes every noun with a capital, so that a name cannot be told from it.
    if not _is_german(who) and (
        _PERHAPS_A_PERSON.search(ahead) or _PERHAPS_A_PERSON.search(behind)
    ):
        return ""
    genders = ((grammar.female, grammar.male), (grammar.male, grammar.female))
    if any(one.search(pronoun[0]) and other.search(who) for one, other in genders):
        return ""
    if not pronoun[0]:
        # Spanish leaves the pronoun out; what comes before the person could be meant as well.
        return "" if ahead else f"{who} {core[0].lower()}{core[1:]}"
    if core[0].isupper():
        who = who[0].upper() + who[1:]
    return who + core[pronoun.end() :]


def main_clause(clause: str) -> str:
    """A German clause behind "dass" as a sentence: its verb moves behind its subject.

    Returns:
        The sentence; empty if the clause is not German, or if its subject or verb is in doubt.
    """
    hit = _CLAUSE.fullmatch(clause)
    if not hit:
        return ""
    verbs = _VERBS.get(hit["subject"].lower(), _OTHER_VERB)
    if not verbs.match(hit["verb"]) or "," in hit["rest"]:
        return ""
    return f"{hit['subject']} {hit['verb']} {hit['rest']}{hit['end']}"


def _is_german(who: str) -> bool:
    return re.match(r"(?:meine?|unsere?)\b", who, re.IGNORECASE) is not None


def complete_value(core: str, old: str, grammar: StatementGrammar) -> str:
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
    pattern = CHINESE if CHINESE.search(old) else _WORD
    words = {word.lower() for word in pattern.findall(old)}
    return all(word.lower() in words for word in pattern.findall(rest))
