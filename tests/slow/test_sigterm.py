"""SIGTERM while a write runs in the background: drained if the program ends by itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings

ROOT = Path(__file__).parents[2]

_PROGRAM = """
import os, signal, sys, time
from langchain.agents import create_agent
from memguard import MemguardMiddleware
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

if sys.argv[2] == "handled":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

def write(messages):
    sys.stdout.write("writing\\n")
    sys.stdout.flush()
    time.sleep(1.5)
    return '{"facts": [{"text": "Ana rows.", "about": "user", "turns": [1]}]}'

store = ChromaStore.local(sys.argv[1], embed=HashEmbeddings())
memory = MemguardMiddleware(
    ScriptedChatModel(rules=[("", write)]),
    store=store, namespace=("memories", "ana"), gates=[], read=False, background=True,
)
agent = create_agent(ScriptedChatModel(["Noted."]), middleware=[memory])
agent.invoke({"messages": [("user", "I row.")]})
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGTERM")
@pytest.mark.parametrize(("handled", "stored"), [("handled", 1), ("default", 0)])
def test_a_background_write_is_drained_if_the_program_ends_by_itself(
    tmp_path: Path, handled: str, stored: int
) -> None:
    folder = tmp_path / "m"
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder), handled],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == (0 if handled == "handled" else -signal.SIGTERM)
    with ChromaStore.local(folder, embed=HashEmbeddings()) as store:
        assert store.count(("memories", "ana")) == stored
