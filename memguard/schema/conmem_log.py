"""The counterfactual log: what ConMem asked, what came back, and what it made of it.

It holds enough to recompute the decision under other weights without any model.
"""

from typing import Literal

from pydantic import Field

from memguard.schema.base import Frozen, Text
from memguard.schema.conmem import ProbeRole
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

Arm = Literal["control", "treatment"]
"""`control`: answered without the memory. `treatment`: answered with it."""

Preference = Literal["control", "treatment", "tie"]
"""Which answer the blind judge prefers, its letter mapped back to the arm."""

Attribution = Literal["utility", "unnecessary", "neutral", "risk"]
"""What the memory did to an answer, as the auditor sees it."""

Effect = Literal["helpful", "neutral", "harmful"]
"""What the memory did to the quality of an answer."""

Rung = Literal["generate", "regenerate", "repair", "reconstruct"]
"""How the probes of a round came about."""

Ruling = Literal["positive", "negative", "tie", "inconclusive"]
"""What the probes say together, before policy makes an outcome of it."""

Flag = Literal["attribution_inconsistent", "invalid_probe", "inconclusive", "answer_cut_off"]
"""What is odd about a probe.

* `attribution_inconsistent`: the auditor named an effect of a memory that it says was not used or
  changed nothing; read as neutral.
* `invalid_probe`: no round gave a valid probe; contributes 0.
* `inconclusive`: a call of this probe gave nothing usable; contributes nothing.
* `answer_cut_off`: an answer reached the stage's cap of tokens and was judged as far as it goes.
"""

ReasonType = Literal[
    "directly_relevant",
    "context_misapplication",
    "memory_omission",
    "granularity_mismatch",
    "over_inference",
    "stale_memory_use",
    "privacy_refusal",
    "privacy_overuse",
    "attribution_confusion",
    "identity_misinference",
    "incomplete_memory_use",
    "false_memory_use",
]
"""Why a candidate was ruled on so: `directly_relevant` if it was admitted, else one of the others.
`memory_omission`, `privacy_refusal` and `incomplete_memory_use` describe failures of use and rarely
fit a candidate. arXiv 2610.33432, section 4.5 and appendix B.7.
"""


class Probe(Frozen):
    """One future request."""

    role: ProbeRole
    """What it tests."""
    query: Text
    """The request, as a user would make it."""


class ProbeAudit(Frozen):
    """What the probe auditor said of one probe."""

    role: ProbeRole
    """Of which probe."""
    valid: bool
    """Whether it does what its role asks."""
    leaks: bool = False
    """Whether it gives away the memory or the test; such a probe is not valid either."""
    reason: Text = ""
    """The auditor's words."""

    @property
    def passes(self) -> bool:
        """Whether the probe can be used."""
        return self.valid and not self.leaks


class ProbeRound(Frozen):
    """One round of the ladder: probes written, then audited."""

    rung: Rung
    """How they came about."""
    probes: tuple[Probe, ...] = ()
    """The set as it stood after writing; empty when nothing usable was written."""
    audits: tuple[ProbeAudit, ...] = ()
    """One per probe audited in this round."""
    failures: tuple[Inconclusive, ...] = ()
    """Calls of this round that gave nothing usable."""


class Response(Frozen):
    """One answer to a probe."""

    text: Text
    """The answer, without reasoning."""
    cut_off: bool = False
    """Whether it reached the cap of tokens."""


class QualityVerdict(Frozen):
    """What the blind judge said."""

    letter: Literal["A", "B", "TIE"]
    """As the judge said it."""
    shown_as_a: Arm
    """Which arm was shown as A."""
    reason: Text = ""
    """The judge's words."""

    @property
    def preference(self) -> Preference:
        """The preferred arm."""
        if self.letter == "TIE":
            return "tie"
        other: Arm = "control" if self.shown_as_a == "treatment" else "treatment"
        return self.shown_as_a if self.letter == "A" else other


