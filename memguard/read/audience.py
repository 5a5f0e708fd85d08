"""Who will read an answer, and which memories are then withheld, whoever asks.

In a group, memories about health, family, money and the search for work are withheld, and so are
memories of another owner. This is decided by rule on the text and the origin of each memory, before
the admission method runs: what is withheld here is in no prompt, neither of a model that judges nor
of the one that answers. The receipt has each of these memories, with the rule.

A memory is whole here. If one part of it is sensitive, the other parts are withheld as well,
because they would tell what they belong to.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args
from urllib.parse import unquote

from memguard.errors import ErrorCode, InvalidInputError
from memguard.local.adjudicator.people import about_whom
from memguard.local.sensitivity import has_read_lists, is_unread, sensitive_topic
from memguard.methods.adjudication.recalled_units import units_of
from memguard.methods.adjudication.tables import TableRow
from memguard.normal_form import comparison_form
from memguard.schema.audience import Audience, SensitiveTopic, is_private
from memguard.schema.base import Namespace, is_blank
from memguard.schema.read import Ledger, ReadReport, RecalledMemory, UnitVerdict

SENSITIVE: dict[SensitiveTopic, TableRow] = {
    "health": TableRow("audience-health", "DENY", "about health, and others will read the answer"),
    "family": TableRow("audience-family", "DENY", "about family, and others will read the answer"),
    "money": TableRow("audience-money", "DENY", "about money, and others will read the answer"),
    "job_search": TableRow(
        "audience-job-search", "DENY", "about a search for work, and others will read the answer"
    ),
}
"""The rows of sensitive memories in a group."""
UNREAD = TableRow(
    "audience-language",
    "DENY",
    "in a language whose words are not known here, and others will read the answer",
)
OTHER_OWNER = TableRow(
    "audience-other-owner", "DENY", "of another person than the one who asks in this group"
)
UNKNOWN_OWNER = TableRow(
    "audience-unknown-owner",
    "DENY",
    "about a person, in a namespace that is not of the one who asks in this group",
)
UNKNOWN_ASKER = TableRow(
    "audience-unknown-asker", "DENY", "of one person, and it is not known who asks in this group"
)
AUDIENCE_ROWS: tuple[TableRow, ...] = (
    *SENSITIVE.values(),
    UNREAD,
    OTHER_OWNER,
    UNKNOWN_OWNER,
    UNKNOWN_ASKER,
)
"""The rules of a group, in the order in which they are tried."""

Names = frozenset[str]
"""The names and ids of one person, in the form in which they are compared."""

# Whose words these are is not a person, so only the namespace tells of an owner.
_NOT_PERSONS = frozenset({"assistant", "tool"})
_NOBODY: Names = frozenset()
_MAX_RULED_INLINE = 2_000
"""Characters of memories that are ruled on in the event loop, in at most 50 ms."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """Who asks, and who else reads the answer."""

    audience: Audience = "private"
    """Whether others read it."""
    participants: tuple[Names, ...] = ()
    """Each person who reads it."""
    asker: Names = _NOBODY
    """The person who asks; empty if nobody is known to."""
    user: Names = _NOBODY
    """The user of the run, who may be another person than the one who asks."""
    user_namespaces: frozenset[Namespace] = frozenset()
    """The namespaces that were filled with the id of the user."""

    @property
    def names(self) -> tuple[str, ...]:
        """The participants for the receipt, a person by each name."""
        return tuple(sorted(name for names in self.participants for name in names))


@dataclass(frozen=True, kw_only=True)
class Withholding:
    """The memories that a group may see, and the verdicts on the others."""

    permitted: tuple[RecalledMemory, ...]
    """What the admission method judges."""
    verdicts: tuple[UnitVerdict, ...] = ()
    """One for each other memory, in the order of recall."""


def room_of(
    *,
    default: Audience,
    audience: object = None,
    participants: object = None,
    speaker: str = "",
    run: Mapping[str, Any],
    user_namespaces: Sequence[Namespace] = (),
) -> Room:
    """The room of a run: the input of the guard decides before the run, and the run before it.

    Args:
        default: The audience that the guard was built with.
        audience: The input's `audience`; `None` for none.
        participants: The input's `participants`.
        speaker: The name of who said the last message of a user.
        run: The values of the run's context and `configurable`; `audience`, `participants` and
            `user_id` are read.
        user_namespaces: The namespaces that contain the user's id.

    Raises:
        InvalidInputError: If an audience is neither `private` nor `group`.
    """
    stated = audience if audience is not None else run.get("audience")
    # An empty list in the input is its default, and states nothing.
    people = read_participants(participants or run.get("participants"))
    user = _with_aliases(run.get("user_id"), people)
    # Who wrote the message asks. The user of the run may be who owns the thread.
    asker = _with_aliases(speaker, people) or user
    return Room(
        audience=default if stated is None else check_audience(stated),
        participants=people,
        asker=asker,
        user=user,
        user_namespaces=frozenset(user_namespaces),
    )


def check_audience(value: object) -> Audience:
    """The audience that a value names.

    Raises:
        InvalidInputError: If it names none: a group that is misspelled must not pass for private.
    """
    if value in get_args(Audience):
        return cast("Audience", value)
    msg = (
        f"the audience {value!r} is not known: pass 'private' if only the person who asks reads "
        "the answer, or 'group'. If the state of your graph has a key `audience` of its own, name "
        "the guard's with `keys`"
    )
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def read_participants(value: object) -> tuple[Names, ...]:
    """The persons in a list of names, or in a mapping of ids to names.

    An entry of the list may be a name, or a mapping or a list with all names of one person. What
    is not readable as a name is left out, since the host's key may have another meaning.
    """
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        people = [_names(key) | _names(name) for key, name in entries]
    elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        people = [_names(entry) for entry in cast("Sequence[object]", value)]
    else:
        people = [_names(value)]
    return tuple(dict.fromkeys(names for names in people if names))


def _names(value: object) -> Names:
    if isinstance(value, Mapping):
        return _names(list(cast("Mapping[object, object]", value).values()))
    if isinstance(value, list | tuple | set | frozenset):
        entries = cast("Sequence[object]", value)
        return _NOBODY.union(*(_names(entry) for entry in entries))
    is_name = isinstance(value, str | int) and not isinstance(value, bool)
    text = _name(str(value)) if is_name else ""
    return frozenset({text}) if text else _NOBODY


def _name(text: str) -> str:
    return "" if is_blank(text) else " ".join(comparison_form(text).casefold().split())


def _with_aliases(value: object, people: Sequence[Names]) -> Names:
    """The person of a name, with the other names that the participants state."""
    names = _names(value)
    return names.union(*(other for other in people if other & names)) if names else names


def withhold(memories: Sequence[RecalledMemory], *, room: Room) -> Withholding:
    """Leave out what a group may not see; everything is permitted in private."""
    if is_private(room.audience):
        return Withholding(permitted=tuple(memories))
    permitted: list[RecalledMemory] = []
    verdicts: list[UnitVerdict] = []
    for memory in memories:
        row = rule_on_memory(memory, room=room)
        if row is None:
            permitted.append(memory)
        else:
            verdicts.append(_verdict(memory, row))
    return Withholding(permitted=tuple(permitted), verdicts=tuple(verdicts))


async def withhold_in_room(memories: Sequence[RecalledMemory], *, room: Room) -> Withholding:
    """As `withhold`, without blocking the event loop on many or long memories."""
    if is_private(room.audience):
        return withhold(memories, room=room)
    is_short = sum(len(memory.text) for memory in memories) <= _MAX_RULED_INLINE
    # The first time, the word lists are read from their file, which takes half a second.
    if is_short and has_read_lists():
        return withhold(memories, room=room)
    return await asyncio.to_thread(withhold, memories, room=room)


def rule_on_memory(memory: RecalledMemory, *, room: Room) -> TableRow | None:
    """The row that withholds a memory from a group; `None` if the group may see it."""
    topic = sensitive_topic(memory.text)
    if topic is not None:
        return SENSITIVE[topic]
    if is_unread(memory.text):
        return UNREAD
    return _row_of_owner(memory, room=room)


def _row_of_owner(memory: RecalledMemory, *, room: Room) -> TableRow | None:
    labels = frozenset(_name(unquote(label)) for label in memory.namespace)
    origin = memory.provenance
    speaker = _NOBODY
    if origin is not None and origin.said_by not in _NOT_PERSONS:
        speaker = _with_aliases(origin.speaker, room.participants)
    if not speaker:
        return _row_of_namespace(memory, labels, room=room)
    if room.asker:
        return None if speaker & room.asker else OTHER_OWNER
    # Nobody is known to ask. A namespace with the speaker's name has one owner.
    return None if speaker & labels else UNKNOWN_ASKER


def _row_of_namespace(memory: RecalledMemory, labels: Names, *, room: Room) -> TableRow | None:
    """The row of a memory of which nobody is known to be the speaker."""
    is_own = bool(labels & room.asker) or (
        memory.namespace in room.user_namespaces and bool(room.user & room.asker)
    )
    if is_own:
        return None
    if _has_other_owner(memory, labels, room=room):
        return OTHER_OWNER if room.asker else UNKNOWN_ASKER
    # A namespace that several people share, and nothing says whose memory this is. If nobody is
    # known to ask either, there is no sign of a second person.
    is_shared = bool(room.asker) and about_whom(memory.text) != "world"
    return UNKNOWN_OWNER if is_shared else None


def _has_other_owner(memory: RecalledMemory, labels: Names, *, room: Room) -> bool:
    """Whether a namespace has another owner than the one who asks."""
    others = [names for names in (*room.participants, room.user) if not names & room.asker]
    return any(labels & names for names in others) or memory.namespace in room.user_namespaces


def _verdict(memory: RecalledMemory, row: TableRow) -> UnitVerdict:
    return UnitVerdict(
        unit=units_of(memory)[0],
        permission=row.then,
        row=row.id,
        explanation=row.why,
        withheld="denied",
    )


def with_withheld(
    output: Mapping[str, Any],
    *,
    memories: Sequence[RecalledMemory],
    withholding: Withholding,
    room: Room,
) -> dict[str, Any]:
    """The output of an admission method, with what was withheld before it.

    Args:
        output: The method's output on the memories that were permitted.
        memories: All memories that were recalled, in their order.
        withholding: What was withheld.
        room: Who reads the answer.
    """
    if is_private(room.audience):
        return dict(output)
    report: ReadReport = output["report"]
    ledger = _merged(report.ledger, withholding.verdicts, memories=memories)
    flags = ("audience_withheld",) if withholding.verdicts else ()
    update = {
        "ledger": ledger,
        "memories": tuple(memories),
        "audience": room.audience,
        "participants": room.names,
        "flags": (*report.flags, *flags),
    }
    return {
        **output,
        "withheld": (*output["withheld"], *withholding.verdicts),
        "ledger": ledger,
        "report": report.model_copy(update=update),
    }


def _merged(
    ledger: Ledger, verdicts: Sequence[UnitVerdict], *, memories: Sequence[RecalledMemory]
) -> Ledger:
    """The ledger with more verdicts, all in the order of recall."""
    order = {memory.id: index for index, memory in enumerate(memories)}
    # Stable, so that the units of a memory, and its repeats behind it, stay in their order.
    position = len(order)
    ranked: list[tuple[int, UnitVerdict]] = []
    for verdict in ledger.verdicts:
        position = order.get(verdict.unit.memory_id, position)
        ranked.append((position, verdict))
    ranked += [(order.get(verdict.unit.memory_id, len(order)), verdict) for verdict in verdicts]
    ranked.sort(key=lambda entry: entry[0])
    return ledger.model_copy(update={"verdicts": tuple(verdict for _, verdict in ranked)})
