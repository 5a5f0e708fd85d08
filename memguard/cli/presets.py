"""`memguard presets`: every named setting, in full."""

from memguard.cli.options import JsonOption


def presets(as_json: JsonOption = False) -> None:
    """Print the named settings of each method."""
    from memguard.cli.output import print_json, print_table
    from memguard.schema.config import CONSISTENCY_GATE_PRESETS

    if as_json:
        dumped = {name: spec.model_dump() for name, spec in CONSISTENCY_GATE_PRESETS.items()}
        print_json({"consistency_gate": dumped})
        return
    names = list(CONSISTENCY_GATE_PRESETS)
    fields = CONSISTENCY_GATE_PRESETS[names[0]].model_dump()
    print_table(
        "consistency_gate",
        ("setting", *names),
        [
            (field, *(str(getattr(CONSISTENCY_GATE_PRESETS[name], field)) for name in names))
            for field in fields
        ],
    )
