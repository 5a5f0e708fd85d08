"""Claims from Multi-Session Chat: human-written memories beside the turns they were made from.

Multi-Session Chat v0.1 (Xu et al., "Beyond Goldfish Memory", 2022), MIT, Facebook / ParlAI.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memguard.bench.verifier import tables
from memguard.bench.verifier.corruptor import WEIGHTS, Fact, corrupt
from memguard.bench.verifier.frames import Frames
from memguard.bench.verifier.pairs import Claim, Group, correct, share, wrong
from memguard.bench.verifier.person import HE, SHE, THEY, third_person
from memguard.local.verifier.words import read_words, stems_of

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")
_SHORTEST, _LONGEST = 3, 18
_LEAST_OVERLAP = 0.3
# Rare kinds are wanted whenever they apply; swaps, the hardest, more often than anything common.
_TRAIN_WEIGHTS = {
    "swap": 5.0,
    "number": 6.0,
    "name": 6.0,
    "place": 5.0,
    "occupation": 4.0,
    "date": 5.0,
    "activity": 3.0,
    "relation": 2.5,
    "speaker": 2.0,
    "object": 2.5,
    "negation": 0.5,
    "owner": 3.0,
}
_DISTRACT = 0.55


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One human-written memory and its turns."""

    dialogue: str
    """The dialogue it is from."""
    fact: str
    """One sentence, in the first person."""
    turns: tuple[tuple[int, str], ...]
    """Who of the two (0 or 1) said what, in a window around the turn it is from."""
    at: int
    """Which of these it is from."""

    @property
    def who(self) -> int:
        """Who of the two it is about."""
        return self.turns[self.at][0]


@dataclass(frozen=True, kw_only=True)
class Style:
    """How the two of a dialogue are called, and in which person memories are written."""

    labels: tuple[str, str]
    """How turns are labelled."""
    subjects: tuple[str, str]
    """How a memory names them; empty for the first person."""


def read_memories(folder: Path, *, split: str) -> Iterator[Memory]:
    """Every usable memory of a split, in the order of the files.

    Args:
        folder: `msc_personasummary`.
        split: `valid` or `test`.
    """
    for session in (1, 2, 3, 4):
        path = folder / f"session_{session}" / f"{split}.txt"
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                name = str(row.get("initial_data_id") or f"{split}_{session}_{number}")
                yield from _of_dialogue(row["dialog"], name=name, salt=f"{session}/{number}")


def _of_dialogue(dialog: Sequence[dict[str, str]], *, name: str, salt: str) -> Iterator[Memory]:
    turns = [(index % 2, _tidy(turn["text"])) for index, turn in enumerate(dialog)]
    for index, turn in enumerate(dialog):
        for fact in _SENTENCE.findall(turn.get("persona_text") or ""):
            text = _tidy(fact)
            draw = random.Random(f"{salt}/{index}/{text}")
            first = max(0, index - draw.choice((1, 2, 3)))
            window = tuple(turns[first : index + 1 + draw.choice((0, 1, 2))])
            if _usable(text, window):
                yield Memory(dialogue=name, fact=text, turns=window, at=index - first)


