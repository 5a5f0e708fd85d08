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
from memguard.methods.consistency_gate import create_consistency_gate_graph, make_judge
from memguard.prompts import Prompt
from memguard.schema.config import ConsistencyGate

GateGraph = CompiledStateGraph[Any, Any, Any, Any]
"""A method: `{"candidate", "context", "run_id"}` in, `{"decision", "report"}` out."""

GateLike = ConsistencyGate | str | GateGraph
"""A spec, the name of a default spec, or a graph of your own with a method's input and output."""

BY_NAME: dict[str, ConsistencyGate] = {"consistency": ConsistencyGate()}
"""The default spec of each method, by its short name."""


STAGES = ("default", "writer", "judge")
"""What a model can be named for; `default` serves where no other is named."""

PROMPTS = (
    "writer/extract",
    "consistency_gate/support",
    "consistency_gate/support_yes_no",
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
        models: By stage; `judge` is asked for, then `default`.
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
    prompt_name = "support" if spec.variant == "soft" else "support_yes_no"
    prompt = prompts.get(f"consistency_gate/{prompt_name}")
    model = models.get("judge", models["default"])
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    judge = make_judge(model, spec=spec, prompt=prompt)
    return Gate(
        name="consistency_gate",
        graph=create_consistency_gate_graph(model, spec=spec, store=store, prompt=prompt),
        fingerprint=f"consistency_gate:{settings}:{judge.fingerprint}",
    )


def _spec_named(name: str) -> ConsistencyGate:
    try:
        return BY_NAME[name]
    except KeyError:
        msg = f"there is no gate named {name!r}: use one of {sorted(BY_NAME)}, or pass a spec"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID) from None
