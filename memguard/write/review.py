"""A person's own words, stored as they are: nobody judges them, and the receipt says so."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, get_args

from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.types import interrupt
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, JsonValue

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError, MemguardError
from memguard.journal.backing import Backing, Backings
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.methods.admission import refuse_text
from memguard.methods.writer.config import Writer
from memguard.portal import dual
from memguard.schema.base import Namespace, Text
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import failure_of
from memguard.schema.memory import CandidateMemory, record_key
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory
from memguard.write.extraction import Meters
from memguard.write.gates import digest_of
from memguard.write.outcome import emit, receipts_of
from memguard.write.report import Review, ReviewOutcome, ReviewRuling
from memguard.write.state import CandidateResult, WriteState

METHOD = "human_wording"


async def store_wording(
    journal: Journal,
    store: BaseStore,
    text: str,
    *,
    namespace: Namespace,
    actor: str,
    instead_of: str = "",
) -> Receipt:
    """Store what a person wrote.

    Args:
        journal: The log.
        store: The memory store.
        text: The person's words.
        namespace: Where they go.
        actor: Who wrote them.
        instead_of: The text that they replace; kept on the receipt.

    Raises:
        InvalidInputError: If the text is blank or too long for a memory.
        StoreError: If the store failed; the next `recover` finishes what was begun.
    """
    refused = refuse_text(text, max_chars=Writer().max_candidate_chars)
    if refused is not None:
        raise InvalidInputError(refused.explanation, code=ErrorCode.INPUT_INVALID)
    before = f", in place of {instead_of!r}" if instead_of else ""
    receipt = worded_receipt(
        CandidateMemory(text=text, namespace=namespace),
        run_id=uuid.uuid4().hex,
        method=METHOD,
        explanation=f"worded by a person{before}; not judged",
        evidence={"actor": actor, "instead_of": instead_of},
        # A digest of its own: the same words may be taken back and written again.
        policy_digest=digest_of(METHOD, uuid.uuid4().hex),
    )
    return (await commit(journal, store, [receipt], actor=actor)).receipts[0]


def worded_receipt(
    candidate: CandidateMemory,
    *,
    run_id: str,
    method: str,
    explanation: str,
    evidence: Mapping[str, JsonValue],
    policy_digest: str,
) -> Receipt:
    """The receipt of a person's own words, as admitted."""
    decision = AdmissionDecision(
        outcome="admit", reason="human_approved", explanation=explanation, method=method
    )
    report = MethodReport(method=method, spec={}, decision=decision, evidence={**evidence})
    return ReceiptFactory().create(
        candidate,
        decision,
        reports=(report,),
        run_id=run_id,
        record_key=record_key(candidate.text),
        policy_digest=policy_digest,
    )


ReviewMode = Literal["quarantine", "interrupt"]
"""What becomes of held candidates: they lie in quarantine, or the run also pauses and asks."""

REVIEW_METHOD = "human_review"
ACTION = "store_memory"
"""The action that a person is asked about; its one argument is `text`."""
_RULINGS: tuple[ReviewRuling, ...] = ("approve", "edit", "reject", "respond")
_REVIEWER = "reviewer"


class _AnswerPart(BaseModel):
    """A part of an answer; fields that a user interface adds are ignored."""

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


class Edit(_AnswerPart):
    """Store another text instead."""

    type: Literal["edit"]
    edited_action: EditedAction


class Reject(_AnswerPart):
    """Throw the candidate out."""

    type: Literal["reject"]
    message: Text = ""


class Respond(_AnswerPart):
    """Leave the candidate in quarantine, with a comment."""

    type: Literal["respond"]
    message: Text


Decision: TypeAlias = Annotated[Approve | Edit | Reject | Respond, Discriminator("type")]


