"""What every method refuses to judge, before any model call. Pure."""

from collections.abc import Sequence

from memguard.instructions import find_instruction
from memguard.redaction import Screen, Sensitive, is_secret, sensitive_kinds
from memguard.schema.base import is_blank
from memguard.schema.decision import AdmissionDecision, ReasonCode
from memguard.schema.memory import Turn


def refuse_text(
    text: str, *, max_chars: int | None = None, screen: Screen = "secrets"
) -> AdmissionDecision | None:
    """Refuse a text that is blank or too long for a fact, and hold a secret or an instruction.

    Both go into quarantine. A secret is read there by the owner alone, and the reason names its
    kind. An instruction to the assistant would be withheld from every prompt.

    Args:
        text: The candidate's text.
        max_chars: Limit in characters; none by default.
        screen: What the text is searched for.

    Returns:
        The decision, or `None` if the text can be judged.
    """
    if is_blank(text):
        return _refusal("blank_text", "the candidate holds no visible text")
    if kinds := sensitive_kinds(text, screen=screen):
        return _hold(kinds)
    if max_chars is not None and len(text) > max_chars:
        return _refusal(
            "text_too_long", f"{len(text)} characters, more than {max_chars}; a memory is one fact"
        )
    if screen != "nothing" and (instruction := find_instruction(text)):
        return AdmissionDecision(
            outcome="quarantine",
            reason="instruction",
            explanation=f"not judged: the candidate instructs the assistant ({instruction})",
        )
    return None


def refuse_source(evidence: Sequence[Turn], *, required: bool) -> AdmissionDecision | None:
    """Refuse a source without text; `authorship` looks at who said the text.

    Args:
        evidence: The turns that a memory may rest on.
        required: Whether there must be any.

    Returns:
        The decision, or `None` if the source can be judged.
    """
    if evidence or not required:
        return None
    return _refusal("no_source", "there is no source text to check the candidate against")


def _hold(kinds: Sequence[Sensitive]) -> AdmissionDecision:
    """In quarantine rather than refused: nothing that a user said is lost."""
    return AdmissionDecision(
        outcome="quarantine",
        reason="secret" if any(map(is_secret, kinds)) else "personal_data",
        explanation=f"not judged: the candidate contains sensitive text ({', '.join(kinds)})",
    )


def _refusal(reason: ReasonCode, explanation: str) -> AdmissionDecision:
    return AdmissionDecision(
        outcome="reject", reason=reason, explanation=f"not judged: {explanation}"
    )
