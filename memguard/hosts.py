"""Memory at the end of the system message, so that the prompt's beginning does not change."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode, GuardError
from memguard.journal.journal import Journal
from memguard.llm.models import ModelLike
from memguard.namespaces import NamespaceLike
from memguard.prompts import Prompt
from memguard.read import admission as reading
from memguard.read.admission import AdmissionLike
from memguard.read.graph import create_read_guard
from memguard.schema.failures import failure_of
from memguard.schema.read import Recall
from memguard.state_keys import check_names
from memguard.uncheckpointed import Graph
from memguard.write import gates as writing
from memguard.write.gates import GateLike
from memguard.write.graph import create_write_guard
from memguard.write.report import WriteReport


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


def create_guards(
    model: ModelLike,
    *,
    read: Graph | Literal[False] | None,
    write: Graph | Literal[False] | None,
    store: BaseStore | None,
    namespace: NamespaceLike,
    receipts: Journal | str | Path | None,
    gates: Sequence[GateLike] | None,
    admission: AdmissionLike | None,
    recall: Recall | None,
    models: Mapping[str, ModelLike] | None,
    prompts: Mapping[str, Prompt] | None,
) -> tuple[Graph | None, Graph | None]:
    """The read and the write guard of a host; `None` for one that is turned off.

    Args:
        model: Who writes, judges and adjudicates.
        read: The user's own read guard; `False` for none.
        write: The user's own write guard; `False` for none.
        store: The memory store; the host's when left out.
        namespace: Whose memories.
        receipts: Where receipts are stored.
        gates: What a candidate has to pass; the write guard's default when left out.
        admission: How memories are admitted; the read guard's default when left out.
        recall: Which memories are looked at.
        models: Other models by stage, of either guard.
        prompts: Other prompts by name, of either guard.

    Raises:
        ConfigurationError: If a guard cannot be built, or a setting would have no effect.
    """
    models, prompts = models or {}, prompts or {}
    # Checked against both guards at once: each of them alone would refuse the other's stages.
    check_names(models, allowed=_union(writing.STAGES, reading.STAGES), what="models")
    check_names(prompts, allowed=_union(writing.PROMPTS, reading.PROMPTS), what="prompts")
    _check_effect(read, {"admission": admission, "recall": recall}, what="read")
    _check_effect(write, {"gates": gates}, what="write")
    shared: dict[str, Any] = {"store": store, "namespace": namespace, "receipts": receipts}
    if read is None:
        optional = {"admission": admission, "recall": recall}
        read = create_read_guard(
            model,
            models=_only(models, reading.STAGES),
            prompts=_only(prompts, reading.PROMPTS),
            **{name: value for name, value in optional.items() if value is not None},
            **shared,
        )
    if write is None:
        optional = {} if gates is None else {"gates": gates}
        write = create_write_guard(
            model,
            models=_only(models, writing.STAGES),
            prompts=_only(prompts, writing.PROMPTS),
            # The answer is out already: a write that fails must not take it back.
            on_failure="report",
            **optional,
            **shared,
        )
    return read or None, write or None


def failed_write(error: GuardError) -> WriteReport:
    """The report of a write that failed as a whole; the thread's next turn takes it up again."""
    return WriteReport(run_id="", namespace=(), failures=(failure_of(error, step="write"),))


def _check_effect(
    guard: Graph | Literal[False] | None, settings: Mapping[str, object], *, what: str
) -> None:
    """Refuse a setting of a guard that is turned off, or that the user built."""
    # Silence would leave a user with a gate that is named in the settings and never asked.
    name = next((name for name, value in settings.items() if value is not None), None)
    if guard is None or name is None:
        return
    how = "is False" if guard is False else "is a guard of your own"
    msg = f"`{name}` has no effect, because `{what}` {how}: set one of the two"
    raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def _union(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _only(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}
