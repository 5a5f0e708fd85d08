"""One read, as a page for a person: what may be used and how, what may not, and the section."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memguard.schema.ledger import ReadReport, UnitVerdict

PERMISSION_STYLES = {
    "APPLY_CONSTRAINT": "bold green",
    "PERSONALIZE": "green",
    "MENTION_VIEW": "cyan",
    "CONTEXT": "blue",
    "CONTEXT_UNCERTAIN": "yellow",
    "DENY": "red",
}
MEANINGS = {
    "APPLY_CONSTRAINT": "the answer must keep to it",
    "PERSONALIZE": "may shape what is offered",
    "MENTION_VIEW": "may be named as the user's view",
    "CONTEXT": "background",
    "CONTEXT_UNCERTAIN": "background that may be wrong",
    "DENY": "stays out",
}
_WITHHELD = {
    "denied": "",
    "duplicate": "the same text stands already; ",
    "max_units": "permitted, but there was no room (max_units); ",
    "max_tokens": "permitted, but there was no room (max_tokens); ",
}
_FLAGS = {
    "recall_failed": "memories could not be read",
    "recall_late": "memories could not be read in time",
    "local_adjudicator": "the local adjudicator judged",
    "adjudication_failed": "nothing was judged: what reads as safety or preference is background",
    "adjudication_late": "not judged in time: what reads as safety or preference is background",
    "adjudication_partial": "some units were not judged",
    "situation_unknown": "what the query asks for could not be told",
    "budget_spent": "the budget was spent before all was judged",
    "decomposition_failed": "some memories were judged whole",
    "evidence_cut": "only a part of the evidence was looked at",
    "limits_exceeded": "constraints alone take more room than there is",
}
_TARGETS = {"user": "the user", "third_party": "another person", "world": "nobody in particular"}
_PLAIN = frozenset({"epistemic", "temporality", "temporal"})
"""Attributes whose values tell what they are of."""
_SAID_BY_NOTES = frozenset({"local_adjudicator"})
"""Flags that a note of the adjudicator itself says at more length."""


def print_read(read: "ReadReport", *, whole: bool = False) -> None:
    """What a read admitted and withheld, and the section as it stands in the prompt.

    Args:
        read: The receipt of the read.
        whole: Whether to print dialogue, evidence, prompts and settings too.
    """
    from rich.text import Text

    from memguard.cli.output import console

    out = console()
    places = ", ".join(" / ".join(each) for each in read.namespaces) or "memories that were given"
    out.print(Text(f"{places}: {read.query}", style="bold"))
    out.print(f"  {_situation(read)}")
    out.print(f"  receipt {read.id}, {read.at:%Y-%m-%d %H:%M} UTC")
    _print_units(read, read.admitted, title=f"\nMay be used: {len(read.admitted)}")
    _print_units(read, read.withheld, title=f"\nWithheld: {len(read.withheld)}")
    out.print(Text("\nThe section, exactly as it goes into the prompt", style="bold"))
    # Not through the console, which would wrap lines that are not wrapped in the prompt.
    out.out(read.memory_context or "(nothing: no section is added)", highlight=False)
    if whole:
        _print_whole(read)
    _print_end(read)


def print_reads(reads: Sequence["ReadReport"], *, title: str) -> None:
    """One line per read."""
    from rich.text import Text

    from memguard.cli.output import console

    out = console()
    out.print(Text(title, style="bold"))
    for read in reads:
        counts = f"{len(read.admitted)} of {len(read.ledger.verdicts)}"
        line = Text(f"{counts:<12}", style="yellow" if read.degraded else "green")
        line.append(" ".join(read.query.split())[:200], style="default")
        out.print(line)
        said = f"{read.method}, {read.at:%Y-%m-%d %H:%M} UTC  [{read.id[:8]}]"
        out.print(Text(f"{'':<12}{said}", style="dim"))


def _situation(read: "ReadReport") -> str:
    from memguard.schema.read import Situation

    judge = read.models.get("adjudicator", "")
    by = f", as {judge} judged" if judge else ""
    found = read.ledger.situation
    if isinstance(found, Situation):
        view = ", and the user's own view" if found.asks_view else ""
        return f"{read.method}: an answer about {_TARGETS[found.target]}, {found.mode}{view}{by}"
    why = f" ({found.detail})" if found is not None and found.detail else ""
    return f"{read.method}: what the query asks for was not judged{why}"


def _print_units(read: "ReadReport", verdicts: Sequence["UnitVerdict"], *, title: str) -> None:
    from itertools import groupby

    from rich.padding import Padding
    from rich.text import Text

    from memguard.cli.output import console

    out = console()
    out.print(Text(title, style="bold"))
    wheres = {memory.id: " / ".join(memory.namespace) for memory in read.memories}
    several = len(read.namespaces) > 1
    for permission, group in groupby(verdicts, key=lambda verdict: verdict.permission):
        heading = Text(f"  {permission}: ", style=PERMISSION_STYLES[permission])
        out.print(heading.append(MEANINGS[permission], style="default"))
        for verdict in group:
            out.print(Padding(Text(_shortened(verdict.unit.text)), (0, 0, 0, 4)))
            why = _WITHHELD[verdict.withheld or "denied"] + (verdict.explanation or "not told")
            place = f"; in {wheres.get(verdict.unit.memory_id, '')}" if several else ""
            said = f"row {verdict.row}: {why} ({_known(verdict)}{place})"
            out.print(Padding(Text(said, style="dim"), (0, 0, 0, 6)))


def _known(verdict: "UnitVerdict") -> str:
    """What was known of a unit: when it was said, how near it is, its attributes."""
    unit = verdict.unit
    parts = [f"said {unit.said_at:%Y-%m-%d}" if unit.said_at else "said at an unknown time"]
    if unit.score is not None:
        parts.append(f"nearness {unit.score:.2f}")
    attributes = verdict.attributes
    if attributes is not None:
        found = attributes.model_dump(mode="json")
        parts.append(found.get("detail") or ", ".join(_values(found)))
    if verdict.evidence_conflict:
        parts.append("the evidence says otherwise")
    return "; ".join(part for part in parts if part)


def _values(found: dict[str, object]) -> list[str]:
    said = [(name, value) for name, value in found.items() if value not in {"", False, None}]
    return [
        name if value is True else str(value) if name in _PLAIN else f"{name} {value}"
        for name, value in said
    ]


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    most = 300
    return plain if len(plain) <= most else f"{plain[:most]} [... {len(plain)} characters]"


def _print_whole(read: "ReadReport") -> None:
    from memguard.cli.output import console

    out = console()
    if read.dialogue:
        out.print("\nThe dialogue before the query:")
    for turn in read.dialogue:
        out.print(f"  [{turn.id}] {turn.speaker or turn.role}: {_shortened(turn.content)}")
    if read.evidence:
        out.print("\nEvidence:")
    for each in read.evidence:
        out.print(f"  {each.source or 'given'}: {_shortened(each.text)}")
    out.print("\nSettings: " + ", ".join(f"{name} {value}" for name, value in read.spec.items()))
    for prompt in read.prompts:
        out.print(f"prompt {prompt.name} version {prompt.version} ({prompt.digest})")


def _print_end(read: "ReadReport") -> None:
    from memguard.cli.output import console

    out = console()
    out.print("")
    for flag in (each for each in read.flags if each not in _SAID_BY_NOTES):
        out.print(f"note: {flag}: {_FLAGS[flag]}")
    for failure in read.failures:
        out.print(f"not done: {failure.step}: {failure.code} {failure.message}")
    for note in read.notes:
        out.print(f"note: {note}")
    kept = f", units of {read.cached} memories were kept from before" if read.cached else ""
    out.print(
        f"{len(read.memories)} memories looked at{kept}; {read.usage.calls} model calls, "
        f"{read.usage.tokens} tokens"
    )
