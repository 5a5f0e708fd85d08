"""Whether a sentence is supported by the turns it comes from, judged with no language model."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from memguard.conversations.messages import ConversationLike
from memguard.errors import ErrorCode, InvalidInputError
from memguard.local.embedder import MiniLmEncoder
from memguard.local.verifier.assets import PINNED, Assets, load_assets
from memguard.local.verifier.context import Context, read_context
from memguard.local.verifier.encoded import Encoded, WordEncoder
from memguard.local.verifier.evidence import word_evidence
from memguard.local.verifier.features import pair_features
from memguard.local.verifier.judgement import Note, Ruling, SupportJudgement, WordEvidence
from memguard.local.verifier.retrieve import best_units
from memguard.local.verifier.sentences import Sentence, cut_candidate
from memguard.local.verifier.units import Unit, find_subject, lay_over
from memguard.local.verifier.words import looks_foreign, same_script
from memguard.schema.memory import CandidateMemory

MAX_UNITS = 24
"""Units laid beside a candidate at most; of more, the ones that share the rarest words with it."""

Candidate = str | CandidateMemory
"""A memory as proposed, or its text alone."""


@dataclass(frozen=True, kw_only=True)
class _Judged:
    score: float
    words: tuple[WordEvidence, ...]
    turns: frozenset[int]
    retrieved: bool


class SupportVerifier:
    """Judges whether a candidate is supported by its turns: no key, no network, some 20 ms.

    It lays the words of the candidate over those of the turns (frozen MiniLM vectors), looks at who
    stands beside whom, and lets a small network weigh that. English only. It is made for one
    sentence of a memory beside a handful of turns; what it does well and badly, with figures, is
    printed by `memguard bench verifier`. The weak spot is a detail of the right kind from
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
        source = read_context(context)
        sentences = cut_candidate(text)
        if not sentences:
            return self._nothing("the candidate has no words", source)
        if not source.units:
            return self._nothing("the source has no words", source)
        judged = self._judge_sentences(sentences, source, named=named)
        return self._ruled(text, sentences, source, judged)

    def prepare(self, *, context: ConversationLike) -> int:
        """Encode turns as they arrive, so that the first judgement on them need not.

        Args:
            context: A text, turns or messages, or a conversation.

        Returns:
            How many turns were given.
        """
        source = read_context(context)
        self._encode(source.units)
        return source.given

    async def aprepare(self, *, context: ConversationLike) -> int:
        """As `prepare`, in the verifier's own thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, lambda: self.prepare(context=context))

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

    def _encode(self, units: Sequence[Unit]) -> list[Encoded]:
        return self._load()[1].encode(
            [unit.labelled for unit in units],
            labels=[unit.label_words for unit in units],
            dates=[unit.at for unit in units],
        )

    def _judge_sentences(
        self, sentences: Sequence[Sentence], source: Context, *, named: str
    ) -> list[_Judged]:
        assets = self._load()[0]
        labels = [unit.speaker for unit in source.units]
        judged: list[_Judged] = []
        for sentence in sentences:
            # `Ana left. She lives in Rome.`: the second sentence is about Ana too.
            named = find_subject(sentence.text, labels, named=named)[1] or named
            chosen = best_units(
                sentence.text, source.units, limit=MAX_UNITS, idf=assets.idf,
                default=assets.default_idf,
            )  # fmt: skip
            encoded = self._encode([Unit(speaker="", text=sentence.text), *chosen])
            alignment = lay_over(encoded[0], chosen, encoded[1:], named=named)
            features = pair_features(alignment)
            logit = assets.head.logit(features)
            judged.append(
                _Judged(
                    score=assets.calibration.score(logit, lacks_detail=features.lacks_detail),
                    words=tuple(
                        word_evidence(alignment, chosen, source.turn_ids, start=sentence.start)
                    ),
                    turns=frozenset(unit.turn for unit in chosen),
                    retrieved=len(chosen) < len(source.units),
                )
            )
        return judged

    def _ruled(
        self,
        text: str,
        sentences: Sequence[Sentence],
        source: Context,
        judged: Sequence[_Judged],
    ) -> SupportJudgement:
        scale = self._load()[0].calibration
        score = min(each.score for each in judged)
        read = len(frozenset[int]().union(*(each.turns for each in judged)))
        retrieved = any(each.retrieved for each in judged)
        notes = _notes(text, source.units, retrieved=retrieved, cut=len(sentences) > 1)
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

    def _nothing(self, reason: str, source: Context) -> SupportJudgement:
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


def _notes(text: str, units: Sequence[Unit], *, retrieved: bool, cut: bool) -> tuple[Note, ...]:
    source = " ".join(unit.text for unit in units)
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
