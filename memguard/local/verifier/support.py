"""The support verifier: judges without a language model whether turns support a sentence."""

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
from memguard.local.verifier.context import TurnContext, read_context
from memguard.local.verifier.encoded import EncodedText, WordEncoder
from memguard.local.verifier.evidence import word_evidence
from memguard.local.verifier.features import pair_features
from memguard.local.verifier.judgement import (
    SupportJudgement,
    SupportNote,
    SupportRuling,
    WordEvidence,
)
from memguard.local.verifier.retrieve import best_units
from memguard.local.verifier.sentences import Sentence, split_candidate
from memguard.local.verifier.units import TextUnit, align_claim, find_subject
from memguard.local.verifier.words import looks_foreign, same_script
from memguard.schema.memory import CandidateMemory

MAX_UNITS = 24
"""Maximum number of units that a candidate is compared with; `best_units` chooses among more."""

Candidate = str | CandidateMemory
"""A candidate memory, or its text alone."""


@dataclass(frozen=True, kw_only=True)
class _SentenceScore:
    """What was judged of one sentence; `turns` and `retrieved` say how much context it read."""

    score: float
    words: tuple[WordEvidence, ...]
    turns: frozenset[int]
    retrieved: bool


class SupportVerifier:
    """Judges whether a candidate is supported by its turns: no key, no network, about 20 ms.

    It aligns the words of the candidate with those of the turns (frozen MiniLM vectors), checks
    whether neighbouring words were found together, and scores the result with a small network. It
    reads English only, and is meant for one sentence of a memory and a handful of turns. Its
    weakness is a detail of the right kind that the same turn states of something else; see
    `memguard bench verifier` for figures. Safe to share between threads and event loops.

    Args:
        encoder: A loaded model of the embedder to share; by default a new one.
        folder: A folder with files that replace the packaged ones.
        sha256: The SHA-256 digest of each of those files, by name; required with `folder`.
        cache_size: How many texts to cache the vectors of, about 30 kB for a short turn.
        threads: Threads of one run of the model, if it is not shared.

    Raises:
        InvalidInputError: If `cache_size` is below 1.
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
            msg = f"`cache_size={cache_size!r}` would cache nothing: pass 1 or more"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        self._encoder = encoder or MiniLmEncoder(threads=threads)
        self._folder = folder
        self._pinned = sha256 or PINNED
        self._cache_size = cache_size
        self._lock = Lock()
        self._loaded: tuple[Assets, WordEncoder] | None = None
        # One worker: runs of the model would compete for the same cores.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-verifier")

    @property
    def tau(self) -> float:
        """Scores at or above this count as support; chosen on held-out training data."""
        return self._load()[0].calibration.tau

    @property
    def version(self) -> str:
        """Identifies the weights; part of every judgement."""
        return self._load()[0].version

    def warm(self) -> str:
        """Load the weights and run once, so that the first judgement is fast; returns `version`."""
        self.judge(candidate="Ana is here.", context="Ana: I am here.")
        return self.version

    def score(self, *, candidate: Candidate, context: ConversationLike) -> float:
        """Calibrated probability in [0, 1] that the context supports the candidate.

        Args:
            candidate: The memory, or its text.
            context: A text, turns or messages, or a conversation.

        Raises:
            ConfigurationError: If the weights are missing, or are not the pinned ones.
            InvalidInputError: If the context cannot be read as a conversation.
        """
        return self.judge(candidate=candidate, context=context).score

    def judge(self, *, candidate: Candidate, context: ConversationLike) -> SupportJudgement:
        """The score with its ruling and the evidence for each word.

        A candidate of several sentences gets the score of its weakest sentence.

        Args:
            candidate: The memory, or its text.
            context: A text, turns or messages, or a conversation.

        Raises:
            ConfigurationError: If the weights are missing, or are not the pinned ones.
            InvalidInputError: If the context cannot be read as a conversation.
        """
        text = candidate if isinstance(candidate, str) else candidate.text
        subject = "" if isinstance(candidate, str) else candidate.subject
        source = read_context(context)
        sentences = split_candidate(text)
        if not sentences:
            return self._unsupported("the candidate has no words", source)
        if not source.units:
            return self._unsupported("the source has no words", source)
        judged = self._judge_sentences(sentences, source, subject=subject)
        return self._rule(text, source, judged)

    def prepare(self, *, context: ConversationLike) -> int:
        """Encode turns in advance, so that the first judgement on them is fast.

        Args:
            context: A text, turns or messages, or a conversation.

        Returns:
            How many turns the context has.
        """
        source = read_context(context)
        self._encode(source.units)
        return source.turn_count

    async def aprepare(self, *, context: ConversationLike) -> int:
        """Like `prepare`, in the verifier's worker thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, lambda: self.prepare(context=context))

    async def ascore(self, *, candidate: Candidate, context: ConversationLike) -> float:
        """Like `score`, in the verifier's worker thread."""
        return (await self.ajudge(candidate=candidate, context=context)).score

    async def ajudge(self, *, candidate: Candidate, context: ConversationLike) -> SupportJudgement:
        """Like `judge`, in the verifier's worker thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._worker, lambda: self.judge(candidate=candidate, context=context)
        )

    def _load(self) -> tuple[Assets, WordEncoder]:
        # Under the lock, so that two threads that begin together load the weights once.
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

    def _encode(self, units: Sequence[TextUnit]) -> list[EncodedText]:
        return self._load()[1].encode(
            [unit.labelled for unit in units],
            labels=[unit.label_words for unit in units],
            dates=[unit.at for unit in units],
        )

    def _judge_sentences(
        self, sentences: Sequence[Sentence], source: TurnContext, *, subject: str
    ) -> list[_SentenceScore]:
        assets = self._load()[0]
        labels = [unit.speaker for unit in source.units]
        judged: list[_SentenceScore] = []
        for sentence in sentences:
            # `Ana left. She lives in Rome.`: the second sentence is about Ana too.
            subject = find_subject(sentence.text, labels, named=subject)[1] or subject
            chosen = best_units(
                sentence.text, source.units, limit=MAX_UNITS, idf=assets.idf,
                default=assets.default_idf,
            )  # fmt: skip
            encoded = self._encode([TextUnit(speaker="", text=sentence.text), *chosen])
            alignment = align_claim(encoded[0], chosen, encoded[1:], named=subject)
            features = pair_features(alignment)
            logit = assets.head.logit(features)
            judged.append(
                _SentenceScore(
                    score=assets.calibration.score(logit, lacks_detail=features.lacks_detail),
                    words=tuple(
                        word_evidence(alignment, chosen, source.turn_ids, start=sentence.start)
                    ),
                    turns=frozenset(unit.turn for unit in chosen),
                    retrieved=len(chosen) < len(source.units),
                )
            )
        return judged

    def _rule(
        self, text: str, source: TurnContext, judged: Sequence[_SentenceScore]
    ) -> SupportJudgement:
        scale = self._load()[0].calibration
        score = min(sentence.score for sentence in judged)
        turns = frozenset[int]().union(*(sentence.turns for sentence in judged))
        retrieved = any(sentence.retrieved for sentence in judged)
        notes = _notes(text, source.units, retrieved=retrieved, split=len(judged) > 1)
        ruling: SupportRuling = "inconclusive"
        # The weights have seen English only: of another language a score means nothing.
        if not {"language", "script"} & set(notes):
            ruling = "supported" if score >= scale.high else ruling
            ruling = "unsupported" if score < scale.low else ruling
        words = tuple(word for sentence in judged for word in sentence.words)
        return SupportJudgement(
            ruling=ruling,
            score=score,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason=_reason(score, words, notes),
            words=words,
            turns_read=len(turns),
            turns_given=source.turn_count,
            notes=notes,
            version=self.version,
        )

    def _unsupported(self, reason: str, source: TurnContext) -> SupportJudgement:
        scale = self._load()[0].calibration
        return SupportJudgement(
            ruling="unsupported",
            score=0.0,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason=reason,
            turns_given=source.turn_count,
            version=self.version,
        )


def _notes(
    text: str, units: Sequence[TextUnit], *, retrieved: bool, split: bool
) -> tuple[SupportNote, ...]:
    source = " ".join(unit.text for unit in units)
    checks: tuple[tuple[SupportNote, bool], ...] = (
        ("language", looks_foreign(text) or looks_foreign(source)),
        ("script", not same_script(text, source)),
        ("retrieved", retrieved),
        ("sentences", split),
    )
    return tuple(note for note, applies in checks if applies)


def _reason(score: float, words: Sequence[WordEvidence], notes: Sequence[SupportNote]) -> str:
    if {"language", "script"} & set(notes):
        return f"support {score:.2f}, but the text is probably not English"
    missing = [evidence.word for evidence in words if evidence.status == "missing"]
    misplaced = [evidence.word for evidence in words if evidence.status == "misplaced"]
    parts = [f"support {score:.2f}"]
    if missing:
        parts.append("not found: " + ", ".join(missing[:8]))
    if misplaced:
        parts.append("stated of something else: " + ", ".join(misplaced[:8]))
    return "; ".join(parts)
