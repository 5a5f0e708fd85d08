"""The counterfactual log: what ConMem asked, what the models answered, and what it concluded.

It is stored on the receipt, and is enough to decide again under other weights without a model.
Field names are persisted: rename one only with an alias for its old spelling.
"""

from typing import Literal

from pydantic import AliasChoices, Field

from memguard.methods.conmem.config import Frequency, ProbeRole
from memguard.schema.base import Frozen, Text
from memguard.schema.decision import Inconclusive
from memguard.schema.receipt import Usage

TrialArm = Literal["control", "treatment"]
"""`control`: answered without the memory. `treatment`: answered with it."""

Preference = Literal["control", "treatment", "tie"]
"""Which answer the judge prefers, its letter mapped back to the arm."""

Attribution = Literal["utility", "unnecessary", "neutral", "risk"]
"""What the memory did to an answer, as the auditor sees it."""

QualityEffect = Literal["helpful", "neutral", "harmful"]
"""What the memory did to the quality of an answer."""

LadderStep = Literal["generate", "regenerate", "repair", "reconstruct"]
"""How the probes of a round were written."""

CmteRuling = Literal["positive", "negative", "tie", "inconclusive"]
"""The sign of the effect, before policy turns it into an outcome."""

ProbeFlag = Literal["attribution_inconsistent", "invalid_probe", "inconclusive", "answer_cut_off"]
"""What a reader should know about a probe.

* `attribution_inconsistent`: the auditor named an effect, and also said that the memory was not
  used or changed nothing; counts as neutral.
* `invalid_probe`: no round gave a valid probe; its contribution is not known.
* `inconclusive`: a call of this probe gave no usable answer; its contribution is not known.
* `answer_cut_off`: an answer reached the token limit twice and was judged as it was.
"""

MissingEvidence = Literal[
    "valid_request",
    "request_call",
    "control_answer",
    "treatment_answer",
    "quality_verdict",
    "attribution_verdict",
    "frequency",
]
"""What is missing to score a probe.

* `valid_request`: no round gave a valid request.
* `request_call`: a call that writes or validates requests gave no usable answer.
* `control_answer`, `treatment_answer`: an arm gave no usable answer.
* `quality_verdict`, `attribution_verdict`: the judge or the auditor gave no usable answer.
* `frequency`: the validator did not say how often such a request is made, and it matters.
"""

InconclusiveCause = Literal["no_usable_probe", "open_ruling"]
"""Why the effect of a candidate is inconclusive.

* `no_usable_probe`: no probe has all of its evidence.
* `open_ruling`: what is missing could change the ruling.
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
"""Why a candidate was decided on like this: `directly_relevant` if it was admitted, else one of the
others. `memory_omission`, `privacy_refusal` and `incomplete_memory_use` describe failures of use
and rarely fit a candidate. arXiv 2610.33432, section 4.5 and appendix B.7.
"""


class Probe(Frozen):
    """One future request."""

    role: ProbeRole
    query: Text
    """The request, as a user would make it."""


class ProbeAudit(Frozen):
    """The validator's verdict on one probe."""

    role: ProbeRole
    valid: bool
    """Whether it does what its role asks."""
    leaks: bool = False
    """Whether it gives away the memory or the test; such a probe cannot be used either."""
    reason: Text = ""
    frequency: Frequency | None = None
    """How often the user will make such a request; `None` if the validator was not asked."""
    by_rule: bool = False
    """Whether a fixed rule found the fault, before any model was asked."""

    @property
    def passes(self) -> bool:
        """Whether the probe can be used."""
        return self.valid and not self.leaks


class ProbeRound(Frozen):
    """One round of the ladder: probes written, then validated."""

    # Receipts written before the rename have `rung`.
    step: LadderStep = Field(validation_alias=AliasChoices("step", "rung"))
    """The step of the ladder: how the probes were written."""
    probes: tuple[Probe, ...] = ()
    """All current probes after writing; empty when no usable probe was written."""
    audits: tuple[ProbeAudit, ...] = ()
    """Verdicts of this round: of the validator, or of a fixed rule."""
    failures: tuple[Inconclusive, ...] = ()
    """Calls of this round without a usable answer. They say nothing about any probe."""


class Response(Frozen):
    """One answer to a probe."""

    text: Text
    """The answer, without reasoning."""
    cut_off: bool = False
    """Whether it reached the token limit."""


class QualityVerdict(Frozen):
    """The judge's verdict."""

    letter: Literal["A", "B", "TIE"]
    """The letter in the judge's answer."""
    shown_as_a: TrialArm
    """Which arm was shown as A."""
    reason: Text = ""

    @property
    def preference(self) -> Preference:
        """The preferred arm."""
        # The log keeps the letter, so that a bias for the first answer can be measured later.
        if self.letter == "TIE":
            return "tie"
        other: TrialArm = "control" if self.shown_as_a == "treatment" else "treatment"
        return self.shown_as_a if self.letter == "A" else other


