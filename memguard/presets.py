"""Gates and admission methods by name, with the presets of each.

Command line, Studio and pictures take names; `choose_gates` and `choose_admission` turn them into
settings.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar, get_args

from memguard.errors import ErrorCode, InvalidInputError
from memguard.methods.conmem.config import CONMEM_PRESETS, ConMem
from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS, ConsistencyGate
from memguard.methods.reconcile.config import RECONCILE_PRESETS, Reconcile
from memguard.methods.writer.config import WRITER_PRESETS, Writer
from memguard.read.admission import AdmissionSpec
from memguard.schema.read import (
    FACTOR_COMPILED_PRESETS,
    PERMISSION_SEMANTIC_PRESETS,
    Rendering,
)
from memguard.schema.relevance_gate import RELEVANCE_GATE_PRESETS, RelevanceGate

GateSpec = ConsistencyGate | ConMem

GATE_PRESETS: Mapping[str, Mapping[str, GateSpec]] = MappingProxyType(
    {"consistency": CONSISTENCY_GATE_PRESETS, "conmem": CONMEM_PRESETS}
)
"""Presets of each gate by its short name; the first one is the default."""

ADMISSION_PRESETS: Mapping[str, Mapping[str, AdmissionSpec]] = MappingProxyType(
    {
        "ps": PERMISSION_SEMANTIC_PRESETS,
        "fc": FACTOR_COMPILED_PRESETS,
        "relevance": RELEVANCE_GATE_PRESETS,
    }
)
"""Presets of each admission method by its short name; the first one is the default."""

S = TypeVar("S")


def choose_gates(names: Sequence[str], *, presets: Sequence[str] = ()) -> tuple[GateSpec, ...]:
    """The specs of these gates, in the same order.

    Args:
        names: Short names of gates, for example `("consistency", "conmem")`.
        presets: Names of presets. Each gate takes the first of them that it has, or its default.

    Raises:
        InvalidInputError: If there is no such gate, or none of the gates has a preset.
    """
    return _choose(GATE_PRESETS, names, presets=presets, kind="gate")


def choose_admission(
    name: str, *, presets: Sequence[str] = (), rendering: str = ""
) -> AdmissionSpec:
    """The spec of an admission method.

    Args:
        name: Its short name: `ps`, `fc` or `relevance`.
        presets: Names of presets; the first that the method has is used, or its default.
        rendering: How admitted units are rendered; the preset's rendering if empty. Admission by
            relevance renders whole memories and takes none.

    Raises:
        InvalidInputError: If there is no such method, preset or rendering.
    """
    (spec,) = _choose(ADMISSION_PRESETS, [name], presets=presets, kind="admission")
    # Checked here, because `model_copy` would accept any text.
    if rendering and rendering not in get_args(Rendering):
        msg = f"there is no rendering {rendering!r}: use one of {sorted(get_args(Rendering))}"
        raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    if not rendering or isinstance(spec, RelevanceGate):
        return spec
    return spec.model_copy(update={"rendering": rendering})


def choose_writer(presets: Sequence[str] = ()) -> Writer:
    """The spec of the writer.

    Args:
        presets: Names of presets; the first one is used.

    Raises:
        InvalidInputError: If the writer has no such preset.
    """
    (spec,) = _choose({"writer": WRITER_PRESETS}, ["writer"], presets=presets, kind="method")
    return spec


def choose_reconcile(presets: Sequence[str] = ()) -> Reconcile:
    """The spec of reconciliation.

    Args:
        presets: Names of presets; the first one is used.

    Raises:
        InvalidInputError: If reconciliation has no such preset.
    """
    methods = {"reconcile": RECONCILE_PRESETS}
    (spec,) = _choose(methods, ["reconcile"], presets=presets, kind="method")
    return spec


def split_presets(
    presets: Sequence[str], *, gates: Sequence[str], admission: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Presets of a host with both guards: those for its gates, and those for its admission.

    A preset that both have is for both. One that neither has is for the gates, which refuse it.
    """
    # An unknown gate or method has no presets here; choosing it afterwards names the mistake.
    by_gates = {preset for name in gates for preset in GATE_PRESETS.get(name, {})}
    by_admission = set(ADMISSION_PRESETS.get(admission, {}))
    return (
        tuple(p for p in presets if p in by_gates or p not in by_admission),
        tuple(p for p in presets if p in by_admission),
    )


def _choose(
    methods: Mapping[str, Mapping[str, S]],
    names: Sequence[str],
    *,
    presets: Sequence[str],
    kind: str,
) -> tuple[S, ...]:
    for name in names:
        if name not in methods:
            msg = f"there is no {kind} named {name!r}: use one of {sorted(methods)}"
            raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    available = sorted({preset for name in names for preset in methods[name]})
    for preset in presets:
        # A preset that no method has would have no effect, and a misspelled one would go unnoticed.
        if preset not in available:
            chosen = " and ".join(names) or f"no {kind}"
            msg = f"{chosen} has no preset {preset!r}: use one of {available}"
            raise InvalidInputError(msg, code=ErrorCode.SPEC_INVALID)
    specs: list[S] = []
    for name in names:
        # Methods may share the name of a preset; one that lacks it keeps its default.
        default = next(iter(methods[name]))
        preset = next((preset for preset in presets if preset in methods[name]), default)
        specs.append(methods[name][preset])
    return tuple(specs)
