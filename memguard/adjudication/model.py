"""A language model as adjudicator: one call for a whole read, several for a very large one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memguard.adjudication.asking import Deadline
from memguard.adjudication.run import Run
from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.metering import current_meter, use_meter
from memguard.llm.models import Model
from memguard.prompts import Prompt
from memguard.schema.ledger import Adjudication
from memguard.schema.read import ReadCase
from memguard.schema.units import Scheme, Unit


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much goes into one call, and whether defects are asked about again."""

    part_tokens: int = 6000
    """Tokens of units and of their rows, estimated."""
    part_units: int = 60
    """Units."""
    repair: bool = True
    """Whether units without a usable row are asked for once more."""


@dataclass(frozen=True, kw_only=True)
class ModelAdjudicator:
    """A model with a prompt for one of the schemes, or for each."""

    model: Model
    prompts: Mapping[Scheme, Prompt]
    across: Prompt
    """The prompt for conflicts between parts."""
    limits: Limits = field(default_factory=Limits)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Of the model, by name, and the prompts."""
        digests = [self.prompts[scheme].digest for scheme in sorted(self.prompts)]
        return ":".join([self.model.name, *digests, self.across.digest])

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation and every unit; see `memguard.protocols.Adjudicator`.

        Raises:
            ConfigurationError: If there is no prompt for the scheme, or the model cannot be used.
        """
        if scheme not in self.prompts:
            msg = f"this adjudicator has no prompt for {scheme!r}; it has {sorted(self.prompts)}"
            raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)
        run = Run(
            model=self.model,
            prompt=self.prompts[scheme],
            across=self.across,
            case=case,
            units=tuple(units),
            scheme=scheme,
            part_tokens=self.limits.part_tokens,
            part_units=self.limits.part_units,
            repair=self.limits.repair,
            deadline=Deadline.after(seconds),
        )
        with use_meter(current_meter().scope()) as meter:
            found = await run.finish()
        return found.model_copy(update={"usage": meter.usage})
