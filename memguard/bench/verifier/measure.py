"""How well a judge tells supported claims from changed ones, on the sets nothing was trained on.

Four judges stand beside each other on every set: the support verifier, storing everything, the
cosine of the best turn, and a control that never sees the context; a language model on request.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memguard.bench.verifier.control import control_scores
from memguard.bench.verifier.figures import admission
from memguard.bench.verifier.pairs import Claim, Group
from memguard.bench.verifier.sets import (
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
from memguard.schema.config import ConsistencyGate
from memguard.schema.memory import Conversation, Turn

MSC = Path("msc", "msc_personasummary")
LOCOMO = Path("locomo", "locomo10.json")

VERIFIER, WRITE_ALL = "verifier", "WriteAll"
COSINE, CONTROL = "cosine, best turn", "claim alone (control)"


@dataclass(frozen=True, kw_only=True)
class EvaluationSet:
    """One set, claim by claim."""

    name: str
    """What it is called."""
    claims: Sequence[tuple[Group, Claim]]
    """Every claim with its group."""
    language: str
    """Of all its claims."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one judge made of one set."""

    judge: str
    """Its name."""
    claims: Sequence[Claim]
    """The claims it gave a usable score."""
    scores: Sequence[float]
    """Their scores."""
    tau: float
    """Admitted from here on."""
    own_tau: bool
    """Whether that is the judge's own threshold; else the one of the verifier's recall."""
    unusable: int = 0
    """Claims without a usable score."""
    cpu: Sequence[float] = ()
    """CPU seconds of each, turns cached; empty where it was not taken."""

    @property
    def labels(self) -> list[bool]:
        """Whether each claim is supported."""
        return [claim.supported for claim in self.claims]


def read_sets(
    data: Path | None, *, limit: int | None = None, skipped: Callable[[str], None]
) -> list[EvaluationSet]:
    """The sets that are here.

    Args:
        data: The folder of LoCoMo and Multi-Session Chat; only the hand-written sets without it.
        limit: Facts of each set at most; all when not given.
        skipped: Told which sets are missing and what they need.
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
    chosen: EvaluationSet, *, verifier: SupportVerifier, encoder: MiniLmEncoder
) -> list[Judged]:
    """The verifier and the three that stand beside it, on one set.

    Args:
        chosen: The set.
        verifier: The verifier.
        encoder: The model under it, for the cosine and the control.
    """
    claims = [claim for _, claim in chosen.claims]
    labels = [claim.supported for claim in claims]
    own = _by_verifier(chosen, verifier)
    recall = admission(own.scores, labels, tau=own.tau).recall.value or 0.0
    control = control_scores(word_vectors(encoder, [claim.text for claim in claims]))
    rest = (
        (WRITE_ALL, [1.0] * len(claims)),
        (COSINE, _best_cosines(chosen, encoder)),
        (CONTROL, control),
    )
    return [
        own,
        *(
            Judged(
                judge=judge,
                claims=claims,
                scores=scores,
                tau=_same_recall(scores, labels, recall),
                own_tau=False,
            )
            for judge, scores in rest
        ),
    ]


async def measure_model(
    chosen: EvaluationSet, model: ModelLike, *, spec: ConsistencyGate, name: str
) -> Judged:
    """A language model in the gate, on one set; claims without a usable answer are left out.

    Args:
        chosen: The set.
        model: The judge.
        spec: Settings of the gate.
        name: What it is called in the table.
    """
    memories = [
        LabelledMemory(
            id=str(index),
            source=Conversation(turns=tuple(turns_of(group)), id=group.origin),
            text=claim.text,
            is_supported=claim.supported,
            change=claim.kind,
        )
        for index, (group, claim) in enumerate(chosen.claims)
    ]
    measured = await measure_judge(model, memories=memories, spec=spec)
    usable = [
        (claim, one.score)
        for (_, claim), one in zip(chosen.claims, measured.judged, strict=True)
        if one.score is not None
    ]
    return Judged(
        judge=name,
        claims=[claim for claim, _ in usable],
        scores=[score for _, score in usable],
        tau=measured.tau,
        own_tau=True,
        unusable=len(memories) - len(usable),
    )


def turns_of(group: Group) -> list[Turn]:
    """The context as turns; `User` and `Assistant` are roles and not names."""
    return [
        Turn(
            id=str(index),
            role="assistant" if label == "Assistant" else "user",
            content=text,
            speaker="" if label in {"User", "Assistant"} else label,
        )
        for index, (label, text) in enumerate(group.context)
    ]


def _by_verifier(chosen: EvaluationSet, verifier: SupportVerifier) -> Judged:
    scores: list[float] = []
    cpu: list[float] = []
    for group, claim in chosen.claims:
        turns = turns_of(group)
        # The turns are in the cache from here on, as they are in an agent that judges as it goes.
        verifier.prepare(context=turns)
        start = time.process_time()
        scores.append(verifier.score(candidate=claim.text, context=turns))
        cpu.append(time.process_time() - start)
    return Judged(
        judge=VERIFIER,
        claims=[claim for _, claim in chosen.claims],
        scores=scores,
        tau=verifier.tau,
        own_tau=True,
        cpu=cpu,
    )


def _best_cosines(chosen: EvaluationSet, encoder: MiniLmEncoder) -> list[float]:
    cosines: list[float] = []
    for group, claim in chosen.claims:
        rows = encoder.encode([claim.text, *(text for _, text in group.context)])
        cosines.append(float((rows[1:] @ rows[0]).max()))
    return cosines


def _same_recall(values: Sequence[float], labels: Sequence[bool], recall: float) -> float:
    good = sorted((v for v, label in zip(values, labels, strict=True) if label), reverse=True)
    return good[max(0, min(len(good), round(recall * len(good))) - 1)]