class Answer(_AnswerPart):
    """One decision for each action request, in their order."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True, kw_only=True)
class Reviewing:
    """What the nodes of a review share."""

    backings: Backings
    meters: Meters
    max_chars: int


def check_mode(mode: ReviewMode) -> ReviewMode:
    """Refuse an unknown setting.

    Raises:
        ConfigurationError: If it is not `quarantine` or `interrupt`.
    """
    if mode not in get_args(ReviewMode):
        msg = f"`review` is {mode!r}: use one of {', '.join(get_args(ReviewMode))}"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)
    return mode


def add_review(builder: StateGraph[Any, Any, Any, Any], reviewing: Reviewing) -> None:
    """Put the review between `gates` and `report`."""
    builder.add_node("hold", dual(partial(hold, reviewing=reviewing)))
    builder.add_node("review", dual(partial(review, reviewing=reviewing)))
    builder.add_edge("gates", "hold")
    builder.add_conditional_edges("hold", to_review)
    builder.add_edge("review", "report")


async def hold(state: WriteState, *, reviewing: Reviewing) -> dict[str, Any]:
    """Save the usage in the state: the run may go on in another process, days later."""
    quarantined = held_receipts(state)
    can_wait = compat.has_checkpointer(get_config().get("configurable", {}))
    emit("held", candidates=len(quarantined), asks=can_wait)
    unasked = (
        f"nobody was asked about {len(quarantined)} held candidates, because the graph has no "
        "checkpointer to wait with: compile it with `checkpointer=`, or rule with `memguard "
        "quarantine list`"
    )
    return {
        "spent": reviewing.meters.close(state.run_id).usage,
        "waiting": tuple(receipt.id for receipt in quarantined) if can_wait else (),
        "notes": (unasked,) if quarantined and not can_wait else (),
    }


def to_review(state: WriteState) -> Literal["review", "report"]:
    """Ask a person where the run can wait for one."""
    return "review" if state.waiting else "report"


async def review(state: WriteState, *, reviewing: Reviewing) -> dict[str, Any]:
    """Ask a person about all quarantined candidates, and carry out the answer."""
    quarantined = held_receipts(state)
    answer: Answer = interrupt(
        make_request(quarantined),
        response_schema=_schema_of(len(quarantined), max_chars=reviewing.max_chars),
    )
    backing = reviewing.backings.current()
    reviews: list[Review] = []
    ruled: list[CandidateResult] = []
    for receipt, ruling in zip(quarantined, answer.decisions, strict=True):
        try:
            done, edited = await carry_out(ruling, receipt=receipt, backing=backing, actor=_actor())
        except MemguardError as error:
            failure = failure_of(error, step="review", about=receipt.id)
            ruled.append(CandidateResult(failure=failure))
            continue
        reviews.append(done)
        ruled += [CandidateResult(receipt=edited)] if edited is not None else []
        emit("reviewed", receipt=receipt.id, ruling=done.ruling, outcome=done.outcome)
    return {"reviews": tuple(reviews), "ruled": ruled}


def held_receipts(state: WriteState) -> tuple[Receipt, ...]:
    """The decisions of this run that put a candidate in quarantine, in order."""
    return tuple(receipt for receipt in receipts_of(state) if receipt.outcome == "quarantined")


def make_request(quarantined: Sequence[Receipt]) -> dict[str, Any]:
    """The question, in the shape of LangChain's `HITLRequest`."""
    return {
        "action_requests": [
            {
                "name": ACTION,
                "args": {"text": receipt.candidate.text},
                "description": describe(receipt),
            }
            for receipt in quarantined
        ],
        "review_configs": [
            {"action_name": ACTION, "allowed_decisions": list(_RULINGS)} for _ in quarantined
        ],
    }


def describe(receipt: Receipt) -> str:
    """What a person needs to rule: the memory, why it was held, and who said what."""
    candidate = receipt.candidate
    turns = [turn for report in receipt.reports for turn in report.context]
    named = [turn for turn in turns if turn.id in candidate.turn_ids] or turns
    statements = list(
        dict.fromkeys(f"  {turn.speaker or turn.role}: {turn.content}" for turn in named)
    )
    lines = [
        f"Store this memory? {candidate.text}",
        f"Held because: {receipt.decision.explanation}",
        f"Namespace: {' / '.join(receipt.namespace)}",
        *(["What was said:", *statements] if statements else []),
        f"Receipt: {receipt.id}",
    ]
    return "\n".join(lines)


