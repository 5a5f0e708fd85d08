"""The evaluation sets of the verifier: LoCoMo-R, MSC-R and two written by hand.

They are contamination sets like those of ConsistencyGate: half of the claims are correct, and half
have one detail changed. No set is used in training or to choose a threshold.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from benchmarks.verifier.corruptor import WEIGHTS, Fact, corrupt
from benchmarks.verifier.frames import Frames, read_frames
from benchmarks.verifier.multi_session import PersonaMemory, build_groups, read_memories
from benchmarks.verifier.pairs import Claim, Group, correct, is_unrelated, wrong

# Turns before and after the one that a fact cites.
_AROUND = 2
_LOCOMO_FACTS = 500
_MSC_FACTS = 400
DETAILS = {
    kind: WEIGHTS[kind] for kind in ("number", "name", "place", "occupation", "date", "activity")
}
"""The kinds of detail that ConsistencyGate names; rare in LoCoMo, so they have a set of their
own."""

HANDMADE = {"en": "handmade_en.json", "de": "handmade_de.json"}


def training_frames(folder: Path) -> Frames:
    """Frames counted over the training memories and their turns.

    Args:
        folder: `msc_personasummary`.
    """
    return frames_of(list(read_memories(folder, split="valid")))


def frames_of(memories: Sequence[PersonaMemory]) -> Frames:
    """Frames counted over memories and the turns they are based on."""
    return read_frames(
        [memory.fact for memory in memories] + [memory.turns[memory.at][1] for memory in memories]
    )


def locomo_groups(
    path: Path,
    frames: Frames,
    *,
    facts: int = _LOCOMO_FACTS,
    weights: Mapping[str, float] = WEIGHTS,
) -> list[Group]:
    """`observation` facts, each with a changed version and two turns on either side of its turn.

    Args:
        path: `locomo10.json`.
        frames: Words that occur in the same contexts.
        facts: Maximum number of facts.
        weights: Relative frequency with which each kind of change is tried first; kinds that are
            missing are not tried.
    """
    groups: list[Group] = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        groups += _of_conversation(row)
    random.Random("locomo-r").shuffle(groups)
    # An unrelated sentence must be about the same person, or the name alone would tell.
    by_speaker: dict[str, list[str]] = {}
    for group in groups:
        by_speaker.setdefault(_subject(group), []).append(group.claims[0].text)
    chosen: list[Group] = []
    for group in groups:
        changed = _changed(group, by_speaker[_subject(group)], frames, weights)
        if changed is not None and len(chosen) < facts:
            chosen.append(replace(group, claims=(*group.claims, changed)))
    return chosen


def _changed(
    group: Group, facts: Sequence[str], frames: Frames, weights: Mapping[str, float]
) -> Claim | None:
    text, speaker = group.claims[0].text, _subject(group)
    draw = random.Random(f"locomo-r/{group.origin}/{text}")
    others = [label for label, _ in group.context if label != speaker]
    fact = Fact(
        text=text,
        window="\n".join(f"{label}: {line}" for label, line in group.context),
        subject=speaker,
        other=others[0] if others else "",
        unrelated=_unrelated(group, facts, draw),
    )
    changed = corrupt(fact, frames, draw, weights=weights)
    return None if changed is None else wrong(*changed)


def _of_conversation(row: dict[str, object]) -> list[Group]:
    conversation: dict[str, list[dict[str, str]]] = row["conversation"]  # type: ignore[assignment]
    observation: dict[str, dict[str, list[list[str]]]] = row["observation"]  # type: ignore[assignment]
    groups: list[Group] = []
    for name, by_speaker in observation.items():
        turns = conversation.get(name.removesuffix("_observation"), [])
        ids = [turn["dia_id"] for turn in turns]
        for speaker, facts in by_speaker.items():
            for text, cited in facts:
                # Only facts that name their speaker, or a changed speaker could not be seen.
                if cited not in ids or not re.search(rf"\b{speaker}\b", text):
                    continue
                index = ids.index(cited)
                window = turns[max(0, index - _AROUND) : index + _AROUND + 1]
                groups.append(
                    Group(
                        source="LoCoMo-R",
                        origin=f"{row['sample_id']}/{cited}/{speaker}",
                        context=tuple((turn["speaker"], turn["text"]) for turn in window),
                        claims=(correct(text),),
                    )
                )
    return groups


def _subject(group: Group) -> str:
    return group.origin.rsplit("/", 1)[-1]


def _unrelated(group: Group, facts: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    window = " ".join(text for _, text in group.context)
    # A few tries: of some speakers all facts are about the same subject.
    for _ in range(5):
        other = draw.choice(facts)
        if is_unrelated(other, window):
            return (other,)
    return ()


def msc_groups(folder: Path, frames: Frames, *, facts: int = _MSC_FACTS) -> list[Group]:
    """Third-person persona memories of the test split, in a window of two to six turns.

    Args:
        folder: `msc_personasummary`.
        frames: Words that occur in the same contexts.
        facts: Maximum number of facts.
    """
    memories = list(read_memories(folder, split="test"))
    random.Random("msc-r").shuffle(memories)
    groups = build_groups(
        # More than needed, because not every memory can be changed.
        memories[: 3 * facts],
        frames,
        source="MSC-R",
        negatives=1,
        third_only=True,
        training=False,
    )
    return [group for group in groups if len(group.claims) > 1][:facts]


def handmade_groups(language: str) -> list[Group]:
    """The hand-written pairs in `en` or `de`."""
    file = resources.files("benchmarks.verifier").joinpath("data", HANDMADE[language])
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [
        Group(
            source=f"hand-written, {language}",
            origin=f"{language}/{index}",
            context=tuple((speaker, text) for speaker, text in row["turns"]),
            claims=(
                correct(row["supported"]),
                Claim(text=row["unsupported"], supported=False, kind=row["kind"]),
            ),
            language=language,
        )
        for index, row in enumerate(rows)
    ]
