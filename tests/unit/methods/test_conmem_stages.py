"""The stages of ConMem: each one's model, settings and prompt."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import (
    ConMem,
    MemguardMiddleware,
    create_conmem_graph,
    create_write_guard,
    guard_store,
    resolve_model,
)
from memguard.errors import ConfigurationError, ErrorCode
from memguard.prompts import load_prompt, parse_prompt
from memguard.testing import LoopbackModelServer
from memguard.testing.conmem import ConMemScript
from tests.unit.methods.test_conmem import HISTORY, MEMORY, spec_of


def test_every_stage_has_its_own_model_settings_and_prompt() -> None:
    arms, judge = ConMemScript({"risk": "risk"}), ConMemScript({"risk": "risk"})
    other = ConMemScript({"risk": "risk"})
    arms_model = arms.model(model_name="arms")
    spec = spec_of(preset="paper", stages={"arms": {"temperature": 0.3, "seed": 7}})
    graph = create_conmem_graph(
        other.model(model_name="other"),
        spec=spec,
        models={"arms": arms_model, "judge": judge.model(model_name="judge")},
    )
    report = graph.invoke({"candidate": MEMORY, "context": HISTORY})["report"]
    assert report.models == {
        "probe": "scripted:other",
        "validation": "scripted:judge",
        "arms": "scripted:arms",
        "quality": "scripted:judge",
        "audit": "scripted:judge",
        "reason": "scripted:judge",
    }
    assert {call.kind for call in arms.calls} == {"control", "treatment"}
    sent = {
        (call.kwargs["temperature"], call.kwargs["seed"], call.kwargs["max_tokens"])
        for call in arms_model.calls
    }
    assert sent == {(0.3, 7, 8192)}
    assert {call.kwargs["reasoning_effort"] for call in arms_model.calls} == {"medium"}
    names = [stamp.name for stamp in report.prompts]
    assert sorted(names) == [
        f"conmem/{name}"
        for name in ("audit", "probe", "quality", "reason", "respond", "validation")
    ]


SETTINGS = ("temperature", "seed", "max_tokens", "reasoning_effort")


@pytest.mark.parametrize("refused", SETTINGS)
def test_a_setting_that_a_model_refuses_is_dropped_with_a_note(refused: str) -> None:
    sent = "max_completion_tokens" if refused == "max_tokens" else refused
    script = ConMemScript({"relevant": "helpful"})
    spec = spec_of(stages={"arms": {"temperature": 0.3}})  # the server takes a 0 for nothing
    with LoopbackModelServer(script.serve, refuses=[sent]) as server:
        model = resolve_model(f"openai:{refused}", base_url=server.url, api_key="test-key")
        graph = create_conmem_graph(model, spec=spec)
        result = graph.invoke({"candidate": MEMORY, "context": HISTORY})
    assert result["decision"].outcome == "admit"
    assert f"openai:{refused} does not take {refused!r}; it was left out" in result["report"].notes
    assert all("response_format" not in request.body for request in server.chats)


def test_a_server_can_be_asked_to_hold_answers_to_a_schema() -> None:
    script = ConMemScript({"relevant": "helpful"})
    with LoopbackModelServer(script.serve) as server:
        model = resolve_model("openai:held", base_url=server.url, api_key="test-key")
        graph = create_conmem_graph(model, spec=ConMem(json_schema=True))
        assert (
            graph.invoke({"candidate": MEMORY, "context": HISTORY})["decision"].outcome == "admit"
        )
    held = [request for request in server.chats if "response_format" in request.body]
    assert len(held) == 8, "all but the six answers"


WITHOUT: dict[str, Callable[[Any], object]] = {
    "graph": lambda _: create_conmem_graph(),
    "graph, empty": lambda _: create_conmem_graph(""),
    "graph, local": lambda _: create_conmem_graph("local"),
    "graph, local judge": lambda model: create_conmem_graph(model, models={"judge": "local"}),
    "graph, one stage": lambda model: create_conmem_graph(models={"probe": model}),
    "gate, local": lambda _: create_write_guard("local", gates=["conmem"]),
    "gate, writer alone": lambda model: create_write_guard(
        None, gates=["conmem"], models={"writer": model}
    ),
    "gate, local judge": lambda model: create_write_guard(
        model, gates=[ConMem()], models={"judge": "local"}
    ),
    "store": lambda _: guard_store(InMemoryStore(), model="local", gates=["conmem"]),
    "middleware": lambda _: MemguardMiddleware("local", gates=["conmem"]),
}
"""Entries of ConMem that lack a language model."""


@pytest.mark.parametrize("entry", sorted(WITHOUT))
def test_without_a_language_model_every_entry_names_the_argument(entry: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        WITHOUT[entry](ConMemScript().model())
    assert caught.value.code == ErrorCode.MODEL_MISSING
    message = str(caught.value)
    assert message.startswith("ConMem needs a language model at every stage, and ")
    assert "pass model='openai:NAME'" in message
    assert re.search(r"models=\{'\w+': \.\.\.\}", message)


def test_a_stage_or_a_prompt_that_nothing_uses_is_refused() -> None:
    model = ConMemScript().model()
    prompt = load_prompt("conmem", "quality")
    unused: list[dict[str, Any]] = [
        {"models": {"auditor": model}},
        {"prompts": {"conmem/judge": prompt}},
    ]
    for settings in unused:
        with pytest.raises(ConfigurationError, match="which nothing uses") as caught:
            create_conmem_graph(model, **settings)
        assert caught.value.code == ErrorCode.SPEC_INVALID


def test_a_prompt_of_ones_own_is_used_and_checked() -> None:
    head = "---\nversion: 9\nslots: information request\n---\nAnswer.\n---user---\n"
    own = parse_prompt(head + "{{information}}<request>\n{{request}}\n</request>", name="mine")
    graph = create_conmem_graph(ConMemScript().model(), prompts={"conmem/respond": own})
    report = graph.invoke({"candidate": MEMORY, "context": HISTORY})["report"]
    assert "9" in {stamp.version for stamp in report.prompts}
    wrong = parse_prompt(
        "---\nversion: 1\nslots: request\n---\nA\n---user---\n{{request}}", name="w"
    )
    with pytest.raises(ConfigurationError) as caught:
        create_conmem_graph(ConMemScript().model(), prompts={"conmem/respond": wrong})
    assert caught.value.code == ErrorCode.PROMPT_SLOTS
