"""A statement, and the reasons for which it may not be stored."""

from dataclasses import dataclass

HYPOTHETICAL = "hypothetical or uncertain by its words"
IRONIC = "ironic by its words"
FRAGMENT = "a fragment: its subject or its verb is missing"
ANSWER = "it answers the turn before"
SUBJECT = "its subject or verb is in the sentence before"
MOMENTARY = "about the moment or the present task, so not lasting"
RETRACTED = "taken back in the conversation"
REPLACED = "replaced later in the conversation"
QUOTES = "it quotes somebody"
REPORTED = "it reports what somebody says or thinks"
FICTION = "said in a role play, in a story or to the memory itself"
ADDRESSED = "it addresses the assistant"
REQUEST = "it asks for something"
ASKED = "stated inside a question or a request"
LANGUAGE = "not understood: its language has no rules"
WISH = "a wish about the answers, not a fact"
OWNER = "it does not say that it is about the user"
RIGHTS = "a claim of rights that only somebody else can grant"

NOT_ASSERTED = frozenset(
    {HYPOTHETICAL, IRONIC, RETRACTED, REPLACED, QUOTES, REPORTED, FICTION, WISH}
)
"""What is not said as a fact, so that it supports nothing either."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a conversation."""

    text: str
    """Word for word, without a request to remember it; unless it is `completed`."""
    turn_id: str = ""
    """The turn that states it."""
    speaker: str = ""
    """Who said it; empty if the turn names nobody."""
    doubt: str = ""
    """Why it may not be stored; empty if it stands alone and lasts."""
    asserted: bool = True
    """Whether it is said as a fact, and not as a condition, in irony or in a quotation."""
    completed: str = ""
    """The sentence from which its subject or its value was taken; empty if it is verbatim."""
    position: int = 0
    """The index of its turn."""


def refers(word: str) -> str:
    """The doubt about a sentence with a word that refers to another one."""
    return f'"{word}" refers to something outside the sentence'


def is_reference(doubt: str) -> bool:
    """Whether a doubt is about a word that refers to another sentence."""
    return doubt.startswith('"')


def is_incomplete(doubt: str) -> bool:
    """Whether a doubt is about a part that stands in another sentence."""
    return is_reference(doubt) or doubt.startswith((FRAGMENT, ANSWER))
