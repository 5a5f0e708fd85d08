"""How well judges distinguish supported claims from changed ones, on sets not used in training.

Four judges are compared on every set: the support verifier, storing everything, the cosine of the
most similar turn, and a control that never sees the context. A language model is a fifth on
request.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.verifier.control import control_scores
from benchmarks.verifier.figures import admission
from benchmarks.verifier.pairs import Claim, Group
from benchmarks.verifier.sets import (
    DETAILS,
    handmade_groups,
    locomo_groups,
    msc_groups,
    training_frames,
)
from memguard.calibration import LabelledMemory, measure_judge
from memguard.llm.models import ModelLike
from memguard.local import MiniLmEncoder, SupportVerifier
from memguard.local.verifier.encoded import word_vectors
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.schema.memory import Conversation, Turn

MSC = Path("msc", "msc_personasummary")
LOCOMO = Path("locomo", "locomo10.json")

# Names of the judges in the tables.
VERIFIER, WRITE_ALL = "verifier", "WriteAll"
COSINE, CONTROL = "cosine, best turn", "claim alone (control)"


@dataclass(frozen=True, kw_only=True)
class EvaluationSet:
    """One set, claim by claim."""

    name: str
    """Its name in the tables."""
    claims: Sequence[tuple[Group, Claim]]
    """Every claim with its group."""
    language: str
    """The language of all its claims."""


@dataclass(frozen=True, kw_only=True)
class JudgeScores:
    """The scores of one judge on one set."""

    judge: str
    """Its name in the tables."""
    claims: Sequence[Claim]
    """The claims that have a usable score."""
    scores: Sequence[float]
    """Their scores, in the same order."""
    tau: float
    """Threshold: claims are admitted from this score on."""
    has_own_tau: bool
    """Whether `tau` is the judge's own; otherwise it gives the same recall as the verifier's."""
    unusable: int = 0
    """How many claims have no usable score."""
    cpu: Sequence[float] = ()
    """CPU seconds for each claim with its turns cached; empty if not measured."""

    @property
    def labels(self) -> list[bool]:
        """Whether each claim is supported."""
        return [claim.supported for claim in self.claims]


def read_sets(
    data: Path | None, *, limit: int | None = None, skipped: Callable[[str], None]
) -> list[EvaluationSet]:
    """Read the sets that are available.

    Args:
        data: The folder of LoCoMo and Multi-Session Chat; without it, the hand-written sets alone.
        limit: Maximum number of facts of each set; by default all.
        skipped: Called with a message for every set that is missing.
    """
    sets: list[tuple[str, list[Group]]] = []
    if data is None:
        skipped(
            "LoCoMo-R and MSC-R skipped: name the folder with these sets, --data FOLDER "
            "(docs/guides/local.md says where they are from)"
        )
    elif not (data / MSC).is_dir():
        skipped(f"LoCoMo-R and MSC-R skipped: {str(data / MSC)!r} is missing, which both need")
    else:
        frames = training_frames(data / MSC)
        if (data / LOCOMO).is_file():
            sets.append(("LoCoMo-R", locomo_groups(data / LOCOMO, frames)))
            details = locomo_groups(data / LOCOMO, frames, weights=DETAILS)
            sets.append(("LoCoMo details", details))
        else:
            skipped(f"LoCoMo-R skipped: {str(data / LOCOMO)!r} is missing")
        sets.append(("MSC-R", msc_groups(data / MSC, frames)))
    sets += [("hand-written", handmade_groups("en")), ("hand-written", handmade_groups("de"))]
    return [
        EvaluationSet(
            name=name,
            claims=[(group, claim) for group in groups[:limit] for claim in group.claims],
            language=groups[0].language,
        )
        for name, groups in sets
    ]


def measure_locally(
    claim_set: EvaluationSet, *, verifier: SupportVerifier, encoder: MiniLmEncoder
) -> list[JudgeScores]:
    """Score one set by the verifier and the three judges it is compared with.

    Args:
        claim_set: The set.
        verifier: The verifier.
        encoder: The verifier's model, for the cosine and the control.

    Returns:
        The scores of the four judges, the verifier's first.
    """
    claims = [claim for _, claim in claim_set.claims]
    labels = [claim.supported for claim in claims]
    verified = _by_verifier(claim_set, verifier)
    # The other judges have no threshold of their own. At equal recall, contamination compares.
    recall = admission(verified.scores, labels, tau=verified.tau).recall.value or 0.0
    control = control_scores(word_vectors(encoder, [claim.text for claim in claims]))
    rest = (
        (WRITE_ALL, [1.0] * len(claims)),
        (COSINE, _best_cosines(claim_set, encoder)),
        (CONTROL, control),
    )
    return [
        verified,
        *(
            JudgeScores(
                judge=judge,
                claims=claims,
                scores=scores,
                tau=_same_recall(scores, labels, recall),
                has_own_tau=False,
            )
            for judge, scores in rest
        ),
    ]


async def measure_model(
    claim_set: EvaluationSet, model: ModelLike, *, spec: ConsistencyGate, name: str
) -> JudgeScores:
    """Score one set by a language model in the gate; claims without a usable answer are left out.

    Args:
        claim_set: The set.
        model: The judge.
        spec: Settings of the gate.
        name: The judge's name in the tables.
    """
    memories = [
        LabelledMemory(
            id=str(index),
            source=Conversation(turns=tuple(turns_of(group)), id=group.origin),
            text=claim.text,
            is_supported=claim.supported,
            change=claim.kind,
        )
        for index, (group, claim) in enumerate(claim_set.claims)
    ]
    measured = await measure_judge(model, memories=memories, spec=spec)
    # A judge without an answer is not counted as a judge that says no.
    usable = [
        (claim, memory.score)
        for (_, claim), memory in zip(claim_set.claims, measured.judged, strict=True)
        if memory.score is not None
    ]
    return JudgeScores(
        judge=name,
        claims=[claim for claim, _ in usable],
        scores=[score for _, score in usable],
        tau=measured.tau,
        has_own_tau=True,
        unusable=len(memories) - len(usable),
    )


def turns_of(group: Group) -> list[Turn]:
    """The context as turns; the labels `User` and `Assistant` become roles, other labels names."""
    return [
        Turn(
            id=str(index),
            role="assistant" if label == "Assistant" else "user",
            content=text,
            speaker="" if label in {"User", "Assistant"} else label,
        )
        for index, (label, text) in enumerate(group.context)
    ]


def _by_verifier(claim_set: EvaluationSet, verifier: SupportVerifier) -> JudgeScores:
    scores: list[float] = []
    cpu: list[float] = []
    for group, claim in claim_set.claims:
        turns = turns_of(group)
        # Cached before the clock starts, as in an agent that encodes turns when they arrive.
        verifier.prepare(context=turns)
        start = time.process_time()
        scores.append(verifier.score(candidate=claim.text, context=turns))
        cpu.append(time.process_time() - start)
    return JudgeScores(
        judge=VERIFIER,
        claims=[claim for _, claim in claim_set.claims],
        scores=scores,
        tau=verifier.tau,
        has_own_tau=True,
        cpu=cpu,
    )


def _best_cosines(claim_set: EvaluationSet, encoder: MiniLmEncoder) -> list[float]:
    cosines: list[float] = []
    for group, claim in claim_set.claims:
        # The whole sentence as one vector, as a plain vector store compares it.
        rows = encoder.encode([claim.text, *(text for _, text in group.context)])
        cosines.append(float((rows[1:] @ rows[0]).max()))
    return cosines


def _same_recall(values: Sequence[float], labels: Sequence[bool], recall: float) -> float:
    # The threshold at which the same share of supported claims is admitted.
    good = sorted((v for v, label in zip(values, labels, strict=True) if label), reverse=True)
    return good[max(0, min(len(good), round(recall * len(good))) - 1)]
