"""The two guards of a host: what the agent and the middleware build alike."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langgraph.store.base import BaseStore

from memguard.adjudication.uncheckpointed import Graph
from memguard.errors import ConfigurationError, ErrorCode, GuardError
from memguard.guard import admission as reading
from memguard.guard import gates as writing
from memguard.guard.admission import AdmissionLike
from memguard.guard.failures import failure_of
from memguard.guard.gates import GateLike
from memguard.guard.keys import check_names
from memguard.guard.namespaces import NamespaceLike
from memguard.guard.read import create_read_guard
from memguard.guard.write import create_write_guard
from memguard.journal.journal import Journal
from memguard.llm.models import ModelLike
from memguard.prompts import Prompt
from memguard.schema.recall import Recall
from memguard.schema.write import WriteReport


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
    check_names(models, known=_union(writing.STAGES, reading.STAGES), what="models")
    check_names(prompts, known=_union(writing.PROMPTS, reading.PROMPTS), what="prompts")
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
