"""Reads with known relevant memories: from Multi-Session Chat, LoCoMo, and hand-written topics."""

import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.verifier.person import HE, SHE, Pronouns, third_person

DATA = Path(__file__).parent / "data"
LANGUAGES = ("en", "de", "es", "fr", "zh")
"""The languages of `languages.json`; its texts in English are not used for training either."""
_SENTENCE = re.compile(r"[^.!?]+[.!?]*")
_WOMEN = ("Anna", "Maria", "Laura", "Sofia", "Emma", "Olivia", "Grace", "Nora", "Julia", "Alice")
_MEN = ("Tom", "David", "Peter", "Marco", "Ben", "Lucas", "Omar", "Daniel", "Jack", "Henry")
_SECOND = (
    (r"\bdo you\b", "does {name}"),
    (r"\bare you\b", "is {name}"),
    (r"\bhave you\b", "has {name}"),
    (r"\bwere you\b", "was {name}"),
    (r"\b(can|did|would|will|could|should) you\b", r"\1 {name}"),
    (r"\bdon't you\b", "doesn't {name}"),
    (r"\byour\b", "{name}'s"),
)


@dataclass(frozen=True, kw_only=True)
class LabelledQuery:
    """A query, the memories of its read, and which of them it rests on."""

    group: str
    """Where it is from: `question`, `said`, `topic`, `locomo` or a language."""
    name: str
    """Its dialogue or topic."""
    query: str
    """What is asked."""
    texts: tuple[str, ...]
    """The memories of the read, or all memories that recall chooses from."""
    relevant: frozenset[int]
    """Indices of the memories that the query rests on; may be empty."""

    def with_texts(self, chosen: Sequence[int]) -> "LabelledQuery":
        """The same query with some of its memories, in the order of their indices `chosen`."""
        return replace(
            self,
            texts=tuple(self.texts[at] for at in chosen),
            relevant=frozenset(i for i, at in enumerate(chosen) if at in self.relevant),
        )


def read_chats(folder: Path, *, split: str, dialogues: int) -> Iterator[LabelledQuery]:
    """Questions of people in a chat, and the memories that were written from the answers.

    Multi-Session Chat (MIT). The question is put into the third person with a name, or into the
    first as a user's. In addition, some answers are queries themselves. The memories are those of
    both persons, over all sessions.

    Args:
        folder: `msc/msc_personasummary`.
        split: `valid` to train, `test` to measure.
        dialogues: How many pairs of persons to draw.
    """
    sessions = _sessions(folder, split=split)
    draw = random.Random(split)
    for name in draw.sample(sorted(sessions), k=min(dialogues, len(sessions))):
        yield from _of_persons(sessions[name], name=name, draw=draw)


_Chat = list[tuple[int, str, list[str]]]


def _sessions(folder: Path, *, split: str) -> dict[str, list[_Chat]]:
    sessions: dict[str, list[_Chat]] = {}
    for number in (1, 2, 3, 4):
        path = folder / f"session_{number}" / f"{split}.txt"
        with path.open(encoding="utf-8") as lines:
            for at, line in enumerate(lines):
                row = json.loads(line)
                name = str(row.get("initial_data_id") or f"{number}_{at}")
                sessions.setdefault(name, []).append(_chat(row["dialog"]))
    return sessions


def _chat(dialog: Sequence[dict[str, Any]]) -> _Chat:
    return [
        (at % 2, _tidy(turn["text"]), _sentences(turn.get("persona_text") or ""))
        for at, turn in enumerate(dialog)
    ]


