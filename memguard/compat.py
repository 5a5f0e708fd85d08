"""Every private or unstable API of another library that memguard uses, and the only place for them.

A name with an underscore, an internal key or an undocumented class may disappear in any release.
Each function here says why it is needed, and `tests/unit/test_compat.py` fails when its API is
removed. `pyproject.toml` sets upper bounds on the versions of these libraries.

Tried with langgraph 1.2.24, langgraph-checkpoint 4.3.2, langchain-core 1.8.3, langchain-openai
1.7.4, chromadb 1.5.9, onnxruntime 1.32.0 and CPython 3.11, 3.12 and 3.13.

Libraries are imported inside the functions: chromadb alone takes a second.
"""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    GraphT = TypeVar("GraphT", bound=CompiledStateGraph[Any, Any, Any, Any])

# -- langgraph --------------------------------------------------------------------------------

# `langgraph.constants` exports the first one with a deprecation warning for the others, which moved
# to `langgraph._internal`. The text of the keys is part of LangGraph Platform's wire format.
_CHECKPOINTER = "__pregel_checkpointer"
_DURABILITY = "__pregel_durability"
_READ = "__pregel_read"
_TASK_ID = "__pregel_task_id"

UNCHECKPOINTED: dict[str, Any] = {_CHECKPOINTER: None, _DURABILITY: "async"}
"""The `configurable` with which a graph, and the graphs inside it, run without a checkpointer.

Compiling with `checkpointer=False` is the public way. In LangGraph 1.2 it fails in a host that runs
with `durability="sync"`, and the steps of graphs inside the graph are saved nevertheless. It also
hides the graph from `get_subgraphs`, and so from drawings and streams.
"""


def has_checkpointer(configurable: Mapping[str, Any]) -> bool:
    """Whether a run has a checkpointer.

    Without one `interrupt` does not raise: the run returns as if it had ended, and no review
    happens.

    Args:
        configurable: The `configurable` part of the config of a running graph.
    """
    return configurable.get(_CHECKPOINTER) is not None


def replace_checkpointer(wrap: Callable[[BaseCheckpointSaver[Any]], object]) -> None:
    """Let graphs that the current task starts use another checkpointer than the host's.

    A nested graph takes the checkpointer from the config around it, which only the key shows.

    Args:
        wrap: Creates the checkpointer from the host's; not called in a run without one.
    """
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415
    from langgraph.checkpoint.base import BaseCheckpointSaver  # noqa: PLC0415

    config = cast("RunnableConfig", surrounding_config())
    configurable = config.get("configurable") or {}
    saver = configurable.get(_CHECKPOINTER)
    # Not an instance where a graph was compiled with `checkpointer=False`.
    if isinstance(saver, BaseCheckpointSaver):
        replaced = {**configurable, _CHECKPOINTER: wrap(saver)}
        # Never reset: the variable belongs to the context of one task.
        var_child_runnable_config.set({**config, "configurable": replaced})


