"""What the agent and the middleware share: the prompt with memory, and the two guards of a host.

Memory goes to the end of the system message, so that the beginning of the prompt does not change
and providers can cache it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage, SystemMessage

from memguard.errors import ConfigurationError, ErrorCode, GuardError
from memguard.llm.models import ModelLike
from memguard.prompts import Prompt
from memguard.read import admission as reading
from memguard.read.admission import AdmissionLike
from memguard.read.graph import create_read_guard
from memguard.schema.audience import Audience
from memguard.schema.failures import failure_of
from memguard.schema.read import Recall
from memguard.state_keys import check_names
from memguard.uncheckpointed import Graph
from memguard.write import gates as writing
from memguard.write.gates import GateLike
from memguard.write.graph import create_write_guard
from memguard.write.reconciling import ReconcileLike
from memguard.write.report import WriteReport


def add_memory(system: SystemMessage | None, memory: str) -> SystemMessage | None:
    """The system message with a section of memory at its end; unchanged without a section.

    Args:
        system: The agent's own message: a text, or content blocks, which may have cache marks.
        memory: The section that the read guard rendered.
    """
    if not memory:
        return system
    # A separate message would break providers that accept one system message only.
    return SystemMessage(memory) if system is None else _extended(system, after=memory)


def with_memory(messages: Sequence[BaseMessage], *, system: str, memory: str) -> list[BaseMessage]:
    """The prompt of one answer: a single system message, which ends with memory, then the thread.

    The messages of the thread are not changed, so that rendered memory is never mistaken for
    something that a user said.

    Args:
        messages: The thread; a system message at its beginning is joined to the agent's own.
        system: The agent's own instructions.
        memory: The section that the read guard rendered.
    """
    rest, host = list(messages), None
    # Some providers accept one system message only, and some refuse an empty one.
    if rest and isinstance(rest[0], SystemMessage):
        host, rest = (rest[0] if rest[0].content else None), rest[1:]
    if system:
        host = SystemMessage(system) if host is None else _extended(host, before=system)
    first = add_memory(host, memory)
    return rest if first is None else [first, *rest]


def _extended(message: SystemMessage, *, before: str = "", after: str = "") -> SystemMessage:
    """The same message with a text before or after its content, separated by a blank line."""
    content = message.content
    if isinstance(content, str):
        joined: Any = "\n\n".join(part for part in (before, content, after) if part)
    else:
        # A block may have a cache mark: text joined to it would change what the provider caches.
        joined = list(cast("list[Any]", content))
        if after:
            joined.append({"type": "text", "text": f"\n\n{after}" if joined else after})
        if before:
            joined.insert(0, {"type": "text", "text": f"{before}\n\n"})
    return message.model_copy(update={"content": joined})


def create_guards(
    model: ModelLike,
    *,
    read: Graph | Literal[False] | None,
    write: Graph | Literal[False] | None,
    gates: Sequence[GateLike] | None,
    reconcile: ReconcileLike | None,
    admission: AdmissionLike | None,
    recall: Recall | None,
    models: Mapping[str, ModelLike] | None,
    prompts: Mapping[str, Prompt] | None,
    audience: Audience | None = None,
    **shared: Any,
) -> tuple[Graph | None, Graph | None]:
    """The read and the write guard of a host; `None` for one that is turned off.

    The settings are those of `create_memory_agent`. `shared` are the ones that both guards take
    unchanged: `store`, `namespace` and `receipts`.

    Raises:
        ConfigurationError: If a guard cannot be built, or a setting would have no effect.
    """
    models, prompts = models or {}, prompts or {}
    # Checked against both guards at once: each of them alone would refuse the other's stages.
    for values, names, parameter in (
        (models, (*writing.STAGES, *reading.STAGES), "models"),
        (prompts, (*writing.PROMPTS, *reading.PROMPTS), "prompts"),
    ):
        check_names(values, allowed=tuple(dict.fromkeys(names)), what=parameter)
    # Settings that were left out keep the defaults of the guards.
    settings = {
        "admission": admission,
        "recall": recall,
        "audience": audience,
        "gates": gates,
        "reconcile": reconcile,
    }
    for_read = _only(settings, ("admission", "recall", "audience"))
    for_write = _only(settings, ("gates", "reconcile"))
    _check_effect(read, for_read, parameter="read")
    _check_effect(write, for_write, parameter="write")
    if read is None:
        read = create_read_guard(
            model,
            models=_only(models, reading.STAGES),
            prompts=_only(prompts, reading.PROMPTS),
            **for_read,
            **shared,
        )
    if write is None:
        write = create_write_guard(
            model,
            models=_only(models, writing.STAGES),
            prompts=_only(prompts, writing.PROMPTS),
            # The answer is complete by then: a write that fails must not cost the user the answer.
            on_failure="report",
            **for_write,
            **shared,
        )
    return read or None, write or None


def failed_write(error: GuardError) -> WriteReport:
    """The report of a write that failed as a whole; the thread's next turn reads the turn again."""
    return WriteReport(run_id="", namespace=(), failures=(failure_of(error, step="write"),))


def _check_effect(
    guard: Graph | Literal[False] | None, settings: Mapping[str, object], *, parameter: str
) -> None:
    """Refuse a setting of a guard that is turned off, or that the user built."""
    # Otherwise a gate would be in the settings, and no candidate would ever meet it.
    name = next(iter(settings), None)
    if guard is None or name is None:
        return
    state = "is False" if guard is False else "is a guard of your own"
    msg = f"`{name}` has no effect, because `{parameter}` {state}: set one of the two"
    raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def _only(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names and value is not None}
