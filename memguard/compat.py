"""Every private or unstable API of another library that memguard uses, and the only place for one.

A name with an underscore, a key of another library's own, or a class that is not documented may be
gone in the next release. Each function here says why it is needed, and `tests/unit/test_compat.py`
fails when its API goes away. `pyproject.toml` bounds the versions of these libraries from above.

Tried with langgraph 1.2.24, langgraph-checkpoint 4.3.2, langchain-core 1.8.3, langchain-openai
1.7.4, chromadb 1.5.9, onnxruntime 1.32.0 and CPython 3.11, 3.12 and 3.13.

Libraries are imported inside the functions: chromadb alone takes a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings
    from langchain_core.language_models import BaseChatModel
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
"""`configurable` of a graph that runs without a checkpointer, and so do the graphs inside it.

Compiling with `checkpointer=False` says the same in public words. In LangGraph 1.2 it fails in a
host that runs with `durability="sync"`, and the graphs inside it are saved all the same.
"""


def has_checkpointer(configurable: Mapping[str, Any]) -> bool:
    """Whether a run has a checkpointer.

    Without one `interrupt` does not raise: the run returns as if it had ended, and nobody is asked.

    Args:
        configurable: The `configurable` part of the config of a running graph.
    """
    return configurable.get(_CHECKPOINTER) is not None


def state_reader(configurable: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """The function that reads a channel of the state of the run in progress, if a graph runs.

    A tool that writes to a store is not given the conversation; this is the only way to it.
    """
    return cast("Callable[[str], Any] | None", configurable.get(_READ))


def is_task(configurable: Mapping[str, Any]) -> bool:
    """Whether a config is the one of a task that another graph runs."""
    return _TASK_ID in configurable


def recast_graph(graph: CompiledStateGraph[Any, Any, Any, Any], kind: type[GraphT]) -> GraphT:
    """The same compiled graph as an instance of a subclass; LangGraph compiles to its own class.

    Relies on a compiled graph keeping all its state in its instance dictionary.
    """
    same = kind.__new__(kind)
    vars(same).update(vars(graph))
    return same


def loop_of_store(store: BaseStore) -> asyncio.AbstractEventLoop | None:
    """The event loop that a store is bound to, such as `AsyncSqliteStore` and `AsyncPostgresStore`.

    Called from another loop, such a store fails or waits for ever. No public attribute tells.
    """
    from langgraph.store.base.batch import AsyncBatchedBaseStore  # noqa: PLC0415

    return getattr(store, "_loop", None) if isinstance(store, AsyncBatchedBaseStore) else None


# -- langchain --------------------------------------------------------------------------------


def surrounding_config() -> Mapping[str, Any]:
    """The config of the runnable that runs here; empty outside of one.

    `langgraph.config.get_config` raises outside of a graph and copies nothing into a graph that is
    called with a config of its own.
    """
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415

    return cast("Mapping[str, Any]", var_child_runnable_config.get() or {})


def kind_of_chat(chat: BaseChatModel) -> str:
    """What LangChain calls a family of chat models, such as `openai-chat`; for names on receipts.

    Every chat model has to define it, and yet its name begins with an underscore.
    """
    return str(getattr(chat, "_llm_type", type(chat).__name__))


def can_stream(chat: BaseChatModel) -> bool:
    """Whether a chat model can stream its answers; one that cannot defines neither method."""
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

    return any(
        getattr(type(chat), name) is not getattr(BaseChatModel, name)
        for name in ("_stream", "_astream")
    )


def openai_client(chat: BaseChatModel) -> Any:
    """The asynchronous OpenAI client of a chat model, or `None` if it has none.

    `ChatOpenAI` and its relatives keep it in `root_async_client`, which is a field and documented
    nowhere. It is the only way to give a copy of the model another HTTP client.
    """
    client = getattr(chat, "root_async_client", None)
    return client if hasattr(client, "with_options") else None


def with_openai_client(chat: BaseChatModel, client: Any) -> BaseChatModel:
    """A copy of a chat model that sends its requests through another OpenAI client."""
    return chat.model_copy(
        update={"root_async_client": client, "async_client": client.chat.completions}
    )


def uses_responses_api(chat: BaseChatModel) -> bool:
    """Whether `ChatOpenAI` talks to OpenAI's Responses API, which takes neither `n` nor logprobs.

    The public field may be unset while the model's name decides.
    """
    decide = getattr(chat, "_use_responses_api", None)
    return decide is not None and bool(decide({}))


# -- chromadb ---------------------------------------------------------------------------------


class MemoryChroma:
    """A Chroma of its own, in this process's memory; what is used of a Chroma client.

    `chromadb.EphemeralClient` shares one database between all clients of the process, and refuses
    to open at all if somebody else made one with other settings.
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
        """Collections that exist."""
        return [self._collection(model) for model in self._server.list_collections(limit, offset)]

    def get_or_create_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name, created if there is none."""
        settings.pop("embedding_function", None)
        return self._collection(
            self._server.create_collection(name, get_or_create=True, **settings)
        )

    def get_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name; Chroma's `NotFoundError` if there is none."""
        settings.pop("embedding_function", None)
        return self._collection(self._server.get_collection(name, **settings))

    def get_max_batch_size(self) -> int:
        """Rows that one call may carry."""
        return self._server.get_max_batch_size()

    def close(self) -> None:
        """Free the memory."""
        self._system.stop()

    def _collection(self, model: Any) -> Collection:
        from chromadb.api.models.Collection import Collection  # noqa: PLC0415

        return Collection(client=self._server, model=model, embedding_function=None)


def close_chroma_sockets(client: object) -> None:
    """Close the HTTP sessions of `chromadb.HttpClient`.

    Its own `close` leaves them open until the garbage collector comes by, and its administrative
    half opens a session of its own.
    """
    import httpx  # noqa: PLC0415

    for half in (client, getattr(client, "_admin_client", None)):
        session = getattr(getattr(half, "_server", None), "_session", None)
        if isinstance(session, httpx.Client):
            session.close()


def distance_of_collection(collection: Collection) -> str:
    """The distance that a Chroma collection measures: `cosine`, `l2` or `ip`.

    Read from JSON: the parsed form warns about an embedding function that was never set.
    """
    configuration = cast("Mapping[str, Any]", collection.configuration_json)
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space", "l2"))


def download_chroma_minilm() -> Path:
    """Have Chroma fetch and unpack its copy of all-MiniLM-L6-v2, and return the folder.

    Chroma has no public name for "fetch without embedding".
    """
    from pathlib import Path  # noqa: PLC0415

    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # noqa: PLC0415

    ONNXMiniLM_L6_V2()._download_model_if_not_exists()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return Path(ONNXMiniLM_L6_V2.DOWNLOAD_PATH)


# -- onnxruntime ------------------------------------------------------------------------------


def onnxruntime_errors() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: its errors share no base, and missing inputs are a `ValueError`."""
    # A compiled module, so the type checker sees nothing in it.
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
    """Have a function run at the end of the process while threads can still be started.

    `atexit` runs too late: by then `concurrent.futures` refuses new work. `concurrent.futures`
    itself uses this hook of CPython; on a Python without it the function is not run.
    """
    register: Any = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(function)
