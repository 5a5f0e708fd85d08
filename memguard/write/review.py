"""Reviews: a person decides about quarantined candidates, or writes another text.

The node `review` of the write guard interrupts its run with `review_request`, in the shape of
LangChain's human-in-the-loop middleware, and carries out each decision of the answer. A text that
a person wrote is stored as it is; no gate judges it, and its receipt says so.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, get_args

from langgraph.runtime import get_runtime
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, JsonValue

from memguard.journal.commit import Backing
from memguard.journal.quarantine import Quarantine
from memguard.methods.admission import refuse_text
from memguard.schema.base import Text
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, record_key
from memguard.schema.receipt import HIDDEN_REASONS, MethodReport, Receipt, ReceiptFactory
from memguard.write.gates import digest_of
from memguard.write.report import Review, ReviewOutcome, ReviewRuling

# Receipts name it as their method.
_REVIEW_METHOD = "human_review"

_ACTION = "store_memory"
"""The action that a person is asked about; its one argument is `text`."""


class _AnswerPart(BaseModel):
    """A part of an answer; additional fields, which some user interfaces send, are ignored."""

    model_config = ConfigDict(frozen=True)


class Approve(_AnswerPart):
    """Store the candidate as it is."""

    type: Literal["approve"]


class EditedArgs(_AnswerPart):
    """The text that the person wants stored."""

    text: Text


class EditedAction(_AnswerPart):
    """The action as the person wants it."""

    name: Literal["store_memory"]
    args: EditedArgs


# The shape of LangChain's `EditDecision`, hence the nesting.
class Edit(_AnswerPart):
    """Store another text instead."""

    type: Literal["edit"]
    edited_action: EditedAction


class Reject(_AnswerPart):
    """Discard the candidate."""

    type: Literal["reject"]
    message: Text = ""


class Respond(_AnswerPart):
    """Leave the candidate in quarantine, with a comment."""

    type: Literal["respond"]
    message: Text


Decision: TypeAlias = Annotated[Approve | Edit | Reject | Respond, Discriminator("type")]


class ReviewAnswer(_AnswerPart):
    """One decision for each action request, in their order."""

    decisions: tuple[Decision, ...]


def review_request(quarantined: Sequence[Receipt]) -> dict[str, Any]:
    """The question about some candidates, in the shape of LangChain's `HITLRequest`."""
    return {
        "action_requests": [
            {
                "name": _ACTION,
                "args": {"text": receipt.candidate.text},
                "description": _describe(receipt),
            }
            for receipt in quarantined
        ],
        "review_configs": [
            {"action_name": _ACTION, "allowed_decisions": list(get_args(ReviewRuling))}
            for _ in quarantined
        ],
    }


def _describe(receipt: Receipt) -> str:
    """What a person needs to decide: the memory, why it is in quarantine, and its source."""
    candidate = receipt.candidate
    turns = [turn for report in receipt.reports for turn in report.context]
    # The turns that the candidate is based on; the others would make the question too long.
    named = [turn for turn in turns if turn.id in candidate.turn_ids] or turns
    # Several gates were shown the same turns.
    statements = dict.fromkeys(f"  {turn.speaker or turn.role}: {turn.content}" for turn in named)
    lines = [
        f"Store this memory? {candidate.text}",
        f"Held because: {receipt.decision.explanation}",
        f"Namespace: {' / '.join(receipt.namespace)}",
        *(["What was said:", *statements] if statements else []),
        f"Receipt: {receipt.id}",
    ]
    return "\n".join(lines)


def answer_type(count: int, *, max_chars: int) -> Any:
    """The type that an answer must fit; one that does not raises, and can be given again.

    Args:
        count: Number of action requests.
        max_chars: Limit of an edited text, in characters.
    """

    def check(answer: ReviewAnswer) -> ReviewAnswer:
        if len(answer.decisions) != count:
            msg = f"{len(answer.decisions)} decisions for {count} action requests: give one each"
            raise ValueError(msg)
        for decision in answer.decisions:
            # Checked before any decision is carried out, so that an answer is carried out whole.
            if isinstance(decision, Edit):
                refusal = refuse_text(decision.edited_action.args.text, max_chars=max_chars)
                if refusal is not None:
                    raise ValueError(refusal.explanation)
        return answer

    return Annotated[ReviewAnswer, AfterValidator(check)]


