"""The stages of ConMem: each one's model, settings and prompt."""

from typing import Any

import pytest

from memguard import ConMem, create_conmem_graph, resolve_model
from memguard.errors import ConfigurationError, ErrorCode
from memguard.prompts import parse_prompt
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


@pytest.mark.parametrize("models", [None, {"judge": "local"}, {"arms": "local"}], ids=str)
def test_there_is_no_local_conmem(models: Any) -> None:
    model = ConMemScript().model() if models else "local"
    with pytest.raises(ConfigurationError, match="language model") as caught:
        create_conmem_graph(model, models=models)
    assert caught.value.code == ErrorCode.MODEL_MISSING
    with pytest.raises(ConfigurationError) as caught:
        create_conmem_graph()
    assert caught.value.code == ErrorCode.MODEL_MISSING


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
