"""The support verifier: judges whether turns support a candidate, and explains it word by word.

`SupportJudgement` is the result, `SupportVerifier` computes it with the parts of this folder, and
`_word_evidence` says for each word that carries a detail where the context states it.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from memguard.conversations.messages import ConversationLike
from memguard.errors import ErrorCode, InvalidInputError
from memguard.local.encoder import MiniLmEncoder
from memguard.local.verifier.alignment import Alignment
from memguard.local.verifier.binding import BindingCheck, check_binding
from memguard.local.verifier.encoded import EncodedText, WordEncoder
from memguard.local.verifier.features import pair_features
from memguard.local.verifier.head import PINNED, Assets, load_assets
from memguard.local.verifier.numbers import is_stated, values_of
from memguard.local.verifier.ownership import (
    OwnerCheck,
    candidate_clauses,
    check_owners,
    is_of_user,
    is_restated,
    map_clauses,
    recognise_owners,
)
from memguard.local.verifier.rephrasing import Restatement, find_restatement
from memguard.local.verifier.units import (
    Sentence,
    TextUnit,
    TurnContext,
    UnitIndex,
    align_claim,
    best_units,
    find_subject,
    read_context,
    split_candidate,
)
from memguard.local.verifier.words import Flags, looks_foreign, same_script
from memguard.schema.base import Frozen
from memguard.schema.memory import CandidateMemory

VerifierRuling = Literal["supported", "unsupported", "inconclusive"]
"""What the score means; `inconclusive` leaves the decision to a reviewer or a language model."""
WordStatus = Literal["stated", "reworded", "misplaced", "missing"]
"""How a word was found. `stated`: the same word or value. `reworded`: a similar word. `misplaced`:
it is there, but said of something else. `missing`: nothing similar."""
SupportNote = Literal["language", "script", "retrieved", "sentences", "owner", "binding"]
"""What limits a judgement. `language`: the text does not seem to be English. `script`: source and
candidate use different scripts. `retrieved`: only some turns were read. `sentences`: the candidate
was split, and its weakest sentence counts. `owner`: it is stated of somebody else, or it cannot be
told of whom. `binding`: its details are stated, but not of one another."""
Candidate = str | CandidateMemory
"""A candidate memory, or its text alone."""
MAX_CANDIDATE_CHARS = 10_000
"""A longer candidate is not judged, but inconclusive; the gates refuse one of more than 2,000."""
MAX_UNITS = 24
"""Maximum number of units that a candidate is compared with; `best_units` chooses among more."""
# Shown to readers only: neither threshold enters the score. Chosen by hand.
_REWORDED_COSINE = 0.4
_MISPLACED_PULL = 0.25
# How far below a bound a score is put that a rule corrects.
_STEP = 0.01
# Share of a sentence whose owner is unclear from which its score is put below the threshold.
_MOSTLY = 0.8
# A sentence of which one clause of its owner states this share needs a lower score only; chosen
# on the development pairs.
_MOST_STATED = 0.7
_CLOSE = 0.6


class WordEvidence(Frozen):
    """One word of a candidate, and the word of the context that matches it."""

    word: str
    """The word as written."""
    start: int
    """Offset in the candidate, in characters."""
    status: WordStatus
    """How it was found."""
    source_word: str = ""
    """The matching word of the context; empty when missing."""
    turn_id: str = ""
    """The turn that word is in; empty when missing or when the source has no turns."""


class SupportJudgement(Frozen):
    """Whether a candidate is supported by its source turns, with the evidence for it."""

    ruling: VerifierRuling
    """What the score means."""
    score: float
    """Calibrated probability of support in [0, 1], on the assumption that half of all candidates
    are wrong."""
    tau: float
    """The threshold of `supported`: a score at or above it counts as support."""
    band: tuple[float, float]
    """Lower and upper end of the scores, around `tau`, whose ruling is `inconclusive`."""
    reason: str
    """The ruling explained in one sentence."""
    words: tuple[WordEvidence, ...] = ()
    """The words that carry a detail, in the order of the candidate."""
    turns_read: int = 0
    """How many turns the candidate was compared with."""
    turns_given: int = 0
    """How many turns the caller passed."""
    notes: tuple[SupportNote, ...] = ()
    """What a reader should know before trusting the score."""
    version: str
    """Identifies the weights."""

    @property
    def supported(self) -> bool:
        """Whether the score reaches `tau`, for callers that need a yes or no."""
        return self.score >= self.tau

    @property
    def unsupported_words(self) -> tuple[str, ...]:
        """The words with the status `missing` or `misplaced`."""
        lacking = {"missing", "misplaced"}
        return tuple(evidence.word for evidence in self.words if evidence.status in lacking)


@dataclass(frozen=True, kw_only=True)
class _SentenceScore:
    """The result for one sentence; `turns` and `retrieved` say how much context it read."""

    score: float
    words: tuple[WordEvidence, ...]
    turns: frozenset[int]
    retrieved: bool
    owners: OwnerCheck
    binding: BindingCheck
    restated: bool
    restatement: Restatement

    def is_repeated(self, problems: Sequence["_Problem"]) -> bool:
        """Whether a clause of the owner states it, so that the score need not decide."""
        if self.restatement.is_foreign:
            # Names and vectors of other languages mislead the checks of the details.
            return self.restatement.share >= 1.0 and self.binding.binding != "denied"
        whole = self.restatement.share >= 1.0 and self.binding.binding == "bound"
        whole &= not self.restatement.is_unreal
        if problems:
            return whole
        close = self.restatement.share >= _MOST_STATED and self.score >= _CLOSE
        return self.restated or close or whole


class SupportVerifier:
    """Judges whether a candidate is supported by its turns: no key, no network, about 20 ms.

    It aligns the words of the candidate with those of the turns (frozen MiniLM vectors), checks
    whether neighbouring words were found together, and scores the result with a small network. It
    reads English only, and is meant for one sentence of a memory and a handful of turns. Its
    weakness is a detail of the right kind that the same turn states of something else; see
    `docs/guides/local.md` for figures. Safe to share between threads and event loops.

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
        self._latest: UnitIndex | None = None
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
        """Calibrated probability in [0, 1] that the context supports the candidate; see `judge`."""
        return self.judge(candidate=candidate, context=context).score

    def judge(self, *, candidate: Candidate, context: ConversationLike) -> SupportJudgement:
        """The score with its ruling and the evidence for each word.

        A candidate of several sentences gets the score of its weakest sentence. One of more than
        10,000 characters is inconclusive.

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
        if len(text) > MAX_CANDIDATE_CHARS:
            reason = f"the candidate has {len(text)} characters, more than {MAX_CANDIDATE_CHARS}"
            return self._without_score("inconclusive", reason, source)
        sentences = split_candidate(text)
        if not sentences:
            return self._without_score("unsupported", "the candidate has no words", source)
        if not source.units:
            return self._without_score("unsupported", "the source has no words", source)
        judged = self._judge_sentences(text, sentences, source, subject=subject)
        return self._rule(text, source, judged)

    def prepare(self, *, context: ConversationLike) -> int:
        """Encode turns in advance, so that the first judgement on them is fast.

        Returns:
            How many turns the context has.
        """
        source = read_context(context)
        self._encode(source.units)
        return len(source.turn_ids)

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
        self, text: str, sentences: Sequence[Sentence], source: TurnContext, *, subject: str
    ) -> list[_SentenceScore]:
        claim = candidate_clauses(text, source.units)
        about_user = any(is_of_user(clause.owner) for clause in claim)
        assets = self._load()[0]
        labels = list(dict.fromkeys(unit.speaker for unit in source.units))
        index = self._index_of(source)
        judged: list[_SentenceScore] = []
        for sentence in sentences:
            # `Ana left. She lives in Rome.`: the second sentence is about Ana too.
            subject = find_subject(sentence.text, labels, named=subject)[1] or subject
            chosen = source.units
            if index is not None:
                chosen = best_units(
                    sentence.text, index, limit=MAX_UNITS, idf=assets.idf,
                    default=assets.default_idf,
                )  # fmt: skip
            encoded = self._encode([TextUnit(speaker="", text=sentence.text), *chosen])
            alignment = align_claim(encoded[0], chosen, encoded[1:], named=subject)
            features = pair_features(alignment)
            logit = assets.head.logit(features)
            clauses = map_clauses(alignment, chosen, about_user=about_user)
            claim = recognise_owners(claim, clauses)
            judged.append(
                _SentenceScore(
                    owners=check_owners(alignment, clauses, claim=claim, start=sentence.start),
                    binding=check_binding(alignment, clauses, claim=claim),
                    restated=not features.lacks_detail
                    and is_restated(alignment, clauses, claim=claim, start=sentence.start),
                    restatement=find_restatement(
                        clauses,
                        claim=claim,
                        start=sentence.start,
                        end=sentence.start + len(sentence.text),
                        text=text,
                    ),
                    score=assets.calibration.score(logit, lacks_detail=features.lacks_detail),
                    words=_word_evidence(alignment, chosen, source.turn_ids, start=sentence.start),
                    turns=frozenset(unit.turn for unit in chosen),
                    retrieved=len(chosen) < len(source.units),
                )
            )
        return judged

    def _index_of(self, source: TurnContext) -> UnitIndex | None:
        """The index of a context with more units than a sentence is compared with."""
        if len(source.units) <= MAX_UNITS:
            return None
        latest = self._latest
        # The candidates of one run have one source, and reading a book takes seconds.
        if latest is None or latest.units != source.units:
            latest = self._latest = UnitIndex.of(source.units)
        return latest

    def _rule(
        self, text: str, source: TurnContext, judged: Sequence[_SentenceScore]
    ) -> SupportJudgement:
        scale = self._load()[0].calibration
        score = min(sentence.score for sentence in judged)
        turns = frozenset[int]().union(*(sentence.turns for sentence in judged))
        retrieved = any(sentence.retrieved for sentence in judged)
        notes: tuple[SupportNote, ...] = _notes(
            text, source.units, retrieved=retrieved, split=len(judged) > 1
        )
        problems = [problem for sentence in judged for problem in _problems(sentence)]
        added: dict[SupportNote, None] = dict.fromkeys(problem.note for problem in problems)
        notes = (*notes, *added)
        if any(sentence.restatement.is_foreign for sentence in judged) and "language" not in notes:
            notes = (*notes, "language")
        is_wrong = any(problem.is_certain for problem in problems)
        repeated = all(sentence.is_repeated(problems) for sentence in judged)
        if repeated:
            score = max(score, scale.high)
            # Found by rules that know the language, unlike the weights.
            dropped: set[SupportNote] = {"language", "script", *added}
            notes = tuple[SupportNote, ...](note for note in notes if note not in dropped)
            problems = []
        elif is_wrong:
            score = min(score, scale.low - _STEP)
        elif any(problem.is_grave for problem in problems):
            # Below the threshold, so that a caller who only compares scores does not admit it.
            score = min(score, scale.tau - _STEP)
        ruling: VerifierRuling = "inconclusive"
        # The weights have seen English only: of another language a score means nothing.
        if not {"language", "script"} & set(notes):
            ruling = "supported" if score >= scale.high else ruling
            ruling = "unsupported" if score < scale.low else ruling
        if problems and ruling == "supported":
            ruling = "inconclusive"
        words = tuple(word for sentence in judged for word in sentence.words)
        return SupportJudgement(
            ruling=ruling,
            score=score,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason="; ".join([_reason(score, words, notes), *(p.reason for p in problems)]),
            words=words,
            turns_read=len(turns),
            turns_given=len(source.turn_ids),
            notes=notes,
            version=self.version,
        )

    def _without_score(
        self, ruling: VerifierRuling, reason: str, source: TurnContext
    ) -> SupportJudgement:
        scale = self._load()[0].calibration
        return SupportJudgement(
            ruling=ruling,
            score=0.0,
            tau=scale.tau,
            band=(scale.low, scale.high),
            reason=reason,
            turns_given=len(source.turn_ids),
            version=self.version,
        )


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a sentence is not supported although its words are there."""

    note: SupportNote
    reason: str
    is_certain: bool
    is_grave: bool = True
    """Whether the score must not reach the threshold."""


