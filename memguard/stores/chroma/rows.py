"""Items to rows and rows to items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from memguard.schema.base import Namespace
from memguard.stores.chroma.namespaces import encode_namespace
from memguard.stores.chroma.resident import spread_vector
from memguard.stores.chroma.values import (
    EXPIRES,
    NS,
    RANKED,
    RECORD,
    Address,
    Record,
    loads_record,
)

_ORDINAL = "."


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One item as it lies in Chroma."""

    namespace: Namespace
    record: Record
    expires: float
    vectors: Sequence[Sequence[float]] = ()
    """Its vectors that have a meaning, if they were asked for."""

    @property
    def address(self) -> Address:
        """Where it lives."""
        return Address(self.namespace, self.record.key)

    def is_live(self, now: float) -> bool:
        """Whether its time has not run out."""
        return self.expires > now


class Rows(NamedTuple):
    """Arguments of one upsert."""

    ids: list[str]
    embeddings: list[Sequence[float]]
    metadatas: list[dict[str, Any]]


@dataclass(slots=True)
class _Parts:
    head: tuple[Record, float] | None = None
    vectors: dict[int, tuple[str, Sequence[float]]] = field(
        default_factory=dict[int, "tuple[str, Sequence[float]]"]
    )


def row_ids(address: Address, count: int, *, start: int = 0) -> list[str]:
    """Ids of an item's rows."""
    stem = address.row_id
    return [f"{stem}{_ORDINAL}{ordinal}" for ordinal in range(start, count)]


def head_id(address: Address) -> str:
    """Id of the row that carries the item."""
    return f"{address.row_id}{_ORDINAL}0"


def is_head(row_id: str) -> bool:
    """Whether a row carries an item; the others exist for their vector."""
    return row_id.endswith(f"{_ORDINAL}0")


def head_of(row_id: str) -> str:
    """Id of the head of a row's item."""
    return f"{row_id.partition(_ORDINAL)[0]}{_ORDINAL}0"


def to_rows(item: Stored, *, dims: int) -> Rows:
    """All rows of one item; written by one call, so that there is never half of one."""
    ids = row_ids(item.address, item.record.rows)
    own = encode_namespace(item.namespace)
    shared = {NS: own, RANKED: own if item.vectors else "", EXPIRES: item.expires}
    texts = [item.record.dumps(), *[item.record.revision] * (len(ids) - 1)]
    return Rows(
        ids=ids,
        embeddings=list(item.vectors) or [spread_vector(ids[0], dims=dims)],
        metadatas=[{**shared, RECORD: text} for text in texts],
    )


def head_from(metadata: Mapping[str, Any]) -> tuple[Record, float]:
    """The record of a head row and when it expires."""
    return loads_record(str(metadata[RECORD])), float(metadata[EXPIRES])


def from_rows(
    namespace: Namespace,
    *,
    ids: Sequence[str],
    metadatas: Sequence[Mapping[str, Any]],
    embeddings: Sequence[Sequence[float]] | None,
) -> tuple[list[Stored], list[str]]:
    """Items of one namespace from its rows, and the ids of rows that belong to none.

    A process that dies between a put with fewer vectors and the removal of the old ones leaves
    rows of an older revision; a server's other client may be about to. They count as absent.
    """
    own = encode_namespace(namespace)
    parts: dict[str, _Parts] = {}
    for place, (row_id, metadata) in enumerate(zip(ids, metadatas, strict=True)):
        if metadata[NS] != own:  # the scope is ours to hold, whatever the filter let through
            continue
        stem, _, ordinal = row_id.partition(_ORDINAL)
        held = parts.setdefault(stem, _Parts())
        if ordinal == "0":
            held.head = head_from(metadata)
        vector = () if embeddings is None else embeddings[place]
        revision = held.head[0].revision if ordinal == "0" and held.head else metadata[RECORD]
        held.vectors[int(ordinal)] = (cast("str", revision), vector)
    items: list[Stored] = []
    strays: list[str] = []
    for stem, held in parts.items():
        item, lost = _assemble(namespace, held, with_vectors=embeddings is not None)
        strays += [f"{stem}{_ORDINAL}{ordinal}" for ordinal in lost]
        if item is not None:
            items.append(item)
    return items, strays


def _assemble(
    namespace: Namespace, held: _Parts, *, with_vectors: bool
) -> tuple[Stored | None, list[int]]:
    if held.head is None:
        return None, list(held.vectors)
    record, expires = held.head
    current = {
        ordinal: vector
        for ordinal, (revision, vector) in sorted(held.vectors.items())
        if revision == record.revision and ordinal < record.rows
    }
    ranked = list(current.values()) if with_vectors and record.vectors else []
    item = Stored(namespace=namespace, record=record, expires=expires, vectors=ranked)
    return item, [ordinal for ordinal in held.vectors if ordinal not in current]