def _tidy(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


def _sentences(text: str) -> list[str]:
    return [_tidy(hit) for hit in _SENTENCE.findall(text)]


def _of_persons(chats: list[_Chat], *, name: str, draw: random.Random) -> Iterator[LabelledQuery]:
    memories = list(
        dict.fromkeys(
            (who, fact)
            for chat in chats
            for who, _, facts in chat
            for fact in facts
            if 3 <= len(fact.split()) <= 22
        )
    )
    names = [draw.choice(pair) for pair in draw.choices((_WOMEN, _MEN), k=2)]
    named = draw.random() < 2 / 3
    for chat in chats:
        for (_, before, _), (who, answer, facts) in itertools.pairwise(chat):
            queries = _queries(before, answer, name=names[who] if named else "", draw=draw)
            pool = [memory for memory in memories if named or memory[0] == who]
            wanted = frozenset(
                at for at, (owner, fact) in enumerate(pool) if owner == who and fact in facts
            )
            for group, query in queries if wanted else ():
                yield LabelledQuery(
                    group=group,
                    name=name,
                    query=query,
                    texts=tuple(
                        _memory(fact, names[owner] if named else "") for owner, fact in pool
                    ),
                    relevant=wanted,
                )


def _queries(
    before: str, answer: str, *, name: str, draw: random.Random
) -> Iterator[tuple[str, str]]:
    questions = [text for text in _sentences(before) if text.endswith("?")]
    if questions and 3 <= len(questions[-1].split()) <= 25 and "you" in questions[-1].lower():
        question = _asked_of(questions[-1], name) if name else _asked_by_user(questions[-1])
        yield "question", question
    if draw.random() < 0.12:
        yield "said", answer[:200]


def _asked_of(question: str, name: str) -> str:
    for pattern, text in _SECOND:
        question = re.sub(pattern, text.format(name=name), question, flags=re.IGNORECASE)
    question = re.sub(r"\byou\b", _pronouns(name).object, question, flags=re.IGNORECASE)
    return question[:1].upper() + question[1:]


def _asked_by_user(question: str) -> str:
    for pattern, text in ((r"\bare you\b", "am I"), (r"\byour\b", "my"), (r"\byou\b", "I")):
        question = re.sub(pattern, text, question, flags=re.IGNORECASE)
    return question


def _memory(fact: str, name: str) -> str:
    if name:
        return third_person(fact, name=name, pronouns=_pronouns(name))
    # Any name will do, and is then replaced.
    return third_person(fact, name="User", pronouns=SHE).replace("User", "The user", 1)


def _pronouns(name: str) -> Pronouns:
    return SHE if name in _WOMEN else HE


def read_topics(*, rounds: int = 3) -> Iterator[LabelledQuery]:
    """Requests with the memories of their topic, and some of unrelated topics; to train.

    A fifth of them has no memory of its topic at all, so that a score means the same in every read.
    """
    topics: list[dict[str, Any]] = json.loads((DATA / "topics.json").read_text("utf-8"))
    draw = random.Random("topics")
    for _ in range(rounds):
        for topic in topics:
            close = _related(topic, topics)
            others = [
                text
                for other in topics
                if other["topic"] not in close
                for text in other["memories"]
            ]
            for query in topic["queries"]:
                person = draw.choice(("The user", "The user", "Ana", "Peter", "Marta"))
                mine = draw.sample(topic["memories"], k=draw.choice((0, 1, 2, 3, 4)))
                drawn = draw.sample(others, k=draw.randint(3, 12))
                yield LabelledQuery(
                    group="topic",
                    name=topic["topic"],
                    query=query,
                    texts=tuple(text.replace("The user", person, 1) for text in (*mine, *drawn)),
                    relevant=frozenset(range(len(mine))),
                )


def read_languages(*, others: int = 9) -> Iterator[LabelledQuery]:
    """The same requests and memories in five languages, with memories of unrelated topics.

    Written by hand, 16 topics with two requests each: 32 reads per language. Never used to train.
    """
    topics: list[dict[str, Any]] = json.loads((DATA / "languages.json").read_text("utf-8"))
    draw = random.Random("languages")
    for topic in topics:
        close = _related(topic, topics)
        pool = [(other, at) for other in topics if other["topic"] not in close for at in range(3)]
        for number in range(2):
            drawn = draw.sample(pool, k=others)
            for language in LANGUAGES:
                texts = topic["texts"][language]
                foreign = [other["texts"][language]["memories"][at] for other, at in drawn]
                yield LabelledQuery(
                    group=language,
                    name=topic["topic"],
                    query=texts["queries"][number],
                    texts=(*texts["memories"], *foreign),
                    relevant=frozenset(range(3)),
                )


def _related(topic: dict[str, Any], topics: Sequence[dict[str, Any]]) -> frozenset[str]:
    back = (other["topic"] for other in topics if topic["topic"] in other["related"])
    return frozenset((topic["topic"], *topic["related"], *back))


def read_locomo(folder: Path) -> Iterator[LabelledQuery]:
    """The questions of LoCoMo, without adversarial ones, and the observations of their turns.

    Questions whose evidence is in no observation are left out. Non-commercial licence: only to
    measure, never to train.
    """
    for sample in json.loads((folder / "locomo" / "locomo10.json").read_text("utf-8")):
        texts: list[str] = []
        turns: list[set[str]] = []
        for persons in sample["observation"].values():
            for rows in persons.values():
                for text, turn in rows:
                    texts.append(text)
                    turns.append(
                        set(turn if isinstance(turn, list) else re.findall(r"D\d+:\d+", turn))
                    )
        for question in sample["qa"]:
            evidence = set(re.findall(r"D\d+:\d+", " ".join(question.get("evidence", []))))
            relevant = frozenset(at for at, ids in enumerate(turns) if ids & evidence)
            if question["category"] != _ADVERSARIAL and relevant:
                yield LabelledQuery(
                    group=f"locomo {_CATEGORIES[question['category']]}",
                    name=sample["sample_id"],
                    query=question["question"],
                    texts=tuple(texts),
                    relevant=relevant,
                )


_ADVERSARIAL = 5
_CATEGORIES = {1: "multi-hop", 2: "time", 3: "open", 4: "single"}
