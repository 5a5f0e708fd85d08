"""From what a user lists in `gates=[...]` to graphs that can be asked."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.models import ModelLike
from memguard.methods.conmem import (
    create_conmem_graph,
    prompt_names,
    resolve_stage_models,
)
from memguard.methods.conmem.config import ROLES, ConMem
from memguard.methods.conmem.config import STAGES as CONMEM_STAGES
from memguard.methods.consistency_gate import create_consistency_gate_graph, make_judge
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
"""What a model can be named for; `default` serves where no other is named, and `judge` the stages
of ConMem that judge."""

PROMPTS = (
    "writer/extract",
    "consistency_gate/support",
    "consistency_gate/support_yes_no",
    *prompt_names(),
)
"""The prompts that can be replaced."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A method ready to be asked."""

    name: str
    """The method's name, as reports carry it."""
    graph: GateGraph
    """The method."""
    fingerprint: str
    """Of all that can change its ruling: settings, model, prompt."""
    least_calls: int = 0
    """Model calls that a candidate costs here at least; 0 where nobody can say."""


def build_gates(
    gates: Sequence[GateLike],
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> tuple[Gate, ...]:
    """Build each gate, in the order given: cheap ones belong first.

    Args:
        gates: Specs, names or graphs.
        models: By stage; where a stage is not named, `judge` and then `default`.
        store: The memory store, for gates that read it.
        prompts: Your own prompts by name, for example `consistency_gate/support`.

    Raises:
        ConfigurationError: If a gate is unknown or cannot be built.
    """
    return tuple(_build(gate, models=models, store=store, prompts=prompts) for gate in gates)


def check_names(given: Mapping[str, object], *, known: Sequence[str], what: str) -> None:
    """Refuse a name that would have no effect.

    Raises:
        ConfigurationError: If a name is not one of `known`.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        msg = f"`{what}` names {unknown[0]!r}, which nothing uses: use {', '.join(known)}"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


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
    prompt = prompts.get(f"consistency_gate/{prompt_name}")
    model = models.get("judge", models["default"])
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    judge = make_judge(model, spec=spec, prompt=prompt)
    return Gate(
        name="consistency_gate",
        graph=create_consistency_gate_graph(model, spec=spec, store=store, prompt=prompt),
        fingerprint=f"consistency_gate:{settings}:{judge.fingerprint}",
        least_calls=0 if model == "local" or spec.local_first else 1,
    )


def _conmem(
    spec: ConMem, *, models: Mapping[str, ModelLike], prompts: Mapping[str, Prompt]
) -> Gate:
    own = {name: prompt for name, prompt in prompts.items() if name.startswith("conmem/")}
    resolved = resolve_stage_models(models["default"], spec=spec, models=models, prompts=own)
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return Gate(
        name="conmem",
        graph=create_conmem_graph(models["default"], spec=spec, models=models, prompts=own),
        fingerprint=f"conmem:{settings}:{resolved.fingerprint}",
        # One to write, one to validate; per probe two answers, and who judges them.
        least_calls=2 + len(ROLES) * (2 + spec.quality_judge + spec.auditor),
    )


def _spec_named(name: str) -> ConsistencyGate | ConMem:
    try:
        return BY_NAME[name]
    except KeyError:
        msg = f"there is no gate named {name!r}: use one of {sorted(BY_NAME)}, or pass a spec"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID) from None
