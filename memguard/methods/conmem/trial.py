"""One probe: answered without and with the memory, then judged and audited.

```text
START -> control, treatment -> quality, audit -> END
```

Judging begins as soon as this probe's own two answers are there, whatever the other probes do.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memguard.methods.conmem.answers import Audit, Comparison, read_comparison
from memguard.methods.conmem.panel import Panel
from memguard.methods.conmem.progress import step
from memguard.methods.conmem.state import (
    Spent,
    Step,
    TrialInput,
    TrialOutput,
    TrialPart,
    TrialState,
)
from memguard.policy.cmte import shown_as_a
from memguard.portal import dual
from memguard.rendering.quote import quote, quote_turns
from memguard.schema.conmem_log import Arm, AttributionVerdict, QualityVerdict, Response
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

NAME = "try_probe"


async def answer_arm(state: TrialState, *, arm: Arm, panel: Panel) -> dict[str, Any]:
    """Answer the probe. The arms differ in the memory's block and in nothing else."""
    information = ""
    if arm == "treatment":
        information = f"<user_information>\n{quote(state['memory'])}\n</user_information>\n"
    with step(arm, case=state["case_id"], role=state["role"]) as event:
        got = await panel.respond(information=information, request=quote(state["query"]))
        value = got.text
        if not isinstance(value, Inconclusive):
            value = Response(text=value, cut_off=got.cut_off)
        event["usable"] = isinstance(value, Response)
    return _part(state, arm, value=value, prompt="respond", usage=got.usage, notes=got.notes)


async def judge_quality(state: TrialState, *, panel: Panel) -> dict[str, Any]:
    """Compare the answers blindly; nothing is asked where an answer is missing."""
    answers = _answers(state["parts"])
    if answers is None:
        return {}
    first = shown_as_a(seed=panel.spec.seed, case_id=state["case_id"], role=state["role"])
    second: Arm = "control" if first == "treatment" else "treatment"
    with step("quality", case=state["case_id"], role=state["role"]) as event:
        got = await panel.ask(
            "quality",
            Comparison,
            slots={
                "history": quote_turns(state["history"]),
                "query": quote(state["query"]),
                "response_a": quote(answers[first].text),
                "response_b": quote(answers[second].text),
            },
            parse=read_comparison,
        )
        value: Any = got.value
        if isinstance(value, Comparison):
            value = QualityVerdict(letter=value.winner, shown_as_a=first, reason=value.reason)
        event["usable"] = isinstance(value, QualityVerdict)
    return _part(state, "quality", value=value, prompt="quality", usage=got.usage, notes=got.notes)


async def audit_attribution(state: TrialState, *, panel: Panel) -> dict[str, Any]:
    """Ask what the memory did; nothing is asked where an answer is missing."""
    answers = _answers(state["parts"])
    if answers is None:
        return {}
    with step("audit", case=state["case_id"], role=state["role"]) as event:
        got = await panel.ask(
            "audit",
            Audit,
            slots={
                "history": quote_turns(state["history"]),
                "candidate": quote(state["memory"]),
                "query": quote(state["query"]),
                "control": quote(answers["control"].text),
                "treatment": quote(answers["treatment"].text),
            },
            parse=None,
        )
        value: Any = got.value
        if isinstance(value, Audit):
            value = AttributionVerdict(**value.model_dump())
        event["usable"] = isinstance(value, AttributionVerdict)
    return _part(state, "audit", value=value, prompt="audit", usage=got.usage, notes=got.notes)


def create_trial_graph(panel: Panel) -> CompiledStateGraph[Any, Any, Any, Any]:
    """One probe as a graph; what an ablation leaves out is not in it."""
    builder = StateGraph(TrialState, input_schema=TrialInput, output_schema=TrialOutput)
    for arm in ("control", "treatment"):
        builder.add_node(arm, dual(partial(answer_arm, arm=arm, panel=panel), name=arm))
        builder.add_edge(START, arm)
    if panel.spec.quality_judge:
        builder.add_node("quality", dual(partial(judge_quality, panel=panel)))
    if panel.spec.auditor:
        builder.add_node("audit", dual(partial(audit_attribution, panel=panel)))
    for judge in [name for name in ("quality", "audit") if name in builder.nodes]:
        builder.add_edge(["control", "treatment"], judge)
        builder.add_edge(judge, END)
    return builder.compile(name=NAME)


def _answers(parts: Sequence[TrialPart]) -> dict[Arm, Response] | None:
    found: dict[Arm, Response] = {
        part.step: part.value
        for part in parts
        if (part.step in {"control", "treatment"}) and isinstance(part.value, Response)
    }  # pyright: ignore[reportAssignmentType] - the steps are narrowed to the arms
    return found if len(found) == len(("control", "treatment")) else None


def _part(
    state: TrialState,
    name: Step,
    *,
    value: Any,
    prompt: str,
    usage: Usage,
    notes: tuple[str, ...],
) -> dict[str, Any]:
    part = TrialPart(role=state["role"], query=state["query"], step=name, value=value)
    return {"parts": [part], "spent": [Spent(prompt=prompt, usage=usage, notes=notes)]}
