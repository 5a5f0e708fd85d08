"""Leaves out of a claim what other parts of it say already."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from memguard.local.corrections.lexicon import kinds

_REPEATED: tuple[tuple[str, str], ...] = (
    ("home", "place from after commute"),
    ("origin", "home place from"),
    ("age", "year"),
    ("hobby", "hobby"),
    ("remote", "work"),
    ("shift", "work"),
    ("rent", "price month"),
    ("salary", "price month"),
    ("subscription", "price"),
    ("mg", "take medication dose"),
    ("medication", "take"),
    ("speak", "can language"),
    ("nativelanguage", "language speak"),
    ("birthday", "year"),
    ("pregnant", "baby child"),
    ("child", "mother father parent"),
    ("twin", "mother father parent child"),
    ("son", "mother father parent"),
    ("daughter", "mother father parent"),
    ("allergy", "from eat"),
    ("vegetarian", "eat home diet food"),
    ("vegan", "eat home diet food"),
)
"""Concepts, and what says nothing more beside them: who lives somewhere lives in a place."""


def without_repeats(
    content: AbstractSet[str], slots: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The content of a claim in the form in which it is compared.

    `slots` are the attributes that were found in it, which name themselves.
    """
    sets = kinds()
    keys = set(content) | ({"home", "age"} & slots.keys())
    if "hobby" in keys:
        keys.add("like")
    for concept, repeated in _REPEATED:
        if concept in keys:
            keys -= frozenset(repeated.split())
    if (keys & sets["occupation"] or "job" in slots) and "employer" not in slots:
        keys.discard("work")
    if keys & sets["person"]:
        keys.discard("name")
    if keys & sets["instrument"]:
        keys.discard("play")
    if keys & sets["event"]:
        keys.discard("takeplace")
    # Who drives to work goes by car.
    if "drive" in keys and keys & {"work", "commute"} and not keys & sets["vehicle"]:
        keys |= {"car"}
    # "By bike to work" and "I ride my bike to work".
    if keys & sets["vehicle"] and keys & {"work", "commute"}:
        keys = (keys - {"ride", "drive", "take", "use", "work"}) | {"commute"}
    if "take" in keys and keys & {"coffee", "tea", "wine", "beer"}:
        keys = (keys - {"take"}) | {"drink"}
    if keys == {"drink"}:
        keys.add("alcohol")
    return frozenset(keys - {"clock"})
