"""The list of namespaces: what exists below a prefix, without asking Chroma for its collections."""

import hashlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from memguard.schema.base import Namespace
from memguard.stores.chroma.collections import Collections
from memguard.stores.chroma.connection import Connection
from memguard.stores.chroma.namespaces import decode_namespace, encode_namespace, is_under
from memguard.stores.chroma.resident import as_matrix, spread_vector
from memguard.stores.chroma.values import NS

_PREFIXES = "pfx"
_MORTAL = "mortal"
_DIMS = 4
_PAGE = 5_000


class Catalogue:
    """One row per namespace that holds an item.

    The sole writer of a path mirrors the rows in memory. Beside other writers every answer is read
    from the server: another client may have added a namespace a moment ago.
    """

    def __init__(self, connection: Connection, collections: Collections) -> None:
        self._connection = connection
        self._collections = collections
        self._lock = threading.Lock()
        self._known: dict[Namespace, bool] = {}
        self._below: dict[Namespace, set[Namespace]] = {}
        """Known namespaces by every prefix of theirs: a scan of 10,000 costs more than a search."""

    def load(self) -> None:
        """Read the mirror of the sole writer."""
        if not self._connection.is_shared:
            self._learn(self._read(None))

    def under(self, prefix: Namespace) -> list[Namespace]:
        """Namespaces at or below a prefix, in order."""
        if self._connection.is_shared:
            found = self._read(prefix)
            with self._lock:
                self._learn(found)
            return sorted(found)
        with self._lock:
            return sorted(self._below.get(prefix, ()))

    def mortal(self, namespaces: Iterable[Namespace]) -> set[Namespace]:
        """Those, of namespaces `under` has just given, in which an item may expire."""
        with self._lock:
            return {each for each in namespaces if self._known.get(each, True)}

    def add(self, namespaces: Mapping[Namespace, bool]) -> list[Namespace]:
        """Make sure that these are listed, with whether an item may expire there.

        Before their first item is written: a listed namespace without items does no harm.

        Returns:
            Those that were not known before; to the sole writer they are empty.
        """
        with self._lock:
            fresh = [each for each in namespaces if each not in self._known]
            self._write(
                {
                    each: mortal
                    for each, mortal in namespaces.items()
                    if each not in self._known or (mortal and not self._known[each])
                }
            )
            return fresh

    def confirm(self, namespaces: Mapping[Namespace, bool]) -> None:
        """After a write beside other writers: one of them may just have found it empty."""
        catalogue = self._collections.catalogue
        if not self._connection.is_shared or catalogue is None or not namespaces:
            return
        wanted = {_row_id(each): each for each in namespaces}
        found = self._connection.call(catalogue.get, ids=list(wanted), include=[])
        lost = [wanted[each] for each in sorted(set(wanted) - set(found["ids"]))]
        with self._lock:
            self._write({each: namespaces[each] or self._known.get(each, True) for each in lost})

    def remove(self, namespaces: Iterable[Namespace]) -> None:
        """Forget namespaces that hold no item any more."""
        gone = sorted(set(namespaces))
        catalogue = self._collections.catalogue
        if catalogue is None or not gone:
            return
        with self._lock:
            self._unlearn(gone)
            self._connection.call(catalogue.delete, ids=[_row_id(each) for each in gone])

    def _learn(self, namespaces: Mapping[Namespace, bool]) -> None:
        for each, mortal in namespaces.items():
            self._known[each] = mortal
            for depth in range(len(each) + 1):
                self._below.setdefault(each[:depth], set()).add(each)

    def _unlearn(self, namespaces: Iterable[Namespace]) -> None:
        for each in namespaces:
            self._known.pop(each, None)
            for depth in range(len(each) + 1):
                self._below.get(each[:depth], set()).discard(each)
                if not self._below.get(each[:depth]):
                    self._below.pop(each[:depth], None)

    def _write(self, namespaces: Mapping[Namespace, bool]) -> None:
        catalogue = self._collections.catalogue
        if catalogue is None:
            return
        wanted = sorted(namespaces)
        for start in range(0, len(wanted), self._connection.max_batch):
            part = wanted[start : start + self._connection.max_batch]
            ids = [_row_id(each) for each in part]
            self._connection.call(
                catalogue.upsert,
                ids=ids,
                embeddings=as_matrix([spread_vector(each, dims=_DIMS) for each in ids], dims=_DIMS),  # pyright: ignore[reportArgumentType]
                metadatas=[_metadata(each, mortal=namespaces[each]) for each in part],
            )
            self._learn({each: namespaces[each] for each in part})

    def _read(self, prefix: Namespace | None) -> dict[Namespace, bool]:
        catalogue = self._collections.catalogue
        found: dict[Namespace, bool] = {}
        if catalogue is None:
            return found
        where: Any = {_PREFIXES: {"$contains": encode_namespace(prefix)}} if prefix else None
        read = 0
        while True:
            page = self._connection.call(
                catalogue.get, where=where, include=["metadatas"], limit=_PAGE, offset=read
            )
            for row in page["metadatas"] or []:
                namespace = decode_namespace(str(row[NS]))
                if is_under(namespace, prefix or ()):
                    found[namespace] = bool(row[_MORTAL])
            read += len(page["ids"])
            if len(page["ids"]) < _PAGE:
                return found


def _row_id(namespace: Namespace) -> str:
    return hashlib.sha256(encode_namespace(namespace).encode()).hexdigest()[:40]


def _metadata(namespace: Namespace, *, mortal: bool) -> dict[str, Any]:
    depths = range(1, len(namespace) + 1)
    return {
        NS: encode_namespace(namespace),
        _PREFIXES: [encode_namespace(namespace[:depth]) for depth in depths],
        _MORTAL: mortal,
    }
