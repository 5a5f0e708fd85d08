"""`memguard presets`: the named settings of every method."""

from collections.abc import Mapping
from typing import Any

from memguard.cli.options import JsonOption
from memguard.cli.output import print_json, print_table


def presets(as_json: JsonOption = False) -> None:
    """Print the named settings of each method, in full."""
    from memguard.methods.conmem.config import CONMEM_PRESETS
    from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS
    from memguard.methods.writer.config import WRITER_PRESETS
    from memguard.schema.read import FACTOR_COMPILED_PRESETS, PERMISSION_SEMANTIC_PRESETS

    methods: dict[str, Mapping[str, Any]] = {
        "writer": WRITER_PRESETS,
        "consistency_gate": CONSISTENCY_GATE_PRESETS,
        "conmem": CONMEM_PRESETS,
        "factor_compiled": FACTOR_COMPILED_PRESETS,
        "permission_semantic": PERMISSION_SEMANTIC_PRESETS,
    }
    dumped = {
        method: {name: spec.model_dump(mode="json") for name, spec in named.items()}
        for method, named in methods.items()
    }
    if as_json:
        print_json(dumped)
        return
    for method, named in dumped.items():
        _print_method(method, {name: _flat(spec) for name, spec in named.items()})


def _print_method(method: str, named: Mapping[str, Mapping[str, Any]]) -> None:
    # Presets of a method are of one type, so the first one names the settings of all.
    settings = next(iter(named.values()))
    rows = [(name, *(str(spec[name]) for spec in named.values())) for name in settings]
    print_table(method, ("setting", *named), rows)


def _flat(spec: Mapping[str, Any], *, under: str = "") -> dict[str, Any]:
    """Nested settings by their path, for example `weights.risk_risk`."""
    flat: dict[str, Any] = {}
    for name, value in spec.items():
        path = f"{under}{name}"
        flat |= _flat(value, under=f"{path}.") if isinstance(value, Mapping) else {path: value}
    return flat
