"""Whether a sentence is supported by the turns it comes from, judged with no language model."""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from memguard.conversations.messages import ConversationLike, read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.local.embedder import MiniLmEncoder
from memguard.local.verifier.assets import PINNED, Assets, load_assets
from memguard.local.verifier.encoded import WordEncoder
from memguard.local.verifier.evidence import word_evidence
from memguard.local.verifier.features import pair_features
from memguard.local.verifier.judgement import Note, Ruling, SupportJudgement, WordEvidence
from memguard.local.verifier.retrieve import best_units
from memguard.local.verifier.sentences import Sentence, cut_candidate
from memguard.local.verifier.units import Unit, cut_text, find_subject, lay_over
from memguard.local.verifier.words import looks_foreign, same_script, split_words
from memguard.schema.memory import CandidateMemory, Turn

MAX_UNITS = 24
"""Units laid beside a candidate at most; of more, the ones that share the rarest words with it."""

_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_LINE = re.compile(r"^\s*([A-Z][\w'.-]*(?: [A-Z0-9][\w'.-]*)?): +(\S.*)$")

Candidate = str | CandidateMemory
"""A memory as proposed, or its text alone."""


@dataclass(frozen=True, kw_only=True)
class _Context:
    units: tuple[Unit, ...]
    turn_ids: tuple[str, ...]
    given: int


@dataclass(frozen=True, kw_only=True)
class _Judged:
    score: float
    words: tuple[WordEvidence, ...]
    turns: frozenset[int]


