"""The sets the verifier is judged on: LoCoMo-R, MSC-R and two that are written by hand.

Contamination sets in the spirit of ConsistencyGate: half the claims are correct, half have one
detail changed. Nothing here is used in training or to choose a threshold.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from memguard.bench.verifier.corruptor import WEIGHTS, Fact, corrupt
from memguard.bench.verifier.frames import Frames, read_frames
from memguard.bench.verifier.multi_session import Memory, build_groups, read_memories
from memguard.bench.verifier.pairs import Claim, Group, correct, wrong
from memguard.local.verifier.words import read_words, stems_of

_AROUND = 2
_LOCOMO_FACTS = 500
_MSC_FACTS = 400
DETAILS = {
    kind: WEIGHTS[kind] for kind in ("number", "name", "place", "occupation", "date", "activity")
}
"""The kinds of detail ConsistencyGate names; rare among LoCoMo's facts, so they get a set."""

HANDMADE = {"en": "handmade_en.json", "de": "handmade_de.json"}


def training_frames(folder: Path) -> Frames:
    """Words that can stand for one another, counted over the training memories and their turns.

    Args:
        folder: `msc_personasummary`.
    """
    return frames_of(list(read_memories(folder, split="valid")))


def frames_of(memories: Sequence[Memory]) -> Frames:
    """The same from memories that are read already."""
    return read_frames(
        [each.fact for each in memories] + [each.turns[each.at][1] for each in memories]
    )


def locomo_groups(
    path: Path,
    frames: Frames,
    *,
    facts: int = _LOCOMO_FACTS,
    weights: Mapping[str, float] = WEIGHTS,
) -> list[Group]:
    """`observation` facts with the cited turn and two turns on either side, and a changed twin.

    Args:
        path: `locomo10.json`.
        frames: Words that can stand for one another.
        facts: How many facts at most.
        weights: How often each kind of change is tried first; kinds left out are not tried.
    """
    groups: list[Group] = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        groups += _of_conversation(row)
    random.Random("locomo-r").shuffle(groups)
    by_speaker: dict[str, list[str]] = {}
    for group in groups:
        by_speaker.setdefault(_subject(group), []).append(group.claims[0].text)
    chosen: list[Group] = []
    for group in groups:
        twin = _changed(group, by_speaker[_subject(group)], frames, weights)
        if twin is not None and len(chosen) < facts:
            chosen.append(replace(group, claims=(*group.claims, twin)))
    return chosen


def _changed(
    group: Group, facts: Sequence[str], frames: Frames, weights: Mapping[str, float]
) -> Claim | None:
    text, speaker = group.claims[0].text, _subject(group)
    draw = random.Random(f"locomo-r/{group.origin}/{text}")
    others = [label for label, _ in group.context if label != speaker]
    fact = Fact(
        text=text,
        window="\n".join(f"{label}: {said}" for label, said in group.context),
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
                if cited not in ids or not re.search(rf"\b{speaker}\b", text):
                    continue
                place = ids.index(cited)
                window = turns[max(0, place - _AROUND) : place + _AROUND + 1]
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
    there = stems_of(" ".join(text for _, text in group.context))
    for _ in range(5):
        other = draw.choice(facts)
        words = read_words(other)
        content = {each for each, stop in zip(words.stems, words.stop, strict=True) if not stop}
        if len(content - there) * 2 > len(content):
            return (other,)
    return ()


def msc_groups(folder: Path, frames: Frames, *, facts: int = _MSC_FACTS) -> list[Group]:
    """Third-person persona memories of the test split, in a window of two to six turns.

    Args:
        folder: `msc_personasummary`.
        frames: Words that can stand for one another.
        facts: How many facts.
    """
    memories = list(read_memories(folder, split="test"))
    random.Random("msc-r").shuffle(memories)
    groups = build_groups(
        memories[: 3 * facts],
        frames,
        source="MSC-R",
        negatives=1,
        third_only=True,
        training=False,
    )
    return [group for group in groups if len(group.claims) > 1][:facts]


def handmade_groups(language: str) -> list[Group]:
    """The pairs written by hand, in `en` or `de`."""
    file = resources.files("memguard.bench.verifier").joinpath("data", HANDMADE[language])
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