def _problems(sentence: _SentenceScore) -> list[_Problem]:
    owners, binding = sentence.owners, sentence.binding
    problems: list[_Problem] = []
    if owners.ownership == "other":
        reason = f"said of {owners.stated_of!r}, not of {owners.owner!r}"
        problems.append(_Problem("owner", reason, is_certain=True))
    elif owners.ownership == "unclear":
        reason = f"unclear whether it is said of {owners.owner!r}"
        is_grave = owners.share >= _MOSTLY
        problems.append(_Problem("owner", reason, is_certain=False, is_grave=is_grave))
    if sentence.restatement.is_unreal:
        problems.append(
            _Problem("binding", "stated as past, a wish or a possibility", is_certain=False)
        )
    if binding.binding != "bound":
        words = ", ".join(binding.words)
        denied = binding.binding == "denied"
        reason = f"stated as not so: {words}" if denied else f"not stated together: {words}"
        problems.append(_Problem("binding", reason, is_certain=denied))
    return problems


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
    parts = [f"support {score:.2f}"]
    for status, heading in (("missing", "not found"), ("misplaced", "stated of something else")):
        matches = [evidence.word for evidence in words if evidence.status == status]
        if matches:
            parts.append(f"{heading}: " + ", ".join(matches[:8]))
    return "; ".join(parts)