class SupportVerifier:
    """Judges whether a candidate is supported by its turns: no key, no network, some 15 ms.

    It lays the words of the candidate over those of the turns (frozen MiniLM vectors), looks at who
    stands beside whom, and lets a small network weigh that. English only. It is made for one
    sentence of a memory beside a handful of turns; what it does well and badly, with figures, is
    printed by `python -m memguard.bench.verifier`. The weak spot is a detail of the right kind from
    the wrong place of the same turn. Safe to share between threads and event loops.

    Args:
        encoder: The embedder's model, to share one that is loaded; a new one when not given.
        folder: A folder with files of your own in place of the packaged ones.
        sha256: The digest of each of those files, by name; needed with `folder`.
        cache_size: How many texts to remember the vectors of, about 30 kB for a short turn.
        threads: Threads of one run of the model, when it is not shared.
    """

    def __init__(
        self,
        *,
        encoder: MiniLmEncoder | None = None,
        folder: Path | None = None,
        sha256: dict[str, str] | None = None,
        cache_size: int = 1024,
        threads: int | None = None,
    ) -> None:
        if cache_size < 1:
            msg = f"`cache_size={cache_size!r}` remembers nothing. Pass 1 or more"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        self._encoder = encoder or MiniLmEncoder(threads=threads)
        self._folder = folder
        self._pinned = sha256 or PINNED
        self._cache_size = cache_size
        self._lock = Lock()
        self._loaded: tuple[Assets, WordEncoder] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-verifier")

    @property
    def tau(self) -> float:
        """From this score on a candidate counts as supported; chosen on held-back training data."""
        return self._load()[0].calibration.tau

    @property
    def version(self) -> str:
        """Names the weights; part of every judgement."""
        return self._load()[0].version

    def warm(self) -> str:
        """Load everything and run once; returns the version of the weights."""
        self.judge(candidate="Ana is here.", context="Ana: I am here.")
        return self.version

    def score(self, *, candidate: Candidate, context: ConversationLike) -> float:
        """Calibrated probability that the context supports the candidate.

        Args:
            candidate: The memory, or its text.
            context: A text, turns or messages, or a conversation.
        """
        return self.judge(candidate=candidate, context=context).score

    def judge(self, *, candidate: Candidate, context: ConversationLike) -> SupportJudgement:
        """The score with its ruling and, word by word, what it rests on.

        Args:
            candidate: The memory, or its text.
            context: A text, turns or messages, or a conversation.
        """
        text = candidate if isinstance(candidate, str) else candidate.text
        named = "" if isinstance(candidate, str) else candidate.subject
        source = _read_context(context)
        sentences = cut_candidate(text)
        if not sentences:
            return self._nothing("the candidate has no words", source)
        if not source.units:
            return self._nothing("the source has no words", source)
        judged = self._judge_sentences(sentences, source, named=named)
        return self._ruled(text, sentences, source, judged)

    async def ascore(self, *, candidate: Candidate, context: ConversationLike) -> float:
        """As `score`, in the verifier's own thread."""
        return (await self.ajudge(candidate=candidate, context=context)).score

    async def ajudge(self, *, candidate: Candidate, context: ConversationLike) -> SupportJudgement:
        """As `judge`, in the verifier's own thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._worker, lambda: self.judge(candidate=candidate, context=context)
        )

    def _load(self) -> tuple[Assets, WordEncoder]:
        with self._lock:
            if self._loaded is None:
                assets = load_assets(self._folder, pinned=self._pinned)
                words = WordEncoder(
                    encoder=self._encoder,
                    idf=assets.idf,
                    default_idf=assets.default_idf,
                    cache_size=self._cache_size,
                )
                self._loaded = assets, words
            return self._loaded

    def _judge_sentences(
        self, sentences: Sequence[Sentence], source: _Context, *, named: str
    ) -> list[_Judged]:
        assets, words = self._load()
        labels = [unit.speaker for unit in source.units]
        judged: list[_Judged] = []
        for sentence in sentences:
            # `Ana left. She lives in Rome.`: the second sentence is about Ana too.
            named = find_subject(sentence.text, labels, named=named)[1] or named
            chosen = best_units(
                sentence.text, source.units, limit=MAX_UNITS, idf=assets.idf,
                default=assets.default_idf,
            )  # fmt: skip
            encoded = words.encode(
                [sentence.text, *(unit.labelled for unit in chosen)],
                labels=[0, *(unit.label_words for unit in chosen)],
                dates=[None, *(unit.at for unit in chosen)],
            )
            alignment = lay_over(encoded[0], chosen, encoded[1:], named=named)
            logit = assets.head.logit(pair_features(alignment))
            judged.append(
                _Judged(
                    score=assets.calibration.probability(logit),
                    words=tuple(
                        word_evidence(alignment, chosen, source.turn_ids, start=sentence.start)
                    ),
                    turns=frozenset(unit.turn for unit in chosen),
                )
            )
        return judged

    def _ruled(
        self,
        text: str,
        sentences: Sequence[Sentence],
        source: _Context,
        judged: Sequence[_Judged],
    ) -> SupportJudgement:
        scale = self._load()[0].calibration
        score = min(each.score for each in judged)
        read = len(frozenset[int]().union(*(each.turns for each in judged)))
        whole = " ".join(unit.text for unit in source.units)
        notes = _notes(text, whole, retrieved=read < source.given, cut=len(sentences) > 1)
        ruling: Ruling = "inconclusive"
        if not {"language", "script"} & set(notes):
            ruling = "supported" if score >= scale.high else ruling
            ruling = "unsupported" if score < scale.low else ruling
        words = tuple(word for each in judged for word in each.words)
        return SupportJudgement(
            ruling=ruling,
            score=score,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason=_reason(score, words, notes),
            words=words,
            turns_read=read,
            turns_given=source.given,
            notes=notes,
            version=self.version,
        )

    def _nothing(self, reason: str, source: _Context) -> SupportJudgement:
        scale = self._load()[0].calibration
        return SupportJudgement(
            ruling="unsupported",
            score=0.0,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason=reason,
            turns_given=source.given,
            version=self.version,
        )


def _read_context(context: ConversationLike) -> _Context:
    if isinstance(context, str):
        units = _units_of_text(context)
        return _Context(units=units, turn_ids=("",) * len(units), given=len(units))
    conversation = read_conversation(context)
    turns = conversation.evidence
    units = [unit for index, turn in enumerate(turns) for unit in _units_of_turn(turn, index)]
    return _Context(units=tuple(units), turn_ids=tuple(turn.id for turn in turns), given=len(turns))


def _units_of_turn(turn: Turn, index: int) -> list[Unit]:
    label = turn.speaker or _LABELS[turn.role]
    at = turn.at.date() if turn.at else None
    return [
        Unit(speaker=label, text=piece, turn=index, at=at)
        for piece in cut_text(turn.content)
        if split_words(piece)
    ]


def _units_of_text(text: str) -> tuple[Unit, ...]:
    """A plain text by lines; a line that begins with a name and a colon is that speaker's turn."""
    units: list[Unit] = []
    lines = [line for line in text.splitlines() if split_words(line)]
    for index, line in enumerate(lines):
        hit = _LINE.match(line)
        speaker, said = (hit[1], hit[2]) if hit else ("", line.strip())
        units += [Unit(speaker=speaker, text=piece, turn=index) for piece in cut_text(said)]
    return tuple(units)


def _notes(text: str, source: str, *, retrieved: bool, cut: bool) -> tuple[Note, ...]:
    checks: tuple[tuple[Note, bool], ...] = (
        ("language", looks_foreign(text) or looks_foreign(source)),
        ("script", not same_script(text, source)),
        ("retrieved", retrieved),
        ("sentences", cut),
    )
    return tuple(note for note, applies in checks if applies)


def _reason(score: float, words: Sequence[WordEvidence], notes: Sequence[Note]) -> str:
    if {"language", "script"} & set(notes):
        return f"support {score:.2f}, but the text is not English as far as can be told"
    missing = [each.word for each in words if each.status == "missing"]
    misplaced = [each.word for each in words if each.status == "misplaced"]
    parts = [f"support {score:.2f}"]
    if missing:
        parts.append("not found: " + ", ".join(missing[:8]))
    if misplaced:
        parts.append("found beside something else: " + ", ".join(misplaced[:8]))
    return "; ".join(parts)