def _tidy(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


def _usable(fact: str, window: Iterable[tuple[int, str]]) -> bool:
    if not fact.startswith(("I ", "I'", "My ")):
        return False
    words = read_words(fact)
    if not _SHORTEST <= len(words) <= _LONGEST:
        return False
    content = [each for each, stop in zip(words.stems, words.stop, strict=True) if not stop]
    there = stems_of(" ".join(text for _, text in window))
    return bool(content) and sum(each in there for each in content) >= _LEAST_OVERLAP * len(content)


def style_of(dialogue: str) -> Style:
    """Names of a dialogue: always the same for the same dialogue."""
    draw = random.Random(f"style/{dialogue}")
    kind = draw.random()
    if kind < 0.74:
        names = draw.sample(tables.FIRST_NAMES, 2)
        return Style(labels=(names[0], names[1]), subjects=(names[0], names[1]))
    if kind < 0.90:
        user = draw.choice(("User", "The user"))
        if draw.random() < 0.5:
            return Style(labels=("User", "Assistant"), subjects=(user, "Assistant"))
        return Style(labels=("Assistant", "User"), subjects=("Assistant", user))
    return Style(labels=("Speaker 1", "Speaker 2"), subjects=("", ""))


def build_groups(
    memories: Sequence[Memory],
    frames: Frames,
    *,
    source: str,
    negatives: int,
    third_only: bool = False,
    training: bool = True,
) -> Iterator[Group]:
    """A claim as written and claims with one detail changed, for every memory that allows it.

    Args:
        memories: What to start from.
        frames: Words that can stand for one another.
        source: Name of the set.
        negatives: Changed claims per memory at most.
        third_only: Whether every memory is written in the third person with two names.
        training: Whether same-context swaps are made likelier and turns get distractors.
    """
    for memory in memories:
        said = memory.turns[memory.at][1]
        draw = random.Random(f"{source}/{memory.dialogue}/{memory.fact}/{said}")
        style = style_of(memory.dialogue)
        if third_only:
            names = draw.sample(tables.FIRST_NAMES, 2)
            style = Style(labels=(names[0], names[1]), subjects=(names[0], names[1]))
        memory_here = _with_names(memory, draw)
        if training:
            memory_here = _with_distractor(memory_here, draw)
        yield _group(
            memory_here,
            memories,
            frames,
            style=style,
            draw=draw,
            source=source,
            negatives=negatives,
            training=training,
        )


def _group(
    memory: Memory,
    memories: Sequence[Memory],
    frames: Frames,
    *,
    style: Style,
    draw: random.Random,
    source: str,
    negatives: int,
    training: bool,
) -> Group:
    subject = style.subjects[memory.who]
    pronouns = draw.choice((SHE, HE, THEY))

    def told(text: str) -> str:
        return third_person(text, name=subject, pronouns=pronouns) if subject else text

    context = tuple((style.labels[who], text) for who, text in memory.turns)
    elsewhere = memories[draw.randrange(len(memories))]
    fact = Fact(
        text=told(memory.fact),
        window="\n".join(f"{speaker}: {text}" for speaker, text in context),
        subject=subject,
        other=style.subjects[1 - memory.who],
        unrelated=(told(elsewhere.fact),) if _is_unrelated(elsewhere, memory) else (),
    )
    weights = {**WEIGHTS, **(_TRAIN_WEIGHTS if training else {})}
    claims: list[Claim] = [correct(fact.text)]
    used: frozenset[str] = frozenset()
    for _ in range(negatives):
        changed = corrupt(fact, frames, draw, weights=weights, skip=used)
        if changed is not None and changed[0] not in {each.text for each in claims}:
            claims.append(wrong(*changed))
            used |= {changed[1]}
    return Group(source=source, origin=memory.dialogue, context=context, claims=tuple(claims))


def _is_unrelated(other: Memory, memory: Memory) -> bool:
    if other.dialogue == memory.dialogue:
        return False
    words = read_words(other.fact)
    content = {each for each, stop in zip(words.stems, words.stop, strict=True) if not stop}
    there = stems_of(" ".join(text for _, text in memory.turns))
    return len(content - there) * 2 > len(content)


def _with_names(memory: Memory, draw: random.Random) -> Memory:
    """Give a relative or pet a name in turn and memory alike: the corpus itself has almost none."""
    turn = memory.turns[memory.at][1]
    nouns = [
        noun
        for noun in (*tables.RELATIONS, *tables.PETS)
        if re.search(rf"\b[Mm]y {noun}\b(?!'| [A-Z])", memory.fact)
        and re.search(rf"\b[Mm]y {noun}\b(?!'| [A-Z])", turn)
    ]
    if not nouns or draw.random() > 0.55:
        return memory
    noun, name = draw.choice(nouns), draw.choice(tables.FIRST_NAMES)

    def named(text: str) -> str:
        return re.sub(rf"\b([Mm]y {noun})\b(?!'| [A-Z])", rf"\1 {name}", text, count=1)

    turns = list(memory.turns)
    turns[memory.at] = (memory.who, named(turn))
    return replace(memory, fact=named(memory.fact), turns=tuple(turns))


def _with_distractor(memory: Memory, draw: random.Random) -> Memory:
    """Say another number or name of something else in the same turn, so that swaps exist."""
    words = read_words(memory.fact)
    sentences: list[str] = []
    if words.number.any():
        n = draw.choice([*tables.SMALL[1:], str(draw.randrange(2, 40))])
        sentences += [
            f"My cousin has {n} of those.",
            f"I slept {n} hours last night.",
            f"It took us {n} days to get there.",
            f"I also have {n} {draw.choice(('cats', 'bikes', 'nieces', 'guitars'))}.",
            f"My neighbor is {n}.",
            f"We waited {n} minutes outside.",
        ]
    if words.capital.any():
        name = draw.choice(tables.FIRST_NAMES)
        other = draw.choice(tables.RELATIONS)
        place = draw.choice(tables.PLACES)
        sentences += [
            f"My {other} {name} was there too.",
            f"My {other} is called {name}.",
            f"{name} is my {other}.",
            f"My {other} lives in {place}.",
            f"We only drove through {place}.",
        ]
    if not sentences or draw.random() > _DISTRACT:
        return memory
    extra = draw.choice(sentences)
    turns = list(memory.turns)
    text = turns[memory.at][1]
    joined = f"{extra} {text}" if draw.random() < 0.5 else f"{text} {extra}"
    turns[memory.at] = (memory.who, joined)
    return replace(memory, turns=tuple(turns))


def is_validation(group: Group) -> bool:
    """Whether a group is held back to choose thresholds: one in twelve, whole dialogues."""
    return share(group.origin) < 1 / 12
