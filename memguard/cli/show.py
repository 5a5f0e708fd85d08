"""Print receipts for people: decisions with the reports of their methods, and reads.

A report of ConMem is printed with its counterfactual log: the probes, both answers next to each
other, the verdicts and the effect.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from memguard.cli.output import OUTCOME_STYLES, console, print_entry, print_indented

if TYPE_CHECKING:
    from memguard.methods.conmem.log import (
        AttributionVerdict,
        CounterfactualLog,
        ProbeScore,
        ProbeTrial,
        QualityVerdict,
        Response,
    )
    from memguard.schema.decision import Inconclusive
    from memguard.schema.read import ReadReport, UnitVerdict
    from memguard.schema.receipt import MethodReport, Receipt

_PERMISSIONS = {
    "APPLY_CONSTRAINT": ("bold green", "the answer must keep to it"),
    "PERSONALIZE": ("green", "may shape what is offered"),
    "MENTION_VIEW": ("cyan", "may be mentioned as the user's view"),
    "CONTEXT": ("blue", "background"),
    "CONTEXT_UNCERTAIN": ("yellow", "background that may be wrong"),
    "DENY": ("red", "stays out"),
}
"""The style and the meaning of each permission."""
_WITHHELD = {
    "denied": "",
    "duplicate": "the section has the same text already; ",
    "max_units": "permitted, but the section is full (max_units); ",
    "max_tokens": "permitted, but the section is full (max_tokens); ",
}
_UNJUDGED = "possible constraints and preferences are background, the rest stays out"
FLAGS = {
    "recall_failed": "memories could not be read",
    "recall_late": "memories could not be read in time",
    "adjudication_failed": f"nothing was judged: {_UNJUDGED}",
    "adjudication_late": f"not judged in time: {_UNJUDGED}",
    "adjudication_partial": "some units were not judged",
    "situation_unknown": "what the query asks for is unknown",
    "budget_spent": "the budget was spent before all was judged",
    "decomposition_failed": "some memories were judged whole",
    "evidence_cut": "only a part of the evidence was used",
    "decomposition_refused": "some memories were judged whole, as their pieces did not fit them",
    "instruction_withheld": "a memory instructs the assistant; look at where it came from",
    "audience_withheld": "memories were left out because others will read the answer",
    "prompt_shortened": "only a part of the query, the dialogue or a long memory was used",
    "limits_exceeded": "the constraints alone exceed the limits of the section",
}
"""What each flag of a read says, for a person."""
_TARGETS = {"user": "the user", "third_party": "another person", "world": "nobody in particular"}
_SELF_EXPLAINING = frozenset({"epistemic", "temporality", "temporal"})
"""Attributes whose value is clear without their name."""
_MAX_TEXT = 300
"""Characters of a text that are printed."""


def print_receipt(
    receipt: "Receipt", *, history: tuple[Any, ...] = (), committed: bool = True
) -> None:
    """Print the candidate, its source, the figures and ruling of each method, and the cost.

    Args:
        receipt: The record of one decision.
        history: The events since the decision.
        committed: Whether the decision was carried out; `check` only predicts it.
    """
    out = console()
    outcome = receipt.outcome if committed else receipt.decision.outcome
    style = OUTCOME_STYLES[receipt.outcome]
    out.print(f"{outcome}: {receipt.candidate.text}", style=f"bold {style}")
    out.print(f"  {receipt.decision.explanation}")
    out.print(
        f"  receipt {receipt.id}, {receipt.at:%Y-%m-%d %H:%M} UTC, reason {receipt.decision.reason}"
    )
    candidate = receipt.candidate
    day = f" on {candidate.said_at:%Y-%m-%d}" if candidate.said_at else ""
    turns = ", ".join(candidate.turn_ids) or "not named"
    out.print(f"  said by {candidate.said_by}{day}, turns {turns}")
    if receipt.look_alikes:
        out.print(f"  look-alike letters of another script in: {', '.join(receipt.look_alikes)}")
    if receipt.namespace:
        out.print(f"  namespace {' / '.join(receipt.namespace)}")
    for report in receipt.reports:
        _print_report(report)
    usage = receipt.usage
    out.print(
        f"  model calls {usage.calls} (attempts {usage.attempts}), tokens read "
        f"{usage.prompt_tokens}, written {usage.completion_tokens}, waited {usage.latency:.1f} s"
    )
    for event in history:
        out.print(f"  {event.at:%Y-%m-%d %H:%M:%S} {event.kind} by {event.actor}")


def print_read(read: "ReadReport", *, whole: bool = False) -> None:
    """Print what a read admitted and withheld, and the section as it is in the prompt.

    Args:
        read: The receipt of the read.
        whole: Whether to print dialogue, evidence, prompts and settings too.
    """
    out = console()
    # A caller can pass memories to a read, which then searches no namespace.
    namespaces = ", ".join(" / ".join(labels) for labels in read.namespaces) or "memories passed in"
    out.print(f"{namespaces}: {read.query}", style="bold")
    out.print(f"  {_situation(read)}")
    out.print(f"  receipt {read.id}, {read.at:%Y-%m-%d %H:%M} UTC")
    print_units(read, read.admitted, title=f"\nMay be used: {len(read.admitted)}")
    print_units(read, read.withheld, title=f"\nWithheld: {len(read.withheld)}")
    out.print("\nThe section, exactly as it goes into the prompt", style="bold")
    # Not with `print`, which would wrap lines that are not wrapped in the prompt.
    out.out(read.memory_context or "(nothing: no section is added)", highlight=False)
    if whole:
        _print_whole(read)
    _print_end(read)


def print_reads(reads: Sequence["ReadReport"], *, title: str) -> None:
    """Print one line for each read."""
    console().print(title, style="bold")
    for read in reads:
        print_entry(
            f"{len(read.admitted)} of {len(read.ledger.verdicts)}",
            " ".join(read.query.split())[:200],
            detail=f"{read.method}, {read.at:%Y-%m-%d %H:%M} UTC  [{read.id[:8]}]",
            style="yellow" if read.degraded else "green",
        )


def _print_report(report: "MethodReport") -> None:
    out = console()
    models = ", ".join(f"{stage} {name}" for stage, name in report.models.items())
    suffix = f" ({models})" if models else ""
    out.print(f"\n{report.method}: {report.decision.explanation}{suffix}")
    # The form of the evidence is the method's own: a log for ConMem, samples for ConsistencyGate.
    if report.method == "conmem":
        _print_case(report)
    samples: Any = report.evidence.get("samples") or []
    for number, sample in enumerate(samples, start=1):
        if "score" in sample:
            turns = ", ".join(sample.get("turns") or [])
            location = f"  [turns {turns}]" if turns else ""
            out.print(f"  sample {number}: {sample['score']:.2f}  {sample['reason']}{location}")
        else:
            out.print(f"  sample {number}: {sample['inconclusive']}  {sample['detail']}")
    if report.context:
        out.print("  source:")
    for turn in report.context:
        out.print(f"    [{turn.id}] {turn.speaker or turn.role}: {turn.content}")
    for prompt in report.prompts:
        out.print(f"  prompt {prompt.name} version {prompt.version} ({prompt.digest})")
    for note in report.notes:
        out.print(f"  note: {note}")


def _print_case(report: "MethodReport") -> None:
    """Print the probes, both answers side by side, the verdicts, and the effect."""
    from memguard.methods.conmem.log import CounterfactualLog

    log = CounterfactualLog.model_validate(report.evidence)
    # A refused candidate has a log without a score.
    scores = {probe.role: probe for probe in log.score.probes} if log.score else {}
    out = console()
    for trial in log.trials:
        _print_trial(trial, scores.get(trial.role))
    if log.score is not None:
        mean = "no value" if log.score.cmte is None else f"{log.score.cmte:+.3f}"
        out.print(
            f"  CMTE {mean}, sum {log.score.total:+.2f} over {log.score.n_valid} valid probes: "
            f"{log.score.ruling}"
        )
    for line in _case_lines(log):
        out.print(f"  {line}")


def _print_trial(trial: "ProbeTrial", score: "ProbeScore | None") -> None:
    from rich.padding import Padding
    from rich.table import Table

    out = console()
    contribution = "" if score is None else f"  {_contribution(score)}"
    out.print(f"\n  {trial.role}{contribution}", style="bold")
    out.print(f"    {trial.query or '(no request)'}")
    if trial.failure is not None:
        out.print(f"    no verdict on the probe: {_failure(trial.failure)}")
    if not trial.valid:
        out.print(f"    not valid: {trial.validation}")
    if trial.control is not None or trial.treatment is not None:
        table = Table(show_edge=False, pad_edge=False, padding=(0, 2), expand=True)
        table.add_column("without the memory", ratio=1, overflow="fold")
        table.add_column("with the memory", ratio=1, overflow="fold")
        table.add_row(_answer(trial.control), _answer(trial.treatment))
        out.print(Padding(table, (0, 0, 0, 4)))
    for judge, verdict in (("judge", trial.quality), ("auditor", trial.attribution)):
        if verdict is not None:
            out.print(f"    {judge}: {_verdict(verdict)}")
    if score is not None and score.flags:
        out.print(f"    flagged: {', '.join(score.flags)}")


def _contribution(score: "ProbeScore") -> str:
    if score.contribution is None:
        return "inconclusive"
    words = " ".join(word for word in (score.effect, score.label) if word)
    return f"{score.contribution:+.2f}" + (f"  ({words})" if words else "")


def _answer(answer: "Response | Inconclusive | None") -> str:
    from memguard.methods.conmem.log import Response

    if answer is None:
        return "(not asked)"
    if not isinstance(answer, Response):
        return f"({answer.reason}: {answer.detail})"
    return answer.text + (" (cut off)" if answer.cut_off else "")


def _verdict(verdict: "QualityVerdict | AttributionVerdict | Inconclusive") -> str:
    from memguard.methods.conmem.log import AttributionVerdict
    from memguard.schema.decision import Inconclusive

    if isinstance(verdict, Inconclusive):
        return _failure(verdict)
    if isinstance(verdict, AttributionVerdict):
        return f"{verdict.label}; {verdict.summary}: {verdict.reason}"
    preferred = {
        "control": "better without the memory",
        "treatment": "better with the memory",
        "tie": "neither is better",
    }[verdict.preference]
    # The letter too: a judge that always answers A is biased, and this is where one sees it.
    answer = f"answered {verdict.letter}; A was the {verdict.shown_as_a}"
    return f"{preferred} ({answer}): {verdict.reason}"


def _case_lines(log: "CounterfactualLog") -> list[str]:
    from memguard.methods.conmem.log import ReasonVerdict, TieBreakVerdict

    lines: list[str] = []
    tie_break, reason = log.tie_break, log.reason
    if isinstance(tie_break, TieBreakVerdict):
        decision = "store" if tie_break.store else "do not store"
        lines.append(f"tie-break: {decision}: {tie_break.reason}")
    elif tie_break is not None:
        lines.append(f"tie-break: {_failure(tie_break)}")
    if isinstance(reason, ReasonVerdict):
        certainty = "" if reason.confidence is None else f", confidence {reason.confidence:.2f}"
        explanation = f": {reason.explanation}" if reason.explanation else ""
        lines.append(f"reason: {reason.reason_type}{certainty}{explanation}")
    elif reason is not None:
        lines.append(f"reason: {_failure(reason)}")
    counts = [f"{name.replace('_', ' ')} {n}" for name, n in log.repairs.model_dump().items() if n]
    if counts:
        lines.append(f"repaired: {', '.join(counts)}")
    if log.calls:
        calls = ", ".join(f"{stage} {usage.calls}" for stage, usage in log.calls.items())
        lines.append(f"calls: {calls}")
    return lines


def _failure(inconclusive: "Inconclusive") -> str:
    return f"{inconclusive.reason} {inconclusive.detail}"


def _situation(read: "ReadReport") -> str:
    from memguard.schema.read import Situation

    judge = read.models.get("adjudicator", "")
    by = f", as {judge} judged" if judge else ""
    situation = read.ledger.situation
    if isinstance(situation, Situation):
        view = ", and the user's own view" if situation.asks_view else ""
        target = _TARGETS[situation.target]
        return f"{read.method}: an answer about {target}, {situation.mode}{view}{by}"
    detail = f" ({situation.detail})" if situation is not None and situation.detail else ""
    return f"{read.method}: what the query asks for was not judged{detail}"


def print_units(read: "ReadReport", verdicts: Sequence["UnitVerdict"], *, title: str) -> None:
    """Print units by permission, with the row and the reason that decided about each."""
    from rich.text import Text

    out = console()
    out.print(title, style="bold")
    locations = {memory.id: " / ".join(memory.namespace) for memory in read.memories}
    several = len(read.namespaces) > 1
    # Not sorted by permission: the order is that of the prompt, which a reader compares it with.
    for permission, group in groupby(verdicts, key=lambda verdict: verdict.permission):
        style, meaning = _PERMISSIONS[permission]
        out.print(Text(f"  {permission}: ", style=style).append(meaning, style="default"))
        for verdict in group:
            print_indented(_shortened(verdict.unit.text), columns=4)
            explanation = verdict.explanation or "no reason recorded"
            reason = f"{_WITHHELD[verdict.withheld or 'denied']}{explanation}"
            location = f"; in {locations.get(verdict.unit.memory_id, '')}" if several else ""
            line = f"row {verdict.row}: {reason} ({_describe(verdict)}{location})"
            print_indented(line, columns=6, style="dim")


def _describe(verdict: "UnitVerdict") -> str:
    """What the decision used: when the unit was said, how near it is, and its attributes."""
    unit = verdict.unit
    parts = [f"said {unit.said_at:%Y-%m-%d}" if unit.said_at else "said at an unknown time"]
    if unit.score is not None:
        parts.append(f"nearness {unit.score:.2f}")
    attributes = verdict.attributes
    if attributes is not None:
        values = attributes.model_dump(mode="json")
        parts.append(values.get("detail") or ", ".join(_values(values)))
    if verdict.evidence_conflict:
        parts.append("the evidence says otherwise")
    return "; ".join(part for part in parts if part)


def _values(attributes: dict[str, object]) -> list[str]:
    return [
        name if value is True else str(value) if name in _SELF_EXPLAINING else f"{name} {value}"
        for name, value in attributes.items()
        if value not in {"", False, None}
    ]


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= _MAX_TEXT:
        return plain
    return f"{plain[:_MAX_TEXT]} [... {len(plain)} characters]"


def _print_whole(read: "ReadReport") -> None:
    out = console()
    if read.dialogue:
        out.print("\nThe dialogue before the query:")
    for turn in read.dialogue:
        out.print(f"  [{turn.id}] {turn.speaker or turn.role}: {_shortened(turn.content)}")
    if read.evidence:
        out.print("\nEvidence:")
    for document in read.evidence:
        out.print(f"  {document.source or 'text'}: {_shortened(document.text)}")
    out.print("\nSettings: " + ", ".join(f"{name} {value}" for name, value in read.spec.items()))
    for prompt in read.prompts:
        out.print(f"prompt {prompt.name} version {prompt.version} ({prompt.digest})")


def _print_end(read: "ReadReport") -> None:
    out = console()
    out.print("")
    for flag in read.flags:
        # A note of the local adjudicator explains its flag in more detail.
        if flag != "local_adjudicator":
            out.print(f"note: {flag}: {FLAGS[flag]}")
    for failure in read.failures:
        out.print(f"not done: {failure.step}: {failure.code} {failure.message}")
    for note in read.notes:
        out.print(f"note: {note}")
    cached = f", units of {read.cached} memories were reused" if read.cached else ""
    out.print(
        f"{len(read.memories)} memories considered{cached}; {read.usage.calls} model calls, "
        f"{read.usage.tokens} tokens"
    )
