"""What the write guard stores without a language model, from conversations and of swapped pairs."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from typing import Any

from langgraph.store.memory import InMemoryStore

from benchmarks.local.sets import LabelledConversation, Span, SupportPair
from memguard import create_write_guard
from memguard.journal.journal import Journal
from memguard.schema.memory import Conversation
from memguard.schema.receipt import Receipt, WriteOutcome

# Words, and each Chinese character, because no spaces separate Chinese words.
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_SHARE = 0.6
"""Of the words of a span or of a candidate, at least so many in one run are a match."""
_OLD_SHARE = 0.9
"""The same for an old value, most of whose words are those of its correction, and for a fragment,
whose words are also in the sentence that completes it."""
HELD: frozenset[WriteOutcome] = frozenset({"quarantined"})
STORED: frozenset[WriteOutcome] = frozenset({"stored"})


@dataclass(frozen=True, kw_only=True)
class StoredText:
    """One text that was stored from a conversation, and what it is by the labels."""

    conversation: LabelledConversation
    text: str
    verdict: str
    """`keep`, `either`, a kind of wrong text, or `unlabelled`."""


@dataclass(frozen=True, kw_only=True)
class KeptSpan:
    """A statement that a careful reader would keep, and what became of it."""

    conversation: LabelledConversation
    span: Span
    outcome: str
    """`stored`, `held` or `lost`."""


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """The decision on one support pair."""

    pair: SupportPair
    outcome: str
    explanation: str


def _guard() -> Any:
    return create_write_guard(
        "local",
        namespace=("memories", "{user_id}"),
        store=InMemoryStore(),
        receipts=Journal.memory(),
    )


def measure_conversations(
    conversations: Sequence[LabelledConversation],
) -> tuple[list[StoredText], list[KeptSpan]]:
    """Write every conversation into an empty namespace of its own."""
    guard = _guard()
    stored: list[StoredText] = []
    spans: list[KeptSpan] = []
    for conversation in conversations:
        value = {"conversation": Conversation(id=conversation.id, turns=conversation.turns)}
        writes = guard.invoke(value, context={"user_id": conversation.id})["writes"]
        receipts: tuple[Receipt, ...] = writes.receipts
        stored += [
            StoredText(
                conversation=conversation,
                text=receipt.candidate.text,
                verdict=verdict_of(receipt, conversation),
            )
            for receipt in receipts
            if receipt.outcome in STORED
        ]
        spans += [
            KeptSpan(conversation=conversation, span=span, outcome=_outcome_of(span, receipts))
            for span in conversation.spans
            if span.verdict == "keep"
        ]
    return stored, spans


def verdict_of(receipt: Receipt, conversation: LabelledConversation) -> str:
    """What a stored text is by the labels of the turns that it cites."""
    candidate = _words(_without_speaker(receipt.candidate.text, conversation))
    cited = [span for span in conversation.spans if span.turn in receipt.candidate.turn_ids]
    matches = [span for span in cited if _is_match(span, candidate)]
    if not matches:
        return "unlabelled"
    # The span that is most like the text; of equally similar ones, the wrong one.
    best = max(matches, key=lambda span: (_similarity(span, candidate), span.verdict == "wrong"))
    if best.verdict == "wrong":
        return best.kind
    # A text that also contains a wrong sentence is wrong, unless the labelled part contains it,
    # as in: he says that I work too much.
    contained = [
        span
        for span in matches
        if span.verdict == "wrong"
        and _run(_words(span.text), candidate) >= _OLD_SHARE * len(_words(span.text))
        and span.text not in best.text
    ]
    return contained[0].kind if contained else best.verdict


def _is_match(span: Span, candidate: list[str]) -> bool:
    words = _words(span.text)
    run = _run(words, candidate)
    if not run:
        return False
    if span.kind in {"old_value", "fragment"}:
        return run >= _OLD_SHARE * len(words)
    return run >= _SHARE * len(words) or run >= _OLD_SHARE * len(candidate)


def _similarity(span: Span, candidate: list[str]) -> float:
    words = _words(span.text)
    return _run(words, candidate) / max(len(words), len(candidate))


def _without_speaker(text: str, conversation: LabelledConversation) -> str:
    # The local writer names the speaker first: `Ana: I live in Porto.`
    for speaker in {turn.speaker for turn in conversation.turns if turn.speaker}:
        text = text.removeprefix(f"{speaker}: ")
    return text


def _outcome_of(span: Span, receipts: Sequence[Receipt]) -> str:
    words = _words(span.text)

    def is_in(outcomes: frozenset[WriteOutcome]) -> bool:
        # Half of the words, of all candidates together: a sentence may be stored by clauses.
        covered: set[int] = set()
        for receipt in receipts:
            if receipt.outcome in outcomes and span.turn in receipt.candidate.turn_ids:
                block = _longest(words, _words(receipt.candidate.text))
                covered.update(range(block.a, block.a + block.size))
        return 2 * len(covered) >= len(words)

    if is_in(STORED):
        return "stored"
    return "held" if is_in(STORED | HELD) else "lost"


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _run(words: list[str], others: list[str]) -> int:
    """The number of words in the longest run that both have."""
    return _longest(words, others).size


def _longest(words: list[str], others: list[str]) -> Match:
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    return matcher.find_longest_match(0, len(words), 0, len(others))


def measure_swaps(pairs: Sequence[SupportPair]) -> tuple[list[PairResult], float]:
    """Judge every pair.

    Returns:
        The decisions, and the mean CPU milliseconds of the write guard for a candidate, its turns
        embedded for the first time.
    """
    guard = _guard()
    results: list[PairResult] = []
    seconds: list[float] = []
    for pair in pairs:
        user_turns = [turn.id for turn in pair.turns if turn.role == "user"]
        value = {
            "conversation": Conversation(id=pair.id, turns=pair.turns),
            "candidates": [{"text": pair.candidate, "turn_ids": user_turns}],
        }
        start = time.process_time()
        writes = guard.invoke(value, context={"user_id": pair.id})["writes"]
        seconds.append(time.process_time() - start)
        (receipt,) = writes.receipts
        results.append(
            PairResult(pair=pair, outcome=receipt.outcome, explanation=receipt.decision.explanation)
        )
    # The first run loads the models.
    return results, 1000 * sum(seconds[1:]) / max(1, len(seconds) - 1)
