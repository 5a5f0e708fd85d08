"""The judges of ConsistencyGate: how well does a source support a candidate?

A judge is a language model with a prompt, the local support verifier, or the local one first and
the model in its cases of doubt. `build_judge` chooses by the model argument and the spec. The
input, output and state of the gate, which contain a judge's answers, come first.
"""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field, JsonValue

from memguard.conversations.messages import AnyCandidate, AnyConversation
from memguard.llm.call import CallSettings
from memguard.llm.limits import current_meter
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.llm.parsing import parse_support
from memguard.llm.sample import sample, yes_no_logprob
from memguard.local.statements import Statement, read_statements
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.methods.consistency_gate.rules import is_settled, score_of
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.quoting import named_turns, quote, quote_turns
from memguard.schema.base import Frozen, GraphInput
from memguard.schema.decision import AdmissionDecision, Inconclusive, SupportSample
from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.schema.receipt import MethodReport, PromptStamp, Receipt, Usage

if TYPE_CHECKING:
    from memguard.local import SupportJudgement, SupportVerifier


# Checkpoints of paused runs contain these types and fields by name, so their names must not change.
class GateInput(GraphInput):
    """One candidate and the text that must support it."""

    candidate: AnyCandidate = Field(
        title="Memory to check",
        description="The memory proposed for storage; may be a plain text.",
        examples=["The user is vegetarian."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        title="What was said",
        description="Its source: a text, chat messages, or a conversation.",
        examples=["My colleague doesn't eat meat."],
    )
    run_id: str = Field(default="", description="Id of the run; generated if empty.")


class Judgement(Frozen):
    """The judge's answers to one candidate: one entry per sample used."""

    samples: tuple[SupportSample | Inconclusive, ...]
    """In the order of sampling."""
    k: int
    """The number of samples requested."""
    tau: float
    """The threshold for these scores."""
    mode: str
    """How the samples were drawn: `n`, `concurrent`, `logprob` or `local`."""
    temperature: float | None = None
    """Sampling temperature that was set; the local judge has none."""
    model: str
    """The judge's name."""
    prompt: PromptStamp | None = None
    """The prompt used; the local judge has none."""
    usage: Usage = Usage()
    """Its cost."""
    details: dict[str, JsonValue] = Field(default={})
    """More evidence, for the receipt."""
    notes: tuple[str, ...] = ()
    """Deviations from the settings, such as a parameter that the model does not accept."""


class GateRuling(BaseModel):
    """The decision and its evidence: the output of a gate inside a guard."""

    decision: AdmissionDecision
    report: MethodReport


class GateOutput(GateRuling):
    """The decision with its receipt: the output of the graph when it is used alone."""

    receipt: Receipt


class SupportState(GateInput):
    """The state of one judgement."""

    source: tuple[Turn, ...] = ()
    """The turns shown to the judge."""
    tau: float = 0.0
    """The threshold that is applied."""
    occupancy: int | None = None
    """Number of records in the namespace, if the threshold depends on it."""
    judged: Judgement | None = None
    """The judge's answers; `None` for a candidate that was refused without a judge."""
    # Set by `judge` for a candidate that it refuses, else by `decide`.
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    receipt: Receipt | None = None


MAX_TOKENS = 2048
"""Enough for a reasoning model's thoughts; a plain answer takes about 60."""

YES_NO_MAX_TOKENS = 16
"""Only the first word counts; a small model would continue at length."""

WEAKER = (
    "judged by the local verifier, which is weaker than a strong language model: it misses some "
    "details swapped within a turn and facts that are only implied, and knows English only"
)

_RULES = frozenset({"owner", "binding"})
"""Notes of the local judge by which a rule decided, whatever the score was."""
_RULES_VERSION = 3
"""Goes up when the verifier's rules about owners and details change."""

_PROMPTS = {
    ("memguard", "soft"): "support",
    ("memguard", "logprob"): "support_yes_no",
    ("paper", "soft"): "paper_support",
    ("paper", "logprob"): "paper_support_yes_no",
}
"""The prompt by the settings `prompts` and `variant`."""

# Read now, with the module: a gate may be built inside a running event loop.
for _name in _PROMPTS.values():
    load_prompt("consistency_gate", _name)


class Judge(Protocol):
    """Estimates how well a source supports a candidate."""

    @property
    def spec(self) -> ConsistencyGate:
        """The settings in force."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change its scores, except the settings."""
        ...

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judgement:
        """The judge's samples on one candidate.

        Args:
            candidate: The memory.
            source: The turns that may support it.
            tau: The threshold; the local judge may use its own.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        ...


def build_judge(model: ModelLike, *, spec: ConsistencyGate, prompt: Prompt | None = None) -> Judge:
    """The judge for a model argument and a spec.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalJudge(spec=spec)
    max_tokens = MAX_TOKENS if spec.variant == "soft" else YES_NO_MAX_TOKENS
    judge = ModelJudge(
        model=resolve_model(model),
        spec=spec,
        prompt=resolve_prompt(
            "consistency_gate", _PROMPTS[spec.prompts, spec.variant], override=prompt
        ),
        settings=CallSettings(temperature=spec.sampling_temperature, max_tokens=max_tokens),
    )
    if not spec.local_first:
        return judge
    return LocalFirstJudge(spec=spec, local=LocalJudge(spec=spec), model=judge)


@dataclass(frozen=True, kw_only=True)
class ModelJudge:
    """A model, a prompt and the settings to ask it with."""

    model: Model
    spec: ConsistencyGate
    prompt: Prompt
    settings: CallSettings

    @property
    def fingerprint(self) -> str:
        """Of the model's name and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def ask(
        self, candidate: CandidateMemory, *, source: Sequence[Turn], tau: float
    ) -> Judgement:
        """Samples of the model, or the probability of its answer token; see `Judge.ask`."""
        # The source stands first: candidates of one chunk share it, and providers cache prefixes.
        messages = self.prompt.render(source=quote_turns(source), memory=quote(candidate.text))
        if self.spec.variant == "logprob":
            return await self._ask_logprob(messages, tau=tau)
        return await self._ask_soft(messages, source=source, tau=tau)

    async def _ask_soft(
        self, messages: Sequence[BaseMessage], *, source: Sequence[Turn], tau: float
    ) -> Judgement:
        # Turns are shown by number: ids can be long, and a text could contain one.
        numbers = tuple(str(number) for number in range(1, len(source) + 1))

        def parse(text: str) -> SupportSample | Inconclusive:
            return parse_support(text, turn_ids=numbers)

        def settled(answers: Sequence[SupportSample | Inconclusive], remaining: int) -> bool:
            scores = [score_of(answer) for answer in answers]
            return is_settled(scores, remaining=remaining, k=self.spec.k, tau=tau)

        batch = await sample(
            self.model,
            messages,
            parse,
            k=self.spec.k,
            settings=self.settings,
            meter=current_meter(),
            # Applies to concurrent requests; K answers of one request arrive together.
            stop=settled if self.spec.early_stop else None,
        )
        return Judgement(
            samples=tuple(_with_turn_ids(answer, source) for answer in batch.answers),
            k=self.spec.k,
            tau=tau,
            mode=batch.mode,
            temperature=self.settings.temperature,
            model=self.model.name,
            prompt=self.prompt.stamp,
            usage=batch.usage,
            notes=tuple(batch.notes),
        )

    async def _ask_logprob(self, messages: Sequence[BaseMessage], *, tau: float) -> Judgement:
        result = await yes_no_logprob(
            self.model, messages, settings=self.settings, meter=current_meter()
        )
        answer = result.probability
        return Judgement(
            samples=(answer if isinstance(answer, Inconclusive) else SupportSample(score=answer),),
            k=1,
            tau=tau,
            mode="logprob",
            temperature=self.settings.temperature,
            model=self.model.name,
            prompt=self.prompt.stamp,
            usage=result.usage,
            notes=tuple(result.notes),
        )


def _with_turn_ids(
    answer: SupportSample | Inconclusive, source: Sequence[Turn]
) -> SupportSample | Inconclusive:
    """Replace the turn numbers that the judge was shown by the ids that receipts use."""
    if isinstance(answer, Inconclusive):
        return answer
    return answer.model_copy(update={"turn_ids": named_turns(answer.turn_ids, source)})


@dataclass(frozen=True, kw_only=True)
class LocalJudge:
    """The support verifier as a judge: one sample, the same each time."""

    spec: ConsistencyGate

    @property
    def fingerprint(self) -> str:
        """Of the verifier's weights and of its rules."""
        from memguard.local.verifier.head import PINNED  # noqa: PLC0415 - loads numpy

        return f"local:{sorted(PINNED.items())}:rules:{_RULES_VERSION}"

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judgement:
        """One deterministic sample; in the verifier's band of doubt it is inconclusive.

        The verifier's own calibrated threshold applies, unless the spec sets another.
        """
        # A tool's or a document's statements count for a candidate that was typed as theirs.
        roles = frozenset({"user", candidate.said_by}) - {"assistant"}
        # In a thread, because a source may be a book.
        statement = await asyncio.to_thread(
            _repeated_statement, candidate.text, source, roles=roles
        )
        if statement is not None:
            sample = _sample_of_statement(statement)
            return Judgement(samples=(sample,), k=1, tau=tau, mode="local", model="local:verbatim")
        judgement = await _verifier().ajudge(
            candidate=candidate, context=Conversation(turns=source)
        )
        sample = _sample(judgement)
        stated = await asyncio.to_thread(_statements_of, source, roles=roles)
        # Only what is supported needs the second run, which can only take support away.
        if judgement.ruling == "supported" and stated != source:
            again = await _verifier().ajudge(
                candidate=candidate, context=Conversation(turns=stated)
            )
            if again.ruling != "supported":
                detail = (
                    f"local support {judgement.score:.2f}, but {again.score:.2f} on what a user "
                    "states as so, without questions, hypotheticals and quotations"
                )
                sample = Inconclusive(reason="too_close", detail=detail)
        # The spec's default of 0.7 is for the scores of language models, which the verifier's are
        # not: only a threshold that the user has set replaces the calibrated one.
        limits = [note for note in judgement.notes if note not in _RULES]
        threshold = tau if {"tau", "threshold"} & self.spec.model_fields_set else judgement.tau
        return Judgement(
            samples=(sample,),
            k=1,
            tau=threshold,
            mode="local",
            model=f"local:{judgement.version}",
            details={"local": judgement.model_dump(mode="json")},
            notes=(WEAKER, *(f"outside what it was made for: {note}" for note in limits)),
        )


def _repeated_statement(
    text: str, source: tuple[Turn, ...], *, roles: AbstractSet[str]
) -> Statement | None:
    """The statement of one of these roles that is this text word for word, or `None`.

    The text may begin with the speaker's name and a colon, as the local writer phrases it. Of
    several, the last one without a doubt is returned, or else the last one.
    """
    name, colon, rest = text.partition(": ")
    match: Statement | None = None
    for statement in read_statements(source):
        turn = source[statement.position]
        # What only the assistant said is no evidence, so it is not repeated by anybody.
        if turn.role not in roles:
            continue
        named = colon and name in {turn.speaker, f"The {turn.role}"} and name
        if not named and turn.speaker:
            continue
        if statement.text == (rest if named else text) and (
            match is None or match.doubt or not statement.doubt
        ):
            match = statement
    return match


def _sample_of_statement(statement: Statement) -> SupportSample | Inconclusive:
    """Full support for a statement that stands alone; no verdict on a doubtful one."""
    if statement.doubt:
        detail = f"said word for word in turn {statement.turn_id}, but {statement.doubt}"
        return Inconclusive(reason="doubtful", detail=detail)
    reason = f"said word for word in turn {statement.turn_id}"
    if statement.completed:
        reason = f"said in turn {statement.turn_id}, completed from: {statement.completed}"
    return SupportSample(score=1.0, reason=reason, turn_ids=(statement.turn_id,))


def _statements_of(source: tuple[Turn, ...], *, roles: AbstractSet[str]) -> tuple[Turn, ...]:
    """The turns of these roles, without questions, hypotheticals and quotations.

    The verifier compares words, and cannot tell "I bought it" from "if I were rich I'd buy it".
    A candidate that is supported with such sentences only is in doubt.
    """
    asserted: dict[int, list[str]] = {}
    for statement in read_statements(source):
        if statement.asserted:
            asserted.setdefault(statement.position, []).append(statement.text)
    return tuple(
        source[position].model_copy(update={"content": " ".join(texts)})
        for position, texts in asserted.items()
        if source[position].role in roles
    )


def _sample(judgement: "SupportJudgement") -> SupportSample | Inconclusive:
    if judgement.ruling == "inconclusive":
        low, high = judgement.band
        detail = f"local support {judgement.score:.2f} lies between {low:.2f} and {high:.2f}"
        # Outside the band, the text itself could not be judged: its language, or its length.
        is_close = low <= judgement.score < high and not _RULES & set(judgement.notes)
        return Inconclusive(reason="too_close", detail=detail if is_close else judgement.reason)
    turns = dict.fromkeys(word.turn_id for word in judgement.words if word.turn_id)
    missing = ", ".join(judgement.unsupported_words)
    reason = f"without support: {missing}" if missing else "every detail was found"
    if judgement.ruling == "unsupported" and not missing:
        reason = "the words are there, but they do not say this"
    if _RULES & set(judgement.notes):
        reason = judgement.reason
    return SupportSample(score=judgement.score, reason=reason, turn_ids=tuple(turns))


@cache
def _verifier() -> "SupportVerifier":
    """One verifier per process; it loads its weights at the first judgement."""
    from memguard.local import SupportVerifier  # noqa: PLC0415 - loads numpy

    return SupportVerifier()


@dataclass(frozen=True, kw_only=True)
class LocalFirstJudge:
    """Uses the local judge, and the language model only if the local one is in doubt."""

    spec: ConsistencyGate
    local: LocalJudge
    model: ModelJudge

    @property
    def fingerprint(self) -> str:
        """Of both judges."""
        return f"{self.local.fingerprint}>{self.model.fingerprint}"

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judgement:
        """The local judge's sample, or those of the model; a note says what was saved."""
        local = await self.local.ask(candidate, source=source, tau=tau)
        # The local judge always returns one sample.
        if not isinstance(local.samples[0], Inconclusive):
            saved = self.spec.k if self.spec.variant == "soft" else 1
            note = (
                f"the local judge decided; up to {saved} answers of {self.model.model.name} saved"
            )
            return local.model_copy(update={"notes": (*local.notes, note)})
        judgement = await self.model.ask(candidate, source=source, tau=tau)
        note = f"the local judge was in doubt: {local.samples[0].detail}"
        return judgement.model_copy(
            update={"notes": (*judgement.notes, note), "details": local.details}
        )
