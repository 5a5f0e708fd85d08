"""Who judges: a language model, the local verifier, or the one and then the other."""

from dataclasses import dataclass
from typing import Protocol

from memguard.llm.models import ModelLike, resolve_model
from memguard.methods.consistency_gate.local_judge import LocalJudge
from memguard.methods.consistency_gate.model_judge import ModelJudge
from memguard.methods.consistency_gate.state import Judged
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.schema.config import ConsistencyGate
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.verdict import Inconclusive

LOCAL = "local"
"""The model string of the local judge."""


# Read now, with the module: a gate may be made inside a running event loop.
load_prompt("consistency_gate", "support")
load_prompt("consistency_gate", "support_yes_no")


class Judge(Protocol):
    """Gives support scores for one candidate."""

    @property
    def spec(self) -> ConsistencyGate:
        """The settings in force."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of all that can change its scores, settings aside."""
        ...

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judged:
        """The samples on one candidate."""
        ...


@dataclass(frozen=True, kw_only=True)
class LocalFirstJudge:
    """Asks the local judge, and the language model only where the local one is in doubt."""

    local: LocalJudge
    model: ModelJudge

    @property
    def spec(self) -> ConsistencyGate:
        """The settings in force."""
        return self.model.spec

    @property
    def fingerprint(self) -> str:
        """Of both judges."""
        return f"{self.local.fingerprint}>{self.model.fingerprint}"

    async def ask(
        self, candidate: CandidateMemory, *, source: tuple[Turn, ...], tau: float
    ) -> Judged:
        """The local judge's sample, or the model's; the receipt says what was saved."""
        first = await self.local.ask(candidate, source=source, tau=tau)
        if not isinstance(first.samples[0], Inconclusive):
            saved = self.spec.k if self.spec.variant == "soft" else 1
            note = (
                f"the local judge decided; up to {saved} answers of {self.model.model.name} saved"
            )
            return first.model_copy(update={"notes": (*first.notes, note)})
        judged = await self.model.ask(candidate, source=source, tau=tau)
        note = f"the local judge was in doubt: {first.samples[0].detail}"
        return judged.model_copy(update={"notes": (*judged.notes, note), "details": first.details})


def make_judge(model: ModelLike, *, spec: ConsistencyGate, prompt: Prompt | None = None) -> Judge:
    """The judge that a model argument and a spec ask for.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalJudge(spec=spec)
    name = "support" if spec.variant == "soft" else "support_yes_no"
    asker = ModelJudge(
        model=resolve_model(model),
        spec=spec,
        prompt=prompt_or_own("consistency_gate", name, override=prompt),
    )
    return LocalFirstJudge(local=LocalJudge(spec=spec), model=asker) if spec.local_first else asker
