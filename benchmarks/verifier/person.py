"""Rewrites the first person into the third: `I have my dog` becomes `Anna has her dog`."""

import re
from dataclasses import dataclass

from memguard.local.verifier.lexicon import word_set

_IRREGULAR = {
    "am": "is", "'m": " is", "have": "has", "do": "does", "go": "goes", "was": "was",
    "were": "was", "don't": "doesn't", "haven't": "hasn't", "aren't": "isn't", "'ve": " has",
    "'ll": " will", "'d": " would",
}  # fmt: skip


_UNCHANGED = word_set(
    """can could will would shall should may might must had did didn't can't cannot couldn't won't
    wouldn't shouldn't used never always also just really only often sometimes usually still
    recently currently hardly rarely once mostly both already even now"""
)
_ADVERBS = word_set(
    """never always also just really only often sometimes usually still recently currently hardly
    rarely mostly both already even now once not probably actually"""
)
_PAST = word_set(
    """went bought ate saw took made taught thought wrote ran drove spoke broke chose grew knew met
    left lost sold told spent felt kept won swam sang flew gave began found built caught brought
    fell heard rode wore got came became said slept paid held stood understood lent sent lived had
    read put cut hurt hit quit let set"""
)
_WORDS = re.compile(r"\w+(?:'\w+)?|[^\w\s]|\s+")


@dataclass(frozen=True)
class Pronouns:
    """The pronouns of a speaker."""

    subject: str
    """`she`"""
    object: str
    """`her`, after a verb."""
    possessive: str
    """`her`, before a noun."""


SHE = Pronouns("she", "her", "her")
HE = Pronouns("he", "him", "his")
THEY = Pronouns("they", "them", "their")


def third_person(sentence: str, *, name: str, pronouns: Pronouns) -> str:
    """Rewrite a sentence; the first `I` becomes the name, later ones a pronoun."""
    pieces = _WORDS.findall(_open_contractions(sentence))
    out: list[str] = []
    subject_next_verb = False
    named = False
    for piece in pieces:
        lower = piece.lower()
        if piece == "I" or (lower == "i" and not out):
            out.append(name if not named else pronouns.subject)
            named = subject_next_verb = True
        elif lower in {"my", "mine"}:
            possessive = f"{name}'s" if not named else pronouns.possessive
            out.append(possessive)
            named = True
        elif lower == "me":
            out.append(pronouns.object if named else name)
        elif lower == "myself":
            out.append({"she": "herself", "he": "himself"}.get(pronouns.subject, "themselves"))
        elif subject_next_verb and piece.strip():
            plural = pronouns.subject == "they" and out_is_pronoun(out, pronouns)
            out.append(piece if plural else inflect(piece))
            # An adverb may come between subject and verb: `I never eat`.
            subject_next_verb = lower in _ADVERBS
        else:
            out.append(piece)
    return "".join(out)


def out_is_pronoun(out: list[str], pronouns: Pronouns) -> bool:
    """Whether the output ends with the subject pronoun; after `they` a verb stays as it is."""
    words = [word for word in out if word.strip()]
    return bool(words) and words[-1] == pronouns.subject


def inflect(verb: str) -> str:
    """The third person singular of a verb form that follows `I`."""
    lower = verb.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower in _UNCHANGED or lower in _PAST or lower.endswith("ed") or not lower.isalpha():
        return verb
    if lower.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def _open_contractions(sentence: str) -> str:
    text = sentence.replace("\u2019", "'")
    # `'d` is read as `would`: `had` would need the verb that follows.
    for short, full in (("'m", " am"), ("'ve", " have"), ("'ll", " will"), ("'d", " would")):
        text = re.sub(rf"\b[Ii]{short}\b", f"I{full}", text)
    return text
