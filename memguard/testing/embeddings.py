"""A deterministic embedder for tests: no model, no network, the same vectors everywhere."""

import hashlib
import math
import struct
from collections import Counter

from langchain_core.embeddings import Embeddings


class HashEmbeddings(Embeddings):
    """Embeds a text as a bag of words, in which the hash of a word gives its direction.

    Texts that share words are near each other. Others are as far apart as random directions.

    Args:
        dims: Length of a vector.
        name: The name that a store records; another name gives other directions.
    """

    def __init__(self, *, dims: int = 32, name: str = "hash") -> None:
        self.dims = dims
        self.name = name
        self.embedded: Counter[str] = Counter()
        """How often each text was embedded."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One unit vector per text."""
        self.embedded.update(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The same vector as for a document."""
        return self._vector(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same as `embed_documents`; it does not block."""
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The same as `embed_query`; it does not block."""
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        # A text without words has a direction too: a vector of zeros has no cosine.
        words = text.casefold().split() or [""]
        rows = [self._direction(word) for word in words]
        total = [sum(column) for column in zip(*rows, strict=True)]
        length = math.sqrt(sum(number * number for number in total)) or 1.0
        return [number / length for number in total]

    def _direction(self, word: str) -> list[float]:
        # `hash` differs from process to process; a digest does not.
        seed = f"{self.name}\n{word}".encode("utf-8", "surrogatepass")
        numbers = struct.unpack(f"<{self.dims}H", hashlib.shake_128(seed).digest(2 * self.dims))
        return [number / 32768.0 - 1.0 for number in numbers]
