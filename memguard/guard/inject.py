"""Memory at the end of the system message, so that the prompt's beginning does not change."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, SystemMessage


def add_memory(system: SystemMessage | None, memory: str) -> SystemMessage | None:
    """The system message with a section of memory at its end; as it was when there is none.

    Args:
        system: The agent's own message; a text, or content blocks, which may carry cache marks.
        memory: The section that the read guard rendered.
    """
    if not memory:
        return system
    # A message of its own would break providers that accept one system message only.
    if system is None:
        return SystemMessage(memory)
    content = system.content
    if isinstance(content, str):
        joined: Any = f"{content}\n\n{memory}" if content else memory
    else:
        blocks = cast("list[Any]", content)
        joined = [*blocks, {"type": "text", "text": f"\n\n{memory}" if blocks else memory}]
    return system.model_copy(update={"content": joined})


def with_memory(messages: Sequence[BaseMessage], *, system: str, memory: str) -> list[BaseMessage]:
    """The prompt of one answer: one system message first, memory last in it.

    The messages of the thread are not changed, so that rendered memory is never mistaken for
    something that a user said.

    Args:
        messages: The thread; a system message at its beginning joins the agent's own.
        system: The agent's own instructions.
        memory: The section that the read guard rendered.
    """
    rest, host = list(messages), None
    # Some providers take one system message only, and some refuse an empty one.
    if rest and isinstance(rest[0], SystemMessage):
        host, rest = (rest[0] if rest[0].content else None), rest[1:]
    first = add_memory(_after(system, host), memory)
    return rest if first is None else [first, *rest]


def _after(system: str, host: SystemMessage | None) -> SystemMessage | None:
    """The host's system message with the agent's own instructions before it."""
    if not system:
        return host
    if host is None:
        return SystemMessage(system)
    content = host.content
    if isinstance(content, str):
        joined: Any = f"{system}\n\n{content}"
    else:
        joined = [{"type": "text", "text": f"{system}\n\n"}, *cast("list[Any]", content)]
    return host.model_copy(update={"content": joined})
