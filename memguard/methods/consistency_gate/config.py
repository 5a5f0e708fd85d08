"""Settings of ConsistencyGate, and its named presets."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from memguard.schema.base import Frozen, UnitInterval
from memguard.schema.decision import OnInconclusive


class ConsistencyGate(Frozen):
    """Settings of ConsistencyGate: is a candidate supported by its source?

    Defaults are the paper's recommended setting (arXiv 2607.22962, Table 5: fixed threshold 0.7,
    five samples). The sampling temperature is ours; the paper states none.
    """

    variant: Literal["soft", "logprob"] = "soft"
    """`soft`: mean of K sampled scores; `logprob`: probability of yes at one answer token."""
    k: Annotated[int, Field(ge=1, le=64)] = 5
    """Samples per candidate; `logprob` needs one call, whatever K is."""
    threshold: Literal["fixed", "adaptive"] = "fixed"
    """`fixed`: admit from `tau`; `adaptive`: from a threshold that grows with the namespace."""
    tau: UnitInterval = 0.7
    """The fixed threshold."""
    tau_min: UnitInterval = 0.4
    """The adaptive threshold of an empty namespace."""
    tau_max: UnitInterval = 0.8
    """The adaptive threshold of a full namespace."""
    capacity: Annotated[int, Field(gt=0)] = 500
    """Records at which a namespace counts as full. Nothing is evicted."""
    context: Literal["source", "memory", "both"] = "source"
    """What may support a candidate: source turns, stored memories, or both. With `memory`, a new
    true fact has no support and is not admitted; this reproduces the paper's Contam protocol."""
    memory_k: Annotated[int, Field(ge=1, le=100)] = 5
    """Stored memories taken as context with `memory` and `both`."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    """Sampling temperature; `None`: 0.7 for K > 1, 0 for K = 1."""
    # Exact, so it changes no decision; see `rules.is_settled`.
    early_stop: bool = True
    """Stop sampling when the rest cannot change the decision (concurrent sampling only)."""
    prompts: Literal["memguard", "paper"] = "memguard"
    """The wording of the judge's question: ours, or as the paper prints it (its Appendix C)."""
    local_first: bool = False
    """Use the local judge first, and the language model only if the local one is in doubt."""
    on_inconclusive: OnInconclusive = "quarantine"
    """The outcome for a candidate that could not be judged."""

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.tau_min > self.tau_max:
            msg = f"tau_min {self.tau_min} is above tau_max {self.tau_max}"
            raise ValueError(msg)
        return self

    @classmethod
    def preset(cls, name: str) -> "ConsistencyGate":
        """The settings of a preset; see `CONSISTENCY_GATE_PRESETS`.

        Raises:
            KeyError: If there is no preset of that name.
        """
        return CONSISTENCY_GATE_PRESETS[name]

    @property
    def sampling_temperature(self) -> float:
        """The temperature that is applied."""
        if self.temperature is not None:
            return self.temperature
        # Samples at temperature 0 would all be the same; a single one should be reproducible.
        return 0.7 if self.variant == "soft" and self.k > 1 else 0.0


CONSISTENCY_GATE_PRESETS: dict[str, ConsistencyGate] = {
    "recommended": ConsistencyGate(),
    "adaptive": ConsistencyGate(threshold="adaptive"),
    "fast": ConsistencyGate(k=1),
    # Without what is ours: the prompts, and stopping before all K samples are drawn.
    "paper": ConsistencyGate(prompts="paper", early_stop=False),
    # Measured in `llm/catalogue.toml`: long rules and sampled scores are too much for such models.
    "small": ConsistencyGate(variant="logprob", prompts="paper"),
}
"""`recommended`: fixed 0.7, K 5. `adaptive`: 0.4 to 0.8 by occupancy, K 5. `fast`: K 1. `paper`:
fixed 0.7, K 5, with the prompts of arXiv 2607.22962, Appendix C, and no early stop. `small`: for
models of few weights, fixed 0.7, log-probabilities, with the paper's yes/no question."""
