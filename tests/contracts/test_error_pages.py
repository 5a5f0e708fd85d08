"""The examples on the error pages raise the error that they are about."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

import memguard
from memguard import MemguardError
from memguard.cli.explain import read_pages
from memguard.errors import ErrorCode
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, ScriptedChatModel

NEEDS_MORE = {ErrorCode.STORE_INDEX, ErrorCode.STORE_LOOP}
"""Raised by a later call, or only from within an event loop."""
MISTAKE = re.compile(r"^(\S.*?)  # ([a-z]+-[a-z]+)\b", re.MULTILINE)
MISTAKES = [
    (code, match[1], match[2])
    for code, page in read_pages().items()
    if code not in NEEDS_MORE
    for match in MISTAKE.finditer(page)
]


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What the examples use without saying where it comes from."""
    public = {
        name: getattr(memguard, name) for name in memguard.__all__ if name != "MemguardMiddleware"
    }
    with ChromaStore.memory(embed=HashEmbeddings()) as store:
        yield public | {
            "ana": ("memories", "ana"),
            "agent": memguard.create_memory_agent(ScriptedChatModel(), store=InMemoryStore()),
            "datetime": dt.datetime,
            "guard": memguard.create_write_guard(
                "local", store=InMemoryStore(), namespace=("memories", "ana")
            ),
            "messages": [("user", "I live in Porto.")],
            "store": store,
        }


def test_there_are_examples() -> None:
    assert len(MISTAKES) >= 9


@pytest.mark.parametrize(("code", "line", "named"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_line_raises_the_error_that_its_comment_names(
    code: ErrorCode, line: str, named: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    assert named == code
    with pytest.raises(MemguardError) as caught:
        exec(line, names)
    assert caught.value.code == code
