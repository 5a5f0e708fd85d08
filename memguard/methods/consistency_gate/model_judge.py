"""Asking a language model: K scores, or the probability of yes."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from memguard.llm.call import CallSettings
from memguard.llm.logprob import yes_no_logprob
from memguard.llm.metering import current_meter
from memguard.llm.models import Model
from memguard.llm.parsing import parse_support
from memguard.llm.sample import sample
from memguard.methods.consistency_gate.state import Judgement, score_of
from memguard.policy.support import is_settled
from memguard.prompts import Prompt
from memguard.rendering.quote import named_turns, quote, quote_turns
from memguard.schema.config import ConsistencyGate
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.verdict import Inconclusive, SupportSample

MAX_TOKENS = 2048
"""Room for a reasoning model's thoughts; a plain answer takes about 60."""

YES_NO_MAX_TOKENS = 16
"""Only the first word counts; a small model would ramble on."""


@dataclass(frozen=True, kw_only=True)
class ModelJudge:
    """A model, a prompt and the settings to ask it with."""

    model: Model
    spec: ConsistencyGate
    prompt: Prompt

    @property
    def fingerprint(self) -> str:
        """Of the model, by name, and the prompt."""
        return f"{self.model.name}:{self.prompt.digest}"

    async def ask(
        self, candidate: CandidateMemory, *, source: Sequence[Turn], tau: float
    ) -> Judgement:
        """The judge's samples on one candidate.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        # The source stands first: candidates of one chunk share it, and providers cache prefixes.
        messages = self.prompt.render(source=quote_turns(source), memory=quote(candidate.text))
        if self.spec.variant == "logprob":
            return await self._ask_logprob(messages, tau=tau)
        return await self._ask_soft(messages, source=source, tau=tau)

    async def _ask_soft(
        self, messages: Sequence[BaseMessage], *, source: Sequence[Turn], tau: float
    ) -> Judgement:
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
            settings=self._settings,
            meter=current_meter(),
            settled=settled if self.spec.early_stop else None,
        )
        return Judgement(
            samples=tuple(_with_turn_ids(answer, source) for answer in batch.answers),
            k=self.spec.k,
            tau=tau,
            mode=batch.mode,
            model=self.model.name,
            prompt=self.prompt.stamp,
            usage=batch.usage,
            notes=tuple(batch.notes),
        )

    async def _ask_logprob(self, messages: Sequence[BaseMessage], *, tau: float) -> Judgement:
        result = await yes_no_logprob(
            self.model, messages, settings=self._settings, meter=current_meter()
        )
        answer = result.probability
        return Judgement(
            samples=(answer if isinstance(answer, Inconclusive) else SupportSample(score=answer),),
            k=1,
            tau=tau,
            mode="logprob",
            model=self.model.name,
            prompt=self.prompt.stamp,
            usage=result.usage,
            notes=tuple(result.notes),
        )

    @property
    def _settings(self) -> CallSettings:
        max_tokens = MAX_TOKENS if self.spec.variant == "soft" else YES_NO_MAX_TOKENS
        return CallSettings(temperature=self.spec.sampling_temperature, max_tokens=max_tokens)


def _with_turn_ids(
    answer: SupportSample | Inconclusive, source: Sequence[Turn]
) -> SupportSample | Inconclusive:
    """The judge named turns by the numbers it was shown; receipts name them by their ids."""
    if isinstance(answer, Inconclusive):
        return answer
    return answer.model_copy(update={"turn_ids": named_turns(answer.turn_ids, source)})
