"""Memory last in the system message, so that the prompt's beginning stays the same. Pure."""

from typing import Any, cast

from langchain_core.messages import SystemMessage


def add_memory(system: SystemMessage | None, memory: str) -> SystemMessage | None:
    """The system message with a section of memory at its end; as it was when there is none.

    Args:
        system: The agent's own; in text or in content blocks, which may carry cache marks.
        memory: What the read guard rendered.
    """
    if not memory:
        return system
    if system is None:
        return SystemMessage(memory)
    content = system.content
    if isinstance(content, str):
        joined: Any = f"{content}\n\n{memory}" if content else memory
    else:
        blocks = cast("list[Any]", content)
        joined = [*blocks, {"type": "text", "text": f"\n\n{memory}" if blocks else memory}]
    return system.model_copy(update={"content": joined})
