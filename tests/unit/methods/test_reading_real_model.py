"""A whole read with real weights on the loopback address: the parts fit, whatever it judges."""

import asyncio
import importlib
from typing import Any

import pytest

from memguard import (
    FactorCompiled,
    PermissionSemantic,
    create_factor_compiled_graph,
    create_permission_semantic_graph,
    resolve_model,
)
from memguard.llm.llamacpp import LlamaCppChat, close_engines
from memguard.schema.decision import Inconclusive
from tests.unit.llm.test_llamacpp import smollm

TEXTS = ["The user is allergic to peanuts.", "The user lives in Porto."]
GIVEN: dict[str, Any] = {"query": "A place for dinner, please.", "memories": TEXTS}


@pytest.fixture(scope="module")
def small() -> Any:
    """One thread: on a shared machine two wait for one another."""
    yield LlamaCppChat(path=smollm(), n_threads=1, n_ctx=4096, max_tokens=200, seed=1)
    close_engines()


@pytest.mark.slow
@pytest.mark.timeout(1500)
class TestRealWeights:
    def test_fc(self, small: Any) -> None:
        model = resolve_model(small, timeout=1200)
        spec = FactorCompiled(deadline=1200, repair=False)
        out: Any = create_factor_compiled_graph(model, spec=spec).invoke(GIVEN)
        self.check(out)
        assert out["report"].usage.calls == 1

    async def test_ps_behind_an_openai_address(self) -> None:
        """The same weights on the loopback address, as a server of somebody's own."""
        path = smollm()
        library: Any = importlib.import_module("xllamacpp")
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel = 2304, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.verbosity, params.warmup, params.fit_params = -1, False, False
        server = await asyncio.to_thread(library.Server, params)
        address = f"{server.listening_address}/v1"
        model = resolve_model("openai:smollm", base_url=address, timeout=1200, max_attempts=1)
        spec = PermissionSemantic(deadline=1200, repair=False)
        graph: Any = create_permission_semantic_graph(model, spec=spec)
        out = await graph.ainvoke({**GIVEN, "memories": TEXTS[:1]})
        self.check(out, name="openai:smollm")
        assert out["report"].usage.calls >= 2

    def check(self, out: dict[str, Any], *, name: str = "llamacpp:") -> None:
        """Whatever a model of 135 million weights finds, a read ends well-formed and says why."""
        report = out["report"]
        assert report.models["adjudicator"].startswith(name)
        assert report.usage.prompt_tokens > 0
        verdicts = report.ledger.verdicts
        assert {v.unit.memory_id for v in verdicts} == {m.id for m in report.memories}
        assert all(v.row and v.explanation for v in verdicts)
        unjudged = [v for v in verdicts if isinstance(v.attributes, Inconclusive)]
        assert report.degraded == bool(
            unjudged or isinstance(report.ledger.situation, Inconclusive)
        )
        for verdict in verdicts:
            assert (verdict.unit.text in report.memory_context) == verdict.shown