def _word_evidence(
    alignment: Alignment, units: Sequence[TextUnit], turn_ids: Sequence[str], *, start: int
) -> tuple[WordEvidence, ...]:
    """Evidence for every word that carries a detail; `start` is the sentence's offset."""
    spans = [span for unit in alignment.sources for span in unit.encoded.words.spans]
    pooled = np.zeros(len(spans), dtype=bool)
    pooled[alignment.pool] = True
    evidence: list[WordEvidence] = []
    for row in np.flatnonzero((alignment.weight > 0) | alignment.fact.words.negation):
        span = alignment.fact.words.spans[int(row)]
        column, status = _locate(alignment, int(row), pooled)
        missing = status == "missing"
        turn = units[int(alignment.unit[column])].turn
        evidence.append(
            WordEvidence(
                word=span.text,
                start=start + span.start,
                status=status,
                source_word="" if missing else spans[column].text,
                turn_id="" if missing else turn_ids[turn],
            )
        )
    return tuple(evidence)


def _locate(alignment: Alignment, row: int, pooled: Flags) -> tuple[int, WordStatus]:
    words = alignment.fact.words
    same = alignment.same[row]
    columns = _with_value(alignment, row) if words.number[row] else np.flatnonzero(same)
    if len(columns):
        # Prefer the two best units: another turn may use the same word in another sense.
        near = columns[pooled[columns]]
        candidates = near if len(near) else columns
        column = int(candidates[np.argmax(alignment.cos[row, candidates])])
        details = words.number[row] or words.capital[row]
        misplaced = details and alignment.roles.rival_pull[row] >= _MISPLACED_PULL
        return column, "misplaced" if misplaced else "stated"
    column = int(alignment.cos[row].argmax())
    # "Lyon" is near to "Paris" as a vector: a number, a name or a negation must be there itself.
    exact = words.number[row] or words.capital[row] or words.negation[row]
    similar = alignment.cos[row, column] >= _REWORDED_COSINE and not exact
    return column, "reworded" if similar else "missing"


def _with_value(alignment: Alignment, row: int) -> np.ndarray:
    """Positions of context words that state the candidate's number, or a part of its date."""
    number = alignment.fact.words.readings[row]
    units = [source.encoded.words for source in alignment.sources]
    values = [values_of(reading) for words in units for reading in words.readings]
    matches = [index for index, stated in enumerate(values) if is_stated(number, stated)]
    if not matches and is_stated(number, frozenset[str]().union(*values)):
        # `1990-03-03` is found in the three words of `3 March 1990`.
        parts = values_of(number)
        matches = [index for index, stated in enumerate(values) if stated & parts]
    return np.array(matches, dtype=np.int64)