def state_reader(configurable: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """The function that reads a channel of the state of the run in progress, if a graph runs.

    A tool that writes to a store has no other access to the conversation.
    """
    return cast("Callable[[str], Any] | None", configurable.get(_READ))


def is_task(configurable: Mapping[str, Any]) -> bool:
    """Whether a config belongs to a task that another graph runs."""
    return _TASK_ID in configurable


def recast_graph(graph: CompiledStateGraph[Any, Any, Any, Any], kind: type[GraphT]) -> GraphT:
    """A copy of a compiled graph as an instance of a subclass.

    `StateGraph.compile` offers no way to choose the class of its result. This relies on a compiled
    graph having all its state in its instance dictionary.
    """
    copy = kind.__new__(kind)
    vars(copy).update(vars(graph))
    return copy


def loop_of_store(store: BaseStore) -> asyncio.AbstractEventLoop | None:
    """The event loop that a store is bound to, such as `AsyncSqliteStore` and `AsyncPostgresStore`.

    Called from another loop, such a store fails or waits forever. No public attribute has the loop.
    """
    from langgraph.store.base.batch import AsyncBatchedBaseStore  # noqa: PLC0415

    return getattr(store, "_loop", None) if isinstance(store, AsyncBatchedBaseStore) else None


# -- langchain --------------------------------------------------------------------------------


def surrounding_config() -> Mapping[str, Any]:
    """The config of the runnable that runs here; empty outside of one.

    `langgraph.config.get_config` reads the same variable, but raises where it is empty.
    """
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415

    return cast("Mapping[str, Any]", var_child_runnable_config.get() or {})


def kind_of_chat(chat: BaseChatModel) -> str:
    """LangChain's name of a family of chat models, such as `openai-chat`; for names on receipts.

    Every chat model has to define it, although the name begins with an underscore.
    """
    return str(getattr(chat, "_llm_type", type(chat).__name__))


def can_stream(chat: BaseChatModel) -> bool:
    """Whether a chat model can stream its answers."""
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

    # The base class has both methods too; a model that streams overrides at least one of them.
    return any(
        getattr(type(chat), name) is not getattr(BaseChatModel, name)
        for name in ("_stream", "_astream")
    )


def openai_client(chat: BaseChatModel) -> Any:
    """The asynchronous OpenAI client of a chat model, or `None` if it has none.

    `ChatOpenAI` and its subclasses have it in `root_async_client`, an undocumented field. It is the
    only way to give a copy of the model another HTTP client.
    """
    client = getattr(chat, "root_async_client", None)
    return client if hasattr(client, "with_options") else None


def with_openai_client(chat: BaseChatModel, client: Any) -> BaseChatModel:
    """A copy of a chat model that sends its requests through another OpenAI client."""
    # Plain requests go through `async_client`, those with a schema through `root_async_client`.
    return chat.model_copy(
        update={"root_async_client": client, "async_client": client.chat.completions}
    )


def uses_responses_api(chat: BaseChatModel) -> bool:
    """Whether `ChatOpenAI` uses OpenAI's Responses API, which takes neither `n` nor logprobs."""
    # The public field `use_responses_api` may be `None`; the model's name then decides.
    decide = getattr(chat, "_use_responses_api", None)
    return decide is not None and bool(decide({}))


# -- chromadb ---------------------------------------------------------------------------------


class MemoryChroma:
    """A separate Chroma database in memory, with the part of a Chroma client that the store uses.

    `chromadb.EphemeralClient` shares one database between all clients of the process, and does not
    open at all if another one was created with other settings.
    """

    def __init__(self, settings: Settings) -> None:
        from chromadb.api import ServerAPI  # noqa: PLC0415
        from chromadb.config import System  # noqa: PLC0415

        settings.is_persistent = False
        settings.chroma_api_impl = "chromadb.api.rust.RustBindingsAPI"
        self._system = System(settings)
        self._server = self._system.instance(ServerAPI)
        self._system.start()

    def list_collections(
        self, limit: int | None = None, offset: int | None = None
    ) -> list[Collection]:
        """The collections that exist."""
        return [self._collection(model) for model in self._server.list_collections(limit, offset)]

    def get_or_create_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name, created if there is none."""
        # Chroma's server has no embedding function; memguard embeds by itself.
        settings.pop("embedding_function", None)
        return self._collection(
            self._server.create_collection(name, get_or_create=True, **settings)
        )

    def get_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name; Chroma's `NotFoundError` if there is none."""
        settings.pop("embedding_function", None)
        return self._collection(self._server.get_collection(name, **settings))

    def delete_collection(self, name: str) -> None:
        """Delete the collection of that name; Chroma's `NotFoundError` if there is none."""
        self._server.delete_collection(name)

    def get_max_batch_size(self) -> int:
        """The maximum number of rows in one call."""
        return self._server.get_max_batch_size()

    def close(self) -> None:
        """Free the memory."""
        self._system.stop()

    def _collection(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection  # noqa: PLC0415

        return Collection(client=self._server, model=model, embedding_function=None)


def close_chroma_sockets(client: object) -> None:
    """Close the HTTP sessions of `chromadb.HttpClient`.

    Its `close` leaves them open until garbage collection.
    """
    import httpx  # noqa: PLC0415

    # The admin client inside it opens a second session.
    for part in (client, getattr(client, "_admin_client", None)):
        session = getattr(getattr(part, "_server", None), "_session", None)
        if isinstance(session, httpx.Client):
            session.close()


def distance_of_collection(collection: Collection) -> str:
    """The distance that a Chroma collection measures: `cosine`, `l2` or `ip`."""
    # The parsed configuration warns about an embedding function that was never set.
    configuration = cast("Mapping[str, Any]", collection.configuration_json)
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space", "l2"))


def sync_threshold_of_collection(collection: Collection) -> int:
    """The number of writes after which Chroma saves the index of a collection."""
    configuration = cast("Mapping[str, Any]", collection.configuration_json)
    return int((configuration.get("hnsw") or {}).get("sync_threshold") or 1_000)


def vacuum_chroma(folder: Path, *, seconds: float, settle_seconds: float = 0.0) -> bool:
    """Rewrite the database in a Chroma folder, and remove what its indexes have of other data.

    Chroma runs SQLite without `secure_delete` and never vacuums: the bytes of deleted rows stay in
    free pages, and in the free part of pages that are in use. Its client has no call for it, only
    the program `chroma vacuum`, which asks questions on a terminal. The folder of a deleted
    collection's index stays as well. SQLite's locks make this safe while a server uses the folder.

    Args:
        folder: The folder that has `chroma.sqlite3`.
        seconds: How long to wait for a write that is in progress.
        settle_seconds: How long a running server needs to save the index of its last write.

    Returns:
        Whether Chroma itself empties its queue of writes; databases of early versions do not.

    Raises:
        sqlite3.Error: If the database cannot be rewritten.
        OSError: If a folder cannot be removed.
    """
    import contextlib  # noqa: PLC0415
    import json  # noqa: PLC0415
    import shutil  # noqa: PLC0415
    import sqlite3  # noqa: PLC0415

    # SQLite takes a whole path only.
    folder = folder.resolve()
    # Listed first: a collection that is created meanwhile has its row before its folder.
    indexes = [path for path in folder.iterdir() if _UUID.fullmatch(path.name)]
    database = (folder / "chroma.sqlite3").as_uri() + "?mode=rw"
    connected = sqlite3.connect(database, timeout=seconds, isolation_level=None, uri=True)
    with contextlib.closing(connected) as db:
        segments = {row[0] for row in db.execute("SELECT id FROM segments")}
        configuration = db.execute("SELECT config_json_str FROM embeddings_queue_config").fetchone()
        # The rollback journal of the rewriting is a copy of the old pages; it is deleted after it.
        db.execute("PRAGMA secure_delete = ON")
        db.execute("VACUUM")
        # No write can begin now, and a server has a moment to end the one that was in progress.
        db.execute("BEGIN IMMEDIATE")
        time.sleep(settle_seconds)
        for path in indexes:
            if path.name in segments:
                blank_unused_part(path)
            else:
                shutil.rmtree(path)
        db.execute("ROLLBACK")
    return bool(configuration) and bool(json.loads(configuration[0]).get("automatically_purge"))


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INDEX_HEADER = struct.Struct("<iQQQQ")
"""The beginning of an index's header in chroma-hnswlib: version of the layout, offset of the first
level, capacity, number of elements, and bytes of an element."""


def blank_unused_part(index: Path) -> None:
    """Overwrite the part of an index that has no element.

    Chroma writes it as it was allocated, with whatever the process had in that memory before, which
    may be text. A file of another layout is left alone.
    """
    header = index / "header.bin"
    if not header.exists():
        return
    beginning = header.read_bytes()[: _INDEX_HEADER.size]
    if len(beginning) < _INDEX_HEADER.size:
        return
    version, _, capacity, count, size = _INDEX_HEADER.unpack(beginning)
    # The second file has the number of bytes of each element's links, four bytes each.
    for name, row in (("data_level0.bin", size), ("length.bin", 4)):
        path = index / name
        if version != 1 or not path.exists() or path.stat().st_size != capacity * row:
            continue
        with path.open("r+b") as file:
            file.seek(count * row)
            file.write(bytes((capacity - count) * row))


def download_chroma_minilm() -> Path:
    """Let Chroma download and unpack its copy of all-MiniLM-L6-v2, and return the folder.

    Chroma has no public function that downloads without embedding.
    """
    from pathlib import Path  # noqa: PLC0415

    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # noqa: PLC0415

    ONNXMiniLM_L6_V2()._download_model_if_not_exists()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return Path(ONNXMiniLM_L6_V2.DOWNLOAD_PATH)


# -- onnxruntime ------------------------------------------------------------------------------


def onnxruntime_errors() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: the errors have no common base; missing inputs are `ValueError`s."""
    # A compiled module, which the type checker cannot read.
    from onnxruntime.capi import (  # noqa: PLC0415
        onnxruntime_pybind11_state as ort,  # pyright: ignore[reportAttributeAccessIssue]
    )

    return (
        ort.Fail,
        ort.InvalidArgument,
        ort.InvalidGraph,
        ort.InvalidProtobuf,
        ort.NotImplemented,
        ort.RuntimeException,
        ValueError,
    )


# -- standard library -------------------------------------------------------------------------


def run_before_threads_end(function: Callable[[], None]) -> None:
    """Run a function at the end of the process while threads can still be started.

    `atexit` runs too late: by then `concurrent.futures` refuses new work. `concurrent.futures`
    itself uses this hook of CPython; on a Python without it the function is not run.
    """
    register: Any = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(function)
