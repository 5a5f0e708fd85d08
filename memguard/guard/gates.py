"""From what a user lists in `gates=[...]` to graphs that can be run."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.models import ModelLike
from memguard.llm.stages import LOCAL, model_of
from memguard.methods.conmem import (
    JUDGE_STAGES,
    build_conmem_graph,
    prompt_names,
    resolve_stage_models,
)
from memguard.methods.conmem.config import ROLES, ConMem
from memguard.methods.conmem.config import STAGES as CONMEM_STAGES
from memguard.methods.consistency_gate import build_consistency_gate_graph, make_judge
from memguard.prompts import Prompt
from memguard.schema.config import ConsistencyGate

GateGraph = CompiledStateGraph[Any, Any, Any, Any]
"""A method: `{"candidate", "context", "run_id"}` in, `{"decision", "report"}` out."""

GateLike = ConsistencyGate | ConMem | str | GateGraph
"""A spec, the name of a default spec, or a graph of your own with a method's input and output."""

BY_NAME: dict[str, ConsistencyGate | ConMem] = {
    "conmem": ConMem(),
    "consistency": ConsistencyGate(),
}
"""The default spec of each method, by its short name."""


STAGES = ("default", "writer", "judge", *CONMEM_STAGES)
"""Stages that `models` can name; `judge` also serves the stages of ConMem that judge, and `default`
every stage without a model of its own."""

PROMPTS = (
    "writer/extract",
    "consistency_gate/support",
    "consistency_gate/support_yes_no",
    *prompt_names(),
)
"""The prompts that can be replaced."""


RESERVED_NAMES = frozenset(
    {"candidate", "context", "run_id", "decision", "report", "conclusion", "conclude"}
)
"""State keys and a node of the graph of all gates; no gate can have the same name."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A method ready to be run."""

    name: str
    """Names its node: the method's name, with a number for a second gate of the same name."""
    graph: GateGraph
    """The method."""
    fingerprint: str
    """Of all that can change its ruling: settings, model, prompt."""
    min_calls: int = 0
    """Model calls that a candidate costs here at least; 0 where that is not known."""


def build_gates(
    gates: Sequence[GateLike],
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> tuple[Gate, ...]:
    """Build each gate once, in order: cheap ones belong first.

    Args:
        gates: Specs, names or graphs.
        models: By stage, as `memguard.llm.stages.resolve_stages` returns them.
        store: The memory store, for gates that read it.
        prompts: Your own prompts by name, for example `consistency_gate/support`.

    Raises:
        ConfigurationError: If a gate is unknown or cannot be built, or a stage has no model.
    """
    built: list[Gate] = []
    for like in gates:
        gate = _build(like, models=models, store=store, prompts=prompts)
        names = {gate.name for gate in built}
        built.append(replace(gate, name=_node_name(gate.name, names)))
    return tuple(built)


def _node_name(name: str, names: Collection[str]) -> str:
    """A name that LangGraph takes for a node and that no earlier gate has."""
    # Both characters separate the parts of a checkpoint namespace.
    base = name.replace(":", "_").replace("|", "_")
    if base in RESERVED_NAMES:
        base = f"{base}_gate"
    number, unique = 1, base
    while unique in names:
        number += 1
        unique = f"{base}_{number}"
    return unique


def digest_of(*parts: str) -> str:
    """A short name for settings: equal parts give equal digests."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def _build(
    gate: GateLike,
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> Gate:
    if isinstance(gate, CompiledStateGraph):
        return Gate(name=gate.get_name(), graph=gate, fingerprint=f"graph:{gate.get_name()}")
    spec = _spec_named(gate) if isinstance(gate, str) else gate
    if isinstance(spec, ConMem):
        return _conmem(spec, models=models, prompts=prompts)
    return _consistency(spec, models=models, store=store, prompts=prompts)


def _consistency(
    spec: ConsistencyGate,
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> Gate:
    prompt_name = "support" if spec.variant == "soft" else "support_yes_no"
    model = model_of(models, "judge")
    judge = make_judge(model, spec=spec, prompt=prompts.get(f"consistency_gate/{prompt_name}"))
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return Gate(
        name="consistency_gate",
        graph=build_consistency_gate_graph(judge, store=store),
        fingerprint=f"consistency_gate:{settings}:{judge.fingerprint}",
        min_calls=0 if model == LOCAL or spec.local_first else 1,
    )


def _conmem(
    spec: ConMem, *, models: Mapping[str, ModelLike], prompts: Mapping[str, Prompt]
) -> Gate:
    chosen = {
        stage: model_of(models, stage, *(("judge",) if stage in JUDGE_STAGES else ()))
        for stage in CONMEM_STAGES
    }
    overrides = {name: prompt for name, prompt in prompts.items() if name.startswith("conmem/")}
    resolved = resolve_stage_models(None, spec=spec, models=chosen, prompts=overrides)
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return Gate(
        name="conmem",
        graph=build_conmem_graph(resolved),
        fingerprint=f"conmem:{settings}:{resolved.fingerprint}",
        # One to generate, one to validate; per probe two answers, and the judges of these.
        min_calls=2 + len(ROLES) * (2 + spec.quality_judge + spec.auditor),
    )


def _spec_named(name: str) -> ConsistencyGate | ConMem:
    try:
        return BY_NAME[name]
    except KeyError:
        msg = f"there is no gate named {name!r}: use one of {sorted(BY_NAME)}, or pass a spec"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID) from None
