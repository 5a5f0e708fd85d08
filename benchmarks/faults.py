"""What every stage does under every fault of a model server.

```text
python -m benchmarks.faults --markdown
python -m benchmarks.faults --stages gate,answer --faults timeout,quota
```

Each run serves two memories, or two probes, over HTTP. All requests of one stage about one of them
meet the fault. The outcome must be the typed one, the requests must stay within their bound, the
other memory must be finished, and the receipt or the report must say what happened.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from langgraph.store.memory import InMemoryStore

from memguard import (
    Budget,
    ConMem,
    ConsistencyGate,
    FactorCompiled,
    PermissionSemantic,
    Writer,
    create_memory_agent,
    create_read_guard,
    create_write_guard,
    resolve_model,
)
from memguard.errors import ErrorCode, MemguardError
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadLog
from memguard.journal.receipts import ReceiptLog
from memguard.llm.models import Model
from memguard.methods.conmem.log import CounterfactualLog
from memguard.schema.decision import InconclusiveReason
from memguard.schema.receipt import Receipt
from memguard.testing import (
    ConMemScript,
    FaultInjector,
    FaultName,
    HashEmbeddings,
    LoopbackModelServer,
    ServerReply,
)
from memguard.testing.conmem import validity
from memguard.testing.faults import FAULTS
from memguard.testing.memory_model import memory_answer

NAMESPACE = ("memories", "faults")
HIT, SIBLING = "The user moved to Porto.", "The user rows on Sundays."
_SAID = ("I moved to Porto in the spring.", "I always row on Sundays.")
_QUERY = "Where do I live, and what do I do on Sundays?"

ATTEMPTS = 2
"""Requests for one answer, at most; `Model.max_attempts` of the runs."""
_TIMEOUT = 4.0
"""Seconds of one attempt. A shorter limit would hit answers without a fault on a busy machine."""
_LIMIT = 240.0
"""Seconds after which a run counts as stuck. So long that a busy machine never reaches it."""

Answerer = Callable[[dict[str, Any]], "str | ServerReply"]
_REASONS = frozenset(get_args(InconclusiveReason))
_CODES = frozenset(code.value for code in ErrorCode)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one run did."""

    outcomes: frozenset[str]
    """The reasons and error codes that receipts and reports tell; empty if nothing failed."""
    siblings: bool
    """Whether everything that the fault did not hit was finished."""
    admitted: bool
    """Whether the memory that was hit was stored or shown."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One kind of model call, and a run in which it occurs."""

    name: str
    prompt: str
    """A regular expression for the requests that the fault hits."""
    run: Callable[[Model], Awaitable[Result]]
    """Runs the surface that a user calls."""
    answers: Callable[[], Answerer]
    """The right answers."""
    calls: int = 1
    """Answers that the stage needs about what is hit."""
    asks: int = 2
    """How often it asks for one: an answer that cannot be read is requested once more."""
    n: bool = True
    """Whether the server gives several answers to one request."""
    takes_any_text: bool = False
    """Whether every text is an answer, as from the agent and the arms."""
    fails_safe: bool = True
    """Whether nothing may be admitted without this stage. For ConMem policy decides, by the value
    that a missing verdict could have."""
    admits: bool = True
    """Whether the memory is admitted if nothing fails."""

    @property
    def bound(self) -> int:
        """The most requests that the stage may cost."""
        return self.calls * self.asks * ATTEMPTS


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fault at one stage."""

    stage: str
    fault: FaultName
    outcomes: frozenset[str]
    requests: int
    """Requests of the stage that met the fault."""
    problems: tuple[str, ...] = ()
    """What the run did and should not have done."""


# -- the surfaces ------------------------------------------------------------------------------


async def _write(
    model: Model,
    *,
    candidates: Sequence[str] | None = (HIT, SIBLING),
    in_probe: bool = False,
    **settings: Any,
) -> Result:
    """A write through the guard, of some candidates or of what the writer extracts.

    With `in_probe` the fault hits the risk probe of each candidate, and the siblings are the other
    probes.
    """
    said: dict[str, Any] = {"messages": [("user", text) for text in _SAID]}
    if candidates is not None:
        said["candidates"] = list(candidates)
    store = InMemoryStore()
    async with Journal.memory() as journal:
        guard = create_write_guard(
            model,
            store=store,
            namespace=NAMESPACE,
            receipts=journal,
            budget=Budget(seconds=_LIMIT / 2),
            on_failure="report",
            **settings,
        )
        writes = (await guard.ainvoke(said))["writes"]
        # From the log and not from the report: what is not in it was not told.
        receipts = (await ReceiptLog(journal).alist()).receipts
    failures = [failure.model_dump(mode="json") for failure in writes.failures]
    stored = [str(item.value["content"]) for item in await store.asearch(NAMESPACE)]
    outcomes = {
        receipt.candidate.text: frozenset(_outcomes_in(receipt.model_dump(mode="json")))
        for receipt in receipts
    }
    told = frozenset(_outcomes_in(failures)).union(*outcomes.values())
    # A mistake in the settings ends the run, and the memories that it did not reach are named.
    stopped = bool(told & _CODES)
    unjudged = {candidate.text for candidate in writes.unjudged}
    if in_probe:
        finished = stopped or all(map(_other_probes_are_finished, receipts))
    else:
        finished = all(
            _is_finished(text, outcomes) or (stopped and bool(text in unjudged or writes.unread))
            for text in (candidates or (SIBLING,))
            if text != HIT
        )
    return Result(
        outcomes=told, siblings=finished, admitted=any("Porto" in text for text in stored)
    )


def _is_finished(text: str, outcomes: Mapping[str, frozenset[str]]) -> bool:
    """Whether a memory has a receipt without any failure."""
    # The writer of the loopback model words a memory by itself.
    word = "Sundays" if text == SIBLING else text
    return any(word in other and not told for other, told in outcomes.items())


def _other_probes_are_finished(receipt: Receipt) -> bool:
    report = receipt.reports[0]
    trials = CounterfactualLog.model_validate(report.evidence).trials
    others = [trial for trial in trials if trial.role != "risk"]
    return all(trial.attribution and trial.quality for trial in others) and not any(
        _outcomes_in([trial.model_dump(mode="json") for trial in others])
    )


async def _read(model: Model, spec: Any) -> Result:
    """A read of two memories, each in its own part of the adjudication."""
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings()})
    for key, text in (("a", HIT), ("b", SIBLING)):
        await store.aput(NAMESPACE, key, {"content": text})
    async with Journal.memory() as journal:
        guard = create_read_guard(
            model,
            store=store,
            namespace=NAMESPACE,
            receipts=journal,
            admission=spec,
            deadline=_LIMIT / 2,
        )
        await guard.ainvoke({"query": _QUERY})
        (read,) = (await ReadLog(journal).alist()).reads
    shown = {verdict.unit.text for verdict in read.ledger.shown}
    if read.failures:
        # A mistake in the settings ends the read: the answer continues without memory.
        codes = frozenset(failure.code for failure in read.failures)
        return Result(outcomes=codes, siblings=True, admitted=HIT in shown)
    told = set(_outcomes_in([read.model_dump(mode="json")]))
    # What failed for all units, and not for one of them, is a note.
    told |= {reason for note in read.notes for reason in _REASONS if reason in note}
    return Result(outcomes=frozenset(told), siblings=SIBLING in shown, admitted=HIT in shown)


async def _answer(model: Model) -> Result:
    """A turn of an agent that remembers by rules, so that the answer is its only model call."""
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings()})
    async with Journal.memory() as journal:
        agent = create_memory_agent(
            model, judge="local", store=store, namespace=NAMESPACE, receipts=journal, read=False
        )
        try:
            out: Any = await agent.ainvoke({"messages": [("user", _SAID[0])]})  # pyright: ignore[reportArgumentType]
        except MemguardError as error:
            return Result(outcomes=frozenset([error.code.value]), siblings=True, admitted=False)
    return Result(outcomes=frozenset(), siblings=True, admitted=bool(out["messages"][-1].text))


def _outcomes_in(value: Any) -> Iterator[str]:
    """The reasons of inconclusive verdicts and the codes of errors, anywhere in a JSON value."""
    if isinstance(value, list):
        for item in value:
            yield from _outcomes_in(item)
    if not isinstance(value, Mapping):
        return
    # `reason` also names the reason of a decision, which is no failure.
    names = ("inconclusive", "code", *(("reason",) if "detail" in value else ()))
    entries = [entry for name in names if isinstance(entry := value.get(name), str)]
    yield from (entry for entry in entries if entry in _REASONS | _CODES)
    for item in value.values():
        yield from _outcomes_in(item)


# -- the stages --------------------------------------------------------------------------------


def reading_answer(request: dict[str, Any]) -> str:
    """The right answers of an adjudicator, as benchmarks of reading give them."""
    # After the system message; behind it may be a first answer and the request to correct it.
    prompt = str(request["messages"][1]["content"])
    if "cannot both hold" in prompt:
        return json.dumps({"conflicts": []})
    if "<memories>" in prompt:
        memories = re.findall(r'^\[(m\d+)\] (".*")$', prompt, re.MULTILINE)
        return json.dumps(
            {
                "memories": [
                    {"memory": name, "units": [{"text": json.loads(text), "kind": "fact"}]}
                    for name, text in memories
                ]
            }
        )
    names = re.findall(r"^\[(u\d+)\] ", prompt, re.MULTILINE)
    row = _ENTRY if "- scope:" in str(request["messages"][0]["content"]) else _UNIT
    units = [{"unit": name, "reason": "near", **row} for name in names]
    return json.dumps({"situation": _SITUATION, "units": units})


_SITUATION = {"target": "user", "mode": "factual", "asks_view": False}
_UNIT = {
    "kind": "fact",
    "subject": "user",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
    "evidence_conflict": False,
    "conflicts_with": [],
    "influence": 0.5,
}
_ENTRY = {
    "scope": "in",
    "allowed_content": "",
    "subject": "match",
    "role": "fact",
    "safety": False,
    "epistemic": "stated",
    "temporal": "current",
    "utility": "needed",
    "evidence_conflict": False,
    "conflicts_with": [],
    "influence": 0.5,
}


_CANDIDATE = rf'<candidate>\n"{re.escape(HIT)}"\n</candidate>.*'
_INVALID = validity(risk=False)


def _conmem(
    name: str,
    prompt: str,
    *,
    outcomes: Mapping[Any, Any] | None = None,
    rejected: int = 0,
    in_probe: bool = False,
    **stage: Any,
) -> Stage:
    """A stage of ConMem; its probes are `rejected` so many times, so that they are repaired."""
    # A script that rejects probes cannot tell the candidates apart, so there is one of them.
    candidates = (HIT,) if rejected else (HIT, SIBLING)

    def answers() -> Answerer:
        answers = {"validation": [_INVALID] * rejected} if rejected else {}
        effects = {"relevant": "helpful"} if outcomes is None else outcomes
        return ConMemScript(effects, answers=answers).serve

    return Stage(
        name=f"ConMem: {name}",
        prompt=prompt,
        run=lambda model: _write(model, gates=[ConMem()], candidates=candidates, in_probe=in_probe),
        answers=answers,
        fails_safe=False,
        **stage,
    )


def _gate(name: str, *, calls: int = 1, n: bool = True, **spec: Any) -> Stage:
    return Stage(
        name=f"gate: {name}",
        prompt=rf"<memory>\n.*{re.escape(HIT)}.*</memory>",
        run=lambda model: _write(model, gates=[ConsistencyGate(**spec)]),
        answers=lambda: memory_answer,
        calls=calls,
        asks=1,
        n=n,
    )


def _reader(name: str, prompt: str, spec: Any, **stage: Any) -> Stage:
    return Stage(
        name=name,
        prompt=prompt,
        run=lambda model: _read(model, spec),
        answers=lambda: reading_answer,
        **stage,
    )


_UNITS = rf"<units>\n(?:(?!</units>).)*{re.escape(HIT)}.*<request>"

STAGES: tuple[Stage, ...] = (
    Stage(
        name="writer",
        prompt=r"<new_turns>.*Porto.*</new_turns>",
        run=lambda model: _write(
            model, candidates=None, writer=Writer(turns_per_chunk=1, context_turns=0)
        ),
        answers=lambda: memory_answer,
    ),
    _gate("soft"),
    _gate("soft, one request each", calls=5, n=False),
    _gate("log-probability", variant="logprob"),
    _conmem("probes", rf"{_CANDIDATE}## Task: future probes\n"),
    _conmem("validation", rf"{_CANDIDATE}## Task: probe validation\n"),
    _conmem("regeneration", r"## Task: future probes, again\n", rejected=1, calls=2),
    _conmem("repair", r"## Task: one future probe\n", rejected=3),
    _conmem("reconstruction", r"## Task: future probes, from the beg", rejected=4),
    _conmem(
        "control",
        r'\A(?!.*<user_information>)(?!.*## Task).*<request>\n"risk',
        calls=2,
        asks=1,
        in_probe=True,
        takes_any_text=True,
    ),
    _conmem(
        "treatment",
        r'<user_information>.*<request>\n"risk',
        calls=2,
        asks=1,
        in_probe=True,
        takes_any_text=True,
    ),
    _conmem("quality judge", r'blind comparison\n.*<query>\n"risk', calls=2, in_probe=True),
    _conmem("auditor", rf"{_CANDIDATE}## Task: attribution audit\n", calls=3),
    _conmem("tie-break", rf"{_CANDIDATE}## Task: tie-break\n", outcomes={}),
    _conmem("reason", rf"{_CANDIDATE}## Task: reason\n", outcomes={"risk": "risk"}, admits=False),
    _reader("FC: adjudication", _UNITS, FactorCompiled(part_units=1)),
    _reader(
        "FC: conflicts",
        "cannot both hold",
        FactorCompiled(part_units=1),
        asks=1,
        fails_safe=False,
    ),
    _reader("PS: decomposition", "<memories>", PermissionSemantic(), fails_safe=False),
    _reader("PS: adjudication", _UNITS, PermissionSemantic(part_units=1)),
    Stage(
        name="agent: answer",
        prompt="",
        run=_answer,
        answers=lambda: lambda _: "Noted.",
        asks=1,
        takes_any_text=True,
    ),
)

# -- what must happen --------------------------------------------------------------------------

_UNREADABLE = frozenset({"parse_failure", "off_menu"})
EXPECTED: Mapping[FaultName, frozenset[str]] = {
    **dict.fromkeys(FAULTS, frozenset({"provider_error"})),
    "quota": frozenset({"model-quota"}),
    "unauthorized": frozenset({"model-auth"}),
    "redirect": frozenset({"model-unreachable"}),
    "timeout": frozenset({"timeout"}),
    "slow_drip": frozenset({"timeout"}),
    "empty_answer": frozenset({"parse_failure"}),
    "half_answer": frozenset({"truncated"}),
    "broken_answer": _UNREADABLE,
    "content_filter": frozenset({"refusal"}),
    "filter_error": frozenset({"refusal"}),
    "refusal": frozenset({"refusal"}),
    "wrong_language": _UNREADABLE,
    "tool_call": _UNREADABLE,
    # The client reads the body for what it is.
    "wrong_type": frozenset(),
    "no_logprobs": frozenset(),
}
"""Any of these outcomes, and no other; an empty set says that the stage succeeds."""

_ANY_TEXT: frozenset[FaultName] = frozenset({"half_answer", "broken_answer", "wrong_language"})
"""Faults that a stage without a form of its answers cannot tell from an answer."""


def expected_outcomes(stage: Stage, fault: FaultName) -> frozenset[str]:
    """The outcomes that a fault may have at a stage; empty if it must do no harm."""
    if stage.takes_any_text and fault in _ANY_TEXT:
        return frozenset()
    if fault == "no_logprobs" and "log-probability" in stage.name:
        return frozenset({"model-logprobs"})
    if stage.run is _answer:
        # The agent has no use for a missing answer, so it raises.
        expected = EXPECTED[fault]
        return expected if expected <= _CODES else frozenset({"answer-failed"})
    if fault == "half_answer" and "log-probability" in stage.name:
        # Of one word only half is there, which is no word of the menu.
        return _UNREADABLE
    return EXPECTED[fault]


async def run_cell(stage: Stage, fault: FaultName) -> Cell:
    """One run, and what is wrong with it."""
    answers = FaultInjector(stage.answers(), fault, when=stage.prompt)
    with LoopbackModelServer(answers, n="yes" if stage.n else "refused") as server:
        # A name of its own, so that no limiter and no refused setting is shared between runs.
        model = resolve_model(
            f"openai:faults-{id(server)}",
            base_url=server.url,
            api_key="test-key",
            timeout=_TIMEOUT if fault in {"timeout", "slow_drip"} else 60.0,
            max_attempts=ATTEMPTS,
            backoff=0.001,
        )
        try:
            async with asyncio.timeout(_LIMIT):
                result = await stage.run(model)
        except Exception as error:  # an error that is not typed is a problem of the cell
            told = frozenset([f"raised {type(error).__name__}"])
            result = Result(outcomes=told, siblings=False, admitted=False)
        hit = re.compile(stage.prompt, re.DOTALL)
        requests = sum(hit.search(chat.text) is not None for chat in server.chats)
    return Cell(
        stage=stage.name,
        fault=fault,
        outcomes=result.outcomes,
        requests=requests,
        problems=tuple(_problems(stage, fault, result=result, requests=requests)),
    )


def _problems(stage: Stage, fault: FaultName, *, result: Result, requests: int) -> Iterator[str]:
    expected = expected_outcomes(stage, fault)
    if not requests:
        yield "the stage was not reached"
    if not (result.outcomes <= expected and bool(result.outcomes) == bool(expected)):
        yield f"{sorted(result.outcomes)} instead of {sorted(expected)}"
    # One request more tells that the server gives one answer at a time.
    if requests > stage.bound + (not stage.n):
        yield f"{requests} requests, and {stage.bound} are the bound"
    if not result.siblings:
        yield "a sibling was not finished"
    if expected and stage.fails_safe and result.admitted:
        yield "the memory was admitted"
    if not expected and stage.admits and not result.admitted:
        yield "the memory was not admitted"


async def run_cells(pairs: Sequence[tuple[Stage, FaultName]], *, workers: int = 4) -> list[Cell]:
    """A run for each stage and fault, some of them at a time; the results are in order."""
    cells: dict[int, Cell] = {}
    pending = iter(enumerate(pairs))

    async def work() -> None:
        for index, (stage, fault) in pending:
            cells[index] = await run_cell(stage, fault)

    # A few workers only: on a busy machine, answers without a fault would be late too.
    await asyncio.gather(*(work() for _ in range(workers)))
    return [cells[index] for index in sorted(cells)]


def render(cells: Sequence[Cell]) -> str:
    """The matrix in Markdown: a row per fault, a column per group of stages with equal outcomes.

    An outcome that is wrong has an exclamation mark.
    """
    columns: dict[str, dict[str, str]] = {}
    for cell in cells:
        label = ", ".join(sorted(cell.outcomes)) or "no harm"
        columns.setdefault(cell.stage, {})[cell.fault] = label + ("!" if cell.problems else "")
    groups: list[tuple[dict[str, str], list[str]]] = []
    for stage, outcomes in columns.items():
        stages = next((names for column, names in groups if column == outcomes), None)
        if stages is None:
            groups.append((outcomes, [stage]))
        else:
            stages.append(stage)
    letters = [chr(ord("A") + number) for number in range(len(groups))]
    legend = [f"* {x}: {'; '.join(names)}" for x, (_, names) in zip(letters, groups, strict=True)]
    rows = [
        f"| `{fault}` | {' | '.join(column.get(fault, '') for column, _ in groups)} |"
        for fault in dict.fromkeys(cell.fault for cell in cells)
    ]
    head = [f"| fault | {' | '.join(letters)} |", "|---" * (len(groups) + 1) + "|"]
    return "\n".join([*legend, "", *head, *rows])


def main() -> None:
    """Run the matrix, and print it with the problems; the exit status says if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--markdown", action="store_true", help="print the matrix for the docs")
    parser.add_argument("--stages", default="", help="beginnings of stages, separated by commas")
    parser.add_argument("--faults", default="", help="names of faults, separated by commas")
    parser.add_argument("--workers", type=int, default=4, help="runs at the same time")
    options = parser.parse_args()
    starts = tuple(options.stages.split(","))
    names = options.faults.split(",") if options.faults else []
    pairs: list[tuple[Stage, FaultName]] = [
        (stage, fault)
        for fault in FAULTS
        for stage in STAGES
        if stage.name.startswith(starts) and (not names or fault in names)
    ]
    cells = asyncio.run(run_cells(pairs, workers=options.workers))
    if options.markdown:
        print(render(cells))
    wrong = [cell for cell in cells if cell.problems]
    for cell in wrong:
        print(f"{cell.fault} at {cell.stage}: {'; '.join(cell.problems)}", file=sys.stderr)
    print(f"{len(cells)} runs, {len(wrong)} with problems", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
