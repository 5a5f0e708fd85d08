"""What each choice in a Studio form means, and that every field says what it is."""

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from memguard.errors import InvalidInputError
from memguard.methods.conmem.config import CONMEM_PRESETS, ConMem
from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS, ConsistencyGate
from memguard.schema.read import Rendering
from memguard.studio import (
    AdmissionChoice,
    AgentForm,
    ConMemForm,
    FactorForm,
    GateChoice,
    GateForm,
    PermissionForm,
    ReadForm,
    WriteForm,
    fill,
)

FORMS: list[Any] = [
    AgentForm,
    ConMemForm,
    FactorForm,
    GateForm,
    PermissionForm,
    ReadForm,
    WriteForm,
]


@pytest.mark.parametrize("form", FORMS)
def test_every_field_has_a_title_and_a_description(form: Any) -> None:
    for name, field in TypeAdapter(form).json_schema()["properties"].items():
        assert field["title"], name
        assert field["description"], name


def test_the_hosts_offer_gates_admission_and_rendering() -> None:
    fields = TypeAdapter(AgentForm).json_schema()["properties"]
    assert fields["gates"]["enum"] == ["consistency", "conmem", "both", "none"]
    assert fields["admission"]["enum"] == ["ps", "fc", "relevance"]
    assert set(fields["rendering"]["enum"]) == set(get_args(Rendering))
    assert fields["conmem_preset"]["enum"] == ["default", "paper"]


def test_gates_are_chosen_with_their_presets() -> None:
    form = WriteForm(gates="both", consistency_preset="fast", conmem_preset="paper")
    assert form.gate_specs == (CONSISTENCY_GATE_PRESETS["fast"], CONMEM_PRESETS["paper"])
    assert replace(form, gates="none").gate_specs == ()
    assert WriteForm(k=3, tau=0.5).gate_specs == (ConsistencyGate(k=3, tau=0.5),)


@pytest.mark.parametrize("gates", get_args(GateChoice))
def test_every_choice_of_gates_opens(gates: GateChoice) -> None:
    for form in (WriteForm(gates=gates), AgentForm(gates=gates)):
        drawn = " ".join(form.open().get_graph(xray=True).nodes)
        if gates == "conmem":
            assert "run_probe" in drawn


@pytest.mark.parametrize(
    ("admission", "rendering"), [*product(get_args(AdmissionChoice), get_args(Rendering))]
)
def test_every_admission_opens(admission: AdmissionChoice, rendering: Rendering) -> None:
    form = ReadForm(admission=admission, admission_preset="paper", rendering=rendering)
    assert form.open().get_graph().nodes
    if admission != "relevance":
        settings = form.admission_spec.model_dump()
        assert (settings["preset"], settings["rendering"]) == ("paper", rendering)


def test_the_weights_of_conmem_are_the_presets_unless_filled_in() -> None:
    assert ConMemForm().spec == ConMem()
    assert ConMemForm(preset="paper").spec == CONMEM_PRESETS["paper"]
    changed = ConMemForm(preset="paper", risk_penalty=2.0).spec.weights
    assert (changed.risk_risk, changed.irrelevant_unnecessary) == (2.0, 0.5)


def test_a_context_fills_the_form_and_an_unknown_field_is_refused() -> None:
    form = fill(WriteForm(), {"gates": "conmem", "tau": None})
    assert form == WriteForm(gates="conmem")
    with pytest.raises(InvalidInputError, match="'gate'"):
        fill(WriteForm(), {"gate": "conmem"})