def reviewer() -> str:
    """The identity of the person who resumed the run if the server knows it, else `reviewer`."""
    user = getattr(get_runtime().server_info, "user", None)
    return str(getattr(user, "identity", "") or "reviewer")


async def carry_out(
    decision: Decision, *, receipt: Receipt, backing: Backing, actor: str
) -> tuple[Review, Receipt | None]:
    """Carry out a person's decision on one candidate; doing it again changes nothing.

    A candidate that left quarantine while the question was open stays as it is, and the review
    gives its state.

    Returns:
        The review, and the receipt of the person's text after an edit.

    Raises:
        StoreError: If the store failed; the next `recover` completes the decision.
    """
    quarantine = Quarantine(backing.journal)
    edited: Receipt | None = None
    message = "" if isinstance(decision, Approve | Edit) else decision.message
    text = decision.edited_action.args.text if isinstance(decision, Edit) else None
    # The person has not seen a hidden secret, so the wording without it is an edit as well.
    is_hidden = receipt.decision.reason in HIDDEN_REASONS
    if text is not None and (is_hidden or text != receipt.candidate.text):
        edited = await _store_edit(text, receipt, backing, actor=actor)
    elif isinstance(decision, Approve | Edit) and await _outcome(receipt, backing) == "held":
        await quarantine.arelease(receipt.id, actor=actor, store=backing.store)
    elif isinstance(decision, Reject) and await _outcome(receipt, backing) == "held":
        await quarantine.adiscard(receipt.id, actor=actor, reason=message or "rejected by a person")
    # Read back rather than derived from the decision: somebody else may have ruled meanwhile.
    outcome: ReviewOutcome = "stored" if edited is not None else await _outcome(receipt, backing)
    review = Review(
        receipt_id=receipt.id,
        ruling=decision.type,
        outcome=outcome,
        actor=actor,
        message=message,
        stored_as="" if edited is None else edited.id,
    )
    return review, edited


async def _store_edit(
    text: str, receipt: Receipt, backing: Backing, *, actor: str
) -> Receipt | None:
    """Store a person's text under a receipt that says so, and discard the quarantined candidate."""
    # One text per review: this digest finds it again if the node runs a second time after a crash.
    digest = digest_of(_REVIEW_METHOD, receipt.id)
    candidate = receipt.candidate.model_copy(update={"text": text})
    earlier = await backing.receipts.afind(candidate.id, policy_digest=digest)
    if earlier is None and await _outcome(receipt, backing) != "held":
        return None
    edited = earlier or _text_receipt(
        candidate,
        run_id=receipt.run_id,
        explanation=(
            f"worded by a person, in place of {receipt.candidate.text!r}; not judged again"
        ),
        # Readers of receipts know these names, so they stay.
        evidence={"actor": actor, "held_receipt": receipt.id, "held_text": receipt.candidate.text},
        policy_digest=digest,
    )
    # Stored before the candidate is discarded: a crash in between must not lose the text.
    committed = await backing.committer.commit(edited)
    await Quarantine(backing.journal).adiscard(
        receipt.id, actor=actor, reason=f"worded by a person; stored under receipt {committed.id}"
    )
    return committed


async def _outcome(receipt: Receipt, backing: Backing) -> ReviewOutcome:
    # A release that did not finish counts as open: releasing again finishes it.
    state = await backing.receipts.astate(receipt.id)
    if state in {"held", "releasing"}:
        return "held"
    return "stored" if state == "released" else "discarded"


def _text_receipt(
    candidate: CandidateMemory,
    *,
    run_id: str,
    explanation: str,
    evidence: Mapping[str, JsonValue],
    policy_digest: str,
) -> Receipt:
    """The receipt that admits a person's text."""
    decision = AdmissionDecision(
        outcome="admit", reason="human_approved", explanation=explanation, method=_REVIEW_METHOD
    )
    report = MethodReport(method=_REVIEW_METHOD, spec={}, decision=decision, evidence={**evidence})
    return ReceiptFactory().create(
        candidate,
        decision,
        reports=(report,),
        run_id=run_id,
        record_key=record_key(candidate.text),
        policy_digest=policy_digest,
    )