class AttributionVerdict(Frozen):
    """The auditor's verdict."""

    # Asked in addition to the label: an auditor may name an effect of a memory that was not used,
    # and only these two answers show the contradiction.

    used: bool
    """Whether the memory was used in substance."""
    changed: bool
    """Whether it changed the answer in substance."""
    # Stored as answered; contradictions are resolved in the rules and can be counted here.
    label: Attribution
    """The auditor's label; `memguard.methods.conmem.rules.label_of` says how it counts."""
    reason: Text = ""

    @property
    def summary(self) -> str:
        """The answers to both questions, for example `used, changed nothing`."""
        used = "used" if self.used else "not used"
        return f"{used}, {'changed the answer' if self.changed else 'changed nothing'}"


class ProbeTrial(Frozen):
    """One probe, both answers and both verdicts. A call that was not made is `None`."""

    role: ProbeRole
    query: Text = ""
    """The request; empty when there is no probe."""
    valid: bool = True
    """Whether a valid probe was found."""
    validation: Text = ""
    """The validator's explanation."""
    frequency: Frequency | None = None
    """How often the user will make such a request; `None` if the validator was not asked."""
    # Valid, invalid and unknown are three states: the third always has a failure.
    failure: Inconclusive | None = None
    """Why there is no probe, no verdict on its validity, or no repair."""
    control: Response | Inconclusive | None = None
    """The answer without the memory."""
    treatment: Response | Inconclusive | None = None
    """The answer with it."""
    quality: QualityVerdict | Inconclusive | None = None
    """Which answer is better."""
    attribution: AttributionVerdict | Inconclusive | None = None
    """What the memory did to the answer."""


class ProbeScore(Frozen):
    """The contribution of one probe under one set of weights."""

    role: ProbeRole
    contribution: float | None
    """What it adds to the sum; `None` if evidence is missing."""
    possible: tuple[float, ...] = ()
    """If evidence is missing: every contribution that is compatible with the rest, ascending."""
    missing: tuple[MissingEvidence, ...] = ()
    """What is missing."""
    effect: QualityEffect | None = None
    """On the quality of the answer; `None` without a usable verdict."""
    label: Attribution | None = None
    """What the memory did, as it counts in the sum."""
    flags: tuple[ProbeFlag, ...] = ()
    """What a reader should know about it."""


class Cmte(Frozen):
    """The counterfactual memory treatment effect of a candidate."""

    ruling: CmteRuling
    """The sign of the sum."""
    total: float
    """Sum of the known contributions. If all are known, the decision rests on it."""
    lowest: float | None = None
    """The least that the sum can be; `None` if all contributions are known."""
    highest: float | None = None
    """The most that the sum can be; `None` if all contributions are known."""
    cmte: float | None
    """Mean of the known contributions; `None` when there are none."""
    n_valid: int
    """Usable probes: valid, with all of their evidence."""
    cause: InconclusiveCause | None = None
    """Why the ruling is inconclusive; `None` if it is not."""
    probes: tuple[ProbeScore, ...]
    """One per role."""


class TieBreakVerdict(Frozen):
    """The tie-break judge's verdict."""

    store: bool
    """Whether to store the candidate."""
    reason: Text = ""


class ReasonVerdict(Frozen):
    """Why the candidate was admitted or rejected."""

    reason_type: ReasonType
    """From the closed list."""
    confidence: float | None = None
    """The model's confidence in [0, 1]; `None` when no model was asked or it stated none."""
    explanation: Text = ""
    """The model's explanation."""


class Repairs(Frozen):
    """How often probes were written again, and what speculation wasted."""

    regenerations: int = 0
    """Rounds that generated all invalid probes again."""
    repairs: int = 0
    """Repairs of single probes, one per invalid probe and round."""
    reconstructions: int = 0
    """Rounds that started over."""
    discarded_answers: int = 0
    """Answers to probes that turned out to be invalid."""
    discarded_verdicts: int = 0
    """Verdicts on such answers."""
    enlarged_answers: int = 0
    """Answers that reached the token limit and were asked for once more, with more room."""


class CounterfactualLog(Frozen):
    """The complete evidence of one case."""

    case_id: str
    """The candidate's id; with seed and role it decides which answer is shown first."""
    seed: int
    """The seed of that order."""
    rounds: tuple[ProbeRound, ...] = ()
    """How the probes were written and validated."""
    # Raw verdicts, not scores: the score below can be recomputed from them.
    trials: tuple[ProbeTrial, ...] = ()
    """One per role."""
    score: Cmte | None = None
    """The effect under the spec's weights; `None` for a refused candidate."""
    tie_break: TieBreakVerdict | Inconclusive | None = None
    """The tie-break judge's verdict, if it was asked."""
    reason: ReasonVerdict | Inconclusive | None = None
    """The reason of the decision."""
    repairs: Repairs = Repairs()
    """Counters of repairs and of discarded work."""
    calls: dict[str, Usage] = Field(default={})
    """Model calls by stage, discarded ones included."""
    history_left_out: int = 0
    """Turns of the history that were not shown."""
    history_cut_short: bool = False
    """Whether only the end of a turn was shown."""
