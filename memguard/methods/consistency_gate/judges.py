"""Who judges: a language model, the local verifier, or the one and then the other."""

from dataclasses import dataclass
from typing import Protocol

from memguard.llm.models import ModelLike, resolve_model
from memguard.llm.stages import LOCAL
from memguard.methods.consistency_gate.local_judge import LocalJudge
from memguard.methods.consistency_gate.model_judge import ModelJudge
from memguard.methods.consistency_gate.state import Judgement
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.schema.config import ConsistencyGate
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.verdict import Inconclusive

# Read now, with the module: a gate may be built inside a running event loop.
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
    ) -> Judgement:
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
    ) -> Judgement:
        """The local judge's sample, or the model's; the receipt says what was saved."""
        local = await self.local.ask(candidate, source=source, tau=tau)
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


def make_judge(model: ModelLike, *, spec: ConsistencyGate, prompt: Prompt | None = None) -> Judge:
    """The judge that a model argument and a spec ask for.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    if model == LOCAL:
        return LocalJudge(spec=spec)
    name = "support" if spec.variant == "soft" else "support_yes_no"
    judge = ModelJudge(
        model=resolve_model(model),
        spec=spec,
        prompt=prompt_or_own("consistency_gate", name, override=prompt),
    )
    return LocalFirstJudge(local=LocalJudge(spec=spec), model=judge) if spec.local_first else judge
