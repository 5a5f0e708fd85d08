"""Claims from Multi-Session Chat: human-written memories with the turns they are based on.

Multi-Session Chat v0.1 (Xu et al., "Beyond Goldfish PersonaMemory", 2022), MIT, Facebook / ParlAI.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.verifier import tables
from benchmarks.verifier.corruptor import WEIGHTS, Fact, corrupt
from benchmarks.verifier.frames import Frames
from benchmarks.verifier.pairs import Claim, Group, correct, is_unrelated, share, wrong
from benchmarks.verifier.person import HE, SHE, THEY, third_person
from memguard.local.verifier.words import read_words, stems_of

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")
# Words of a memory; longer ones are often several facts in one.
_SHORTEST, _LONGEST = 3, 18
# Share of a memory's content words that its turns must contain.
_MIN_OVERLAP = 0.3
# In training, rare kinds are used whenever they apply, and swaps, which are the hardest, more often
# than any frequent kind.
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
# Share of suitable memories whose turn gets a distracting sentence.
_DISTRACTED = 0.55


@dataclass(frozen=True, kw_only=True)
class PersonaMemory:
    """One human-written memory and its turns."""

    dialogue: str
    """Id of the dialogue."""
    fact: str
    """One sentence, in the first person."""
    turns: tuple[tuple[int, str], ...]
    """Speaker (0 or 1) and text of each turn in a window around the one it is based on."""
    at: int
    """Index in `turns` of the turn it is based on."""

    @property
    def who(self) -> int:
        """The speaker it is about: 0 or 1."""
        return self.turns[self.at][0]


@dataclass(frozen=True, kw_only=True)
class Style:
    """The names of a dialogue's two speakers, and the grammatical person of its memories."""

    labels: tuple[str, str]
    """Labels of the two speakers' turns."""
    subjects: tuple[str, str]
    """Names of the two in memories; empty for memories in the first person."""


def read_memories(folder: Path, *, split: str) -> Iterator[PersonaMemory]:
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


def _of_dialogue(
    dialog: Sequence[dict[str, str]], *, name: str, salt: str
) -> Iterator[PersonaMemory]:
    turns = [(index % 2, _tidy(turn["text"])) for index, turn in enumerate(dialog)]
    for index, turn in enumerate(dialog):
        for fact in _SENTENCE.findall(turn.get("persona_text") or ""):
            text = _tidy(fact)
            # Seeded by its place in the corpus, so that every memory keeps its window.
            draw = random.Random(f"{salt}/{index}/{text}")
            first = max(0, index - draw.choice((1, 2, 3)))
            window = tuple(turns[first : index + 1 + draw.choice((0, 1, 2))])
            if _usable(text, window):
                yield PersonaMemory(dialogue=name, fact=text, turns=window, at=index - first)


def _tidy(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


def _usable(fact: str, window: Iterable[tuple[int, str]]) -> bool:
    # `person` rewrites sentences that begin with their subject.
    if not fact.startswith(("I ", "I'", "My ")):
        return False
    words = read_words(fact)
    if not _SHORTEST <= len(words) <= _LONGEST:
        return False
    content, stated = words.content, stems_of(" ".join(text for _, text in window))
    return bool(content) and sum(word in stated for word in content) >= _MIN_OVERLAP * len(content)


def style_of(dialogue: str) -> Style:
    """The style of a dialogue, always the same for the same id."""
    draw = random.Random(f"style/{dialogue}")
    # Mostly names, since an agent usually knows them; the rest in the styles that agents also use.
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
    memories: Sequence[PersonaMemory],
    frames: Frames,
    *,
    source: str,
    negatives: int,
    third_only: bool = False,
    training: bool = True,
) -> Iterator[Group]:
    """For every memory, the claim as written and claims with one detail changed.

    Args:
        memories: The memories.
        frames: Words that occur in the same contexts.
        source: Name of the set.
        negatives: Maximum number of changed claims per memory.
        third_only: Whether all memories are in the third person, with two names.
        training: Whether swaps are more likely and turns get distracting sentences.
    """
    for memory in memories:
        turn = memory.turns[memory.at][1]
        draw = random.Random(f"{source}/{memory.dialogue}/{memory.fact}/{turn}")
        style = style_of(memory.dialogue)
        if third_only:
            names = draw.sample(tables.FIRST_NAMES, 2)
            style = Style(labels=(names[0], names[1]), subjects=(names[0], names[1]))
        varied = _with_names(memory, draw)
        if training:
            varied = _with_distractor(varied, draw)
        yield _group(
            varied,
            memories,
            frames,
            style=style,
            draw=draw,
            source=source,
            negatives=negatives,
            training=training,
        )


