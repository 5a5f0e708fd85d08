"""The keys under which texts are stored, or go when they are stored next.

A text has one key per generation. Its first record has the key of generation 0. If that record is
superseded and the text is stored again ("Porto, then Lisbon, then Porto"), the new record has the
key of generation 1, and so on. So an earlier record is never written over, and is not mistaken for
a duplicate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item

from memguard.journal.storing import call_or_advise, owner_of
from memguard.schema.base import Namespace
from memguard.schema.memory import lifecycle_of, record_key, record_keys

_ADVICE = "nothing was written; write again"
# Generations that are asked for in one exchange, once the first one has ended.
_STEP = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyChoice:
    """Where a text is stored, or goes."""

    key: str
    """The key of the current record of the text, else the key of a new one."""
    is_stored: bool = False
    """Whether the text is stored and current."""
    is_taken: bool = False
    """Whether the item under the key has another text, which somebody wrote there."""
    owner: str | None = None
    """The candidate of the current record."""
    ended: Mapping[str, str] = field(default_factory=dict[str, str])
    """The keys of the records of the text that are not current, by their receipt."""
    item: Item | None = None
    """The item under the key; `None` if the key is free."""
    ended_items: Sequence[Item] = ()
    """The items of the records that are not current, oldest first."""


async def current_keys(
    store: BaseStore, namespace: Namespace, texts: Iterable[str]
) -> dict[str, KeyChoice]:
    """The key of each text in a namespace, by text.

    This costs one exchange with the store, and more only for texts whose record has ended.

    Raises:
        StoreError: If the store failed.
    """
    choices = await choose_keys(store, [(namespace, text) for text in texts])
    return {text: choice for (_, text), choice in choices.items()}


async def choose_keys(
    store: BaseStore, pairs: Iterable[tuple[Namespace, str]]
) -> dict[tuple[Namespace, str], KeyChoice]:
    """The key of each text in its namespace, by namespace and text; see `current_keys`."""
    open_pairs = list(dict.fromkeys(pairs))
    choices: dict[tuple[Namespace, str], KeyChoice] = {}
    ended: dict[tuple[Namespace, str], dict[str, Item]] = {pair: {} for pair in open_pairs}
    generation = 0
    while open_pairs:
        # Records of earlier versions may have another key of the same text.
        keys = [
            _keys(text, range(generation, generation + _STEP)) if generation else record_keys(text)
            for _, text in open_pairs
        ]
        items = await _items(store, open_pairs, keys)
        following: list[tuple[Namespace, str]] = []
        for pair, candidates in zip(open_pairs, keys, strict=True):
            choice = _choose(pair, candidates, items, ended[pair], is_first=not generation)
            if choice is None:
                following.append(pair)
            else:
                choices[pair] = choice
        open_pairs = following
        generation = generation + _STEP if generation else 1
    return choices


def _keys(text: str, generations: range) -> tuple[str, ...]:
    return tuple(record_key(text, generation=generation) for generation in generations)


async def _items(
    store: BaseStore, pairs: Sequence[tuple[Namespace, str]], keys: Sequence[Sequence[str]]
) -> dict[tuple[Namespace, str], Item | None]:
    locations = list(
        dict.fromkeys(
            (namespace, key)
            for (namespace, _), candidates in zip(pairs, keys, strict=True)
            for key in candidates
        )
    )
    ops = [GetOp(*location, refresh_ttl=False) for location in locations]
    return dict(zip(locations, await call_or_advise(store, ops, advice=_ADVICE), strict=True))


def _choose(
    pair: tuple[Namespace, str],
    keys: Sequence[str],
    items: Mapping[tuple[Namespace, str], Item | None],
    ended: dict[str, Item],
    *,
    is_first: bool,
) -> KeyChoice | None:
    """The choice among some keys; `None` if all of their records have ended."""
    namespace, text = pair
    free: str | None = None
    for key in keys:
        item = items[namespace, key]
        if item is None:
            free = free or key
        elif not lifecycle_of(item.value).is_current:
            ended[key] = item
        elif record_key(str(item.value.get("content"))) == record_key(text):
            choice = _choice(key, ended, item=item)
            return replace(choice, is_stored=True, owner=owner_of(item.value))
        elif is_first and key == keys[0]:
            return replace(_choice(key, ended, item=item), is_taken=True)
    # The second key of the first generation is that of old records; new ones never get it.
    if free is None or (is_first and free != keys[0]):
        return None
    return _choice(free, ended)


def _choice(key: str, ended: Mapping[str, Item], *, item: Item | None = None) -> KeyChoice:
    return KeyChoice(
        key=key,
        ended={_receipt_of(entry.value) or name: name for name, entry in ended.items()},
        item=item,
        ended_items=tuple(ended.values()),
    )


def _receipt_of(value: Mapping[str, Any]) -> str:
    provenance = value.get("memguard")
    return str(provenance.get("receipt_id", "")) if isinstance(provenance, Mapping) else ""