async def carry_out(
    ruling: Decision, *, receipt: Receipt, backing: Backing, actor: str
) -> tuple[Review, Receipt | None]:
    """Do what a person said of one candidate; doing it again changes nothing.

    A candidate that left quarantine while the question was open stays as it is, and the review
    says where.

    Returns:
        The review, and the receipt of the person's own wording after an edit.

    Raises:
        StoreError: If the store failed; the next `recover` finishes what was begun.
    """
    quarantine = Quarantine(backing.journal)
    edited: Receipt | None = None
    message = "" if isinstance(ruling, Approve | Edit) else ruling.message
    if isinstance(ruling, Edit) and ruling.edited_action.args.text != receipt.candidate.text:
        edited = await _store_wording(ruling.edited_action.args.text, receipt, backing, actor=actor)
    elif isinstance(ruling, Approve | Edit) and await _is_open(receipt, backing):
        await quarantine.arelease(receipt.id, actor=actor, store=backing.store)
    elif isinstance(ruling, Reject) and await _is_open(receipt, backing):
        await quarantine.adiscard(receipt.id, actor=actor, reason=message or "rejected by a person")
    outcome: ReviewOutcome = "stored" if edited is not None else await _outcome(receipt, backing)
    done = Review(
        receipt_id=receipt.id,
        ruling=ruling.type,
        outcome=outcome,
        actor=actor,
        message=message,
        stored_as="" if edited is None else edited.id,
    )
    return done, edited


async def _store_wording(
    text: str, receipt: Receipt, backing: Backing, *, actor: str
) -> Receipt | None:
    """Store a person's own words under a receipt that says so; the held candidate is done with."""
    # One wording per review: found again under this digest when the node runs a second time.
    digest = digest_of(REVIEW_METHOD, receipt.id)
    candidate = receipt.candidate.model_copy(update={"text": text})
    earlier = await backing.receipts.afind(candidate.id, policy_digest=digest)
    if earlier is None and not await _is_open(receipt, backing):
        return None
    edited = earlier or worded_receipt(
        candidate,
        run_id=receipt.run_id,
        method=REVIEW_METHOD,
        explanation=(
            f"worded by a person, in place of {receipt.candidate.text!r}; not judged again"
        ),
        evidence={
            "actor": actor,
            "held_receipt": receipt.id,
            "held_text": receipt.candidate.text,
        },
        policy_digest=digest,
    )
    committed = await backing.committer.commit(edited)
    await Quarantine(backing.journal).adiscard(
        receipt.id, actor=actor, reason=f"worded by a person; stored under receipt {committed.id}"
    )
    return committed


async def _is_open(receipt: Receipt, backing: Backing) -> bool:
    return await backing.receipts.astate(receipt.id) in {"held", "releasing"}


async def _outcome(receipt: Receipt, backing: Backing) -> ReviewOutcome:
    state = await backing.receipts.astate(receipt.id)
    if state in {"held", "releasing"}:
        return "held"
    return "stored" if state == "released" else "discarded"


def _schema_of(count: int, *, max_chars: int) -> Any:
    """The type that a resume must fit; one that does not raises, and can be answered again."""

    def check(answer: Answer) -> Answer:
        if len(answer.decisions) != count:
            msg = f"{len(answer.decisions)} decisions for {count} action requests: give one each"
            raise ValueError(msg)
        for ruling in answer.decisions:
            refused = (
                refuse_text(ruling.edited_action.args.text, max_chars=max_chars)
                if isinstance(ruling, Edit)
                else None
            )
            if refused is not None:
                raise ValueError(refused.explanation)
        return answer

    return Annotated[Answer, AfterValidator(check)]


def _actor() -> str:
    """The person, where a server knows who resumes the run."""
    server = get_runtime().server_info
    user = getattr(server, "user", None)
    return str(getattr(user, "identity", "") or _REVIEWER)