def _group(
    memory: PersonaMemory,
    memories: Sequence[PersonaMemory],
    frames: Frames,
    *,
    style: Style,
    draw: random.Random,
    source: str,
    negatives: int,
    training: bool,
) -> Group:
    subject = style.subjects[memory.who]
    # By chance, since the corpus does not say; turns are in the first person anyway.
    pronouns = draw.choice((SHE, HE, THEY))

    def phrase(text: str) -> str:
        return third_person(text, name=subject, pronouns=pronouns) if subject else text

    context = tuple((style.labels[who], text) for who, text in memory.turns)
    elsewhere = memories[draw.randrange(len(memories))]
    fact = Fact(
        text=phrase(memory.fact),
        window="\n".join(f"{speaker}: {text}" for speaker, text in context),
        subject=subject,
        other=style.subjects[1 - memory.who],
        unrelated=(phrase(elsewhere.fact),) if _is_unrelated(elsewhere, memory) else (),
    )
    weights = {**WEIGHTS, **(_TRAIN_WEIGHTS if training else {})}
    claims: list[Claim] = [correct(fact.text)]
    used: frozenset[str] = frozenset()
    for _ in range(negatives):
        changed = corrupt(fact, frames, draw, weights=weights, skip=used)
        if changed is not None and changed[0] not in {claim.text for claim in claims}:
            claims.append(wrong(*changed))
            # Another kind each time, so that one memory does not repeat a change.
            used |= {changed[1]}
    return Group(source=source, origin=memory.dialogue, context=context, claims=tuple(claims))


def _is_unrelated(other: PersonaMemory, memory: PersonaMemory) -> bool:
    window = " ".join(text for _, text in memory.turns)
    return other.dialogue != memory.dialogue and is_unrelated(other.fact, window)


def _with_names(memory: PersonaMemory, draw: random.Random) -> PersonaMemory:
    """Name a relative or pet in turn and memory, because the corpus itself has almost no names."""
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

    def insert_name(text: str) -> str:
        return re.sub(rf"\b([Mm]y {noun})\b(?!'| [A-Z])", rf"\1 {name}", text, count=1)

    turns = list(memory.turns)
    turns[memory.at] = (memory.who, insert_name(turn))
    return replace(memory, fact=insert_name(memory.fact), turns=tuple(turns))


def _with_distractor(memory: PersonaMemory, draw: random.Random) -> PersonaMemory:
    """Add a sentence with another number or name to the turn, so that values can be swapped."""
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
        city = draw.choice(tables.PLACES)
        sentences += [
            f"My {other} {name} was there too.",
            f"My {other} is called {name}.",
            f"{name} is my {other}.",
            f"My {other} lives in {city}.",
            f"We only drove through {city}.",
        ]
    if not sentences or draw.random() > _DISTRACTED:
        return memory
    extra = draw.choice(sentences)
    turns = list(memory.turns)
    text = turns[memory.at][1]
    joined = f"{extra} {text}" if draw.random() < 0.5 else f"{text} {extra}"
    turns[memory.at] = (memory.who, joined)
    return replace(memory, turns=tuple(turns))


def is_validation(group: Group) -> bool:
    """Whether a group is held out to choose thresholds: one dialogue in twelve."""
    return share(group.origin) < 1 / 12