class AttributionVerdict(Frozen):
    """What the attribution auditor said."""

    used: bool
    """Whether the memory was used in substance."""
    changed: bool
    """Whether it changed the answer in substance."""
    label: Attribution
    """What it did, as the auditor said it; `memguard.policy.cmte.label_of` says how it counts."""
    reason: Text = ""
    """The auditor's words."""


class ProbeTrial(Frozen):
    """One probe with all that was asked about it. What was not asked is `None`."""

    role: ProbeRole
    """What it tests."""
    query: Text = ""
    """The request; empty when there is no probe."""
    valid: bool = True
    """Whether a valid probe was found."""
    validation: Text = ""
    """The probe auditor's words."""
    failure: Inconclusive | None = None
    """Why there is no probe, or nobody said whether it is valid."""
    control: Response | Inconclusive | None = None
    """The answer without the memory."""
    treatment: Response | Inconclusive | None = None
    """The answer with it."""
    quality: QualityVerdict | Inconclusive | None = None
    """Which is better."""
    attribution: AttributionVerdict | Inconclusive | None = None
    """What the memory did."""


class ProbeScore(Frozen):
    """What one probe comes to under one set of weights."""

    role: ProbeRole
    """Which one."""
    contribution: float | None
    """What it adds to the sum; 0 for an invalid probe, `None` for an inconclusive one."""
    effect: Effect | None = None
    """On quality; `None` without a usable verdict."""
    label: Attribution | None = None
    """What the memory did, as it counts."""
    flags: tuple[Flag, ...] = ()
    """What is odd about it."""


class Cmte(Frozen):
    """The counterfactual memory treatment effect of a candidate."""

    ruling: Ruling
    """What the sum says."""
    total: float
    """Sum of the contributions; what is decided on."""
    cmte: float | None
    """Mean contribution over the probes that are not inconclusive; `None` when all are."""
    n_valid: int
    """Probes with usable verdicts."""
    probes: tuple[ProbeScore, ...]
    """One per role."""


class TieBreakVerdict(Frozen):
    """What the tie-break judge said."""

    store: bool
    """Whether to store the candidate."""
    reason: Text = ""
    """The judge's words."""


class ReasonVerdict(Frozen):
    """Why the candidate was ruled on so."""

    reason_type: ReasonType
    """Of the closed list."""
    confidence: float | None = None
    """In [0, 1], as the model says; `None` when no model was asked or it gave none."""
    explanation: Text = ""
    """The model's words."""


class Repairs(Frozen):
    """How often the probes had to be mended, and what speculation wasted."""

    regenerations: int = 0
    """Full-set rounds after the first."""
    repairs: int = 0
    """Targeted repairs, one per invalid role and round."""
    reconstructions: int = 0
    """Fresh beginnings."""
    discarded_answers: int = 0
    """Answers to probes that turned out invalid."""
    discarded_verdicts: int = 0
    """Verdicts on such answers."""


class CounterfactualLog(Frozen):
    """The evidence of one case, whole."""

    case_id: str
    """The candidate's id; orders answers, with seed and role."""
    seed: int
    """The seed of that order."""
    rounds: tuple[ProbeRound, ...] = ()
    """How the probes came about."""
    trials: tuple[ProbeTrial, ...] = ()
    """One per role."""
    score: Cmte | None = None
    """What they come to under the spec's weights."""
    tie_break: TieBreakVerdict | Inconclusive | None = None
    """Where the sum is zero."""
    reason: ReasonVerdict | Inconclusive | None = None
    """After the decision."""
    repairs: Repairs = Repairs()
    """Counters."""
    calls: dict[str, Usage] = Field(default={})
    """Spent, by stage; what was thrown away is in it."""
    history_left_out: int = 0
    """Turns of the history that were not shown."""
    history_cut_short: bool = False
    """Whether the oldest turn shown is not whole."""
