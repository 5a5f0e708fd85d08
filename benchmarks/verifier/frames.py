"""Words that can replace one another, because they occur in the same contexts of a corpus."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from memguard.local.verifier import lexicon
from memguard.local.verifier.words import split_words, stem


@dataclass(frozen=True)
class Frames:
    """Words by the contexts in which they occur in a corpus."""

    counts: Counter[str]
    """How often each word occurs."""
    fillers: Mapping[tuple[str, str, str], frozenset[str]]
    """Words by their frame: the two words before and the one after."""

    def like(self, word: str, frame: tuple[str, str, str]) -> frozenset[str]:
        """Other words that occur in the same frame."""
        return self.fillers.get(frame, frozenset()) - {word}


def read_frames(texts: Iterable[str]) -> Frames:
    """Count words and frames over a corpus of short sentences."""
    counts: Counter[str] = Counter()
    fillers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for text in texts:
        words = [span.text.lower() for span in split_words(text)]
        counts.update(words)
        for index, word in enumerate(words):
            if word in lexicon.STOP or not word.isalpha():
                continue
            fillers[frame_at(words, index)].add(word)
    return Frames(
        counts=counts,
        fillers={key: frozenset(value) for key, value in fillers.items()},
    )


def frame_at(words: Sequence[str], index: int) -> tuple[str, str, str]:
    """The two words before a position and the one after it, in first and third person alike."""
    # Empty words at the edges: a sentence's first and last word have a frame too.
    padded = ["", "", *words, ""]
    second_before, before, after = padded[index], padded[index + 1], padded[index + 3]
    return _plain(second_before), _plain(before), _plain(after)


@cache
def _plain(word: str) -> str:
    return _PERSONS.get(word) or stem(word)


_PERSONS = {
    "has": "have", "have": "have", "is": "be", "am": "be", "are": "be", "i'm": "be",
    "does": "do", "do": "do", "doesn't": "don't", "don't": "don't", "his": "my", "her": "my",
    "their": "my", "my": "my", "he": "i", "she": "i", "they": "i", "i": "i", "i've": "have",
}  # fmt: skip
