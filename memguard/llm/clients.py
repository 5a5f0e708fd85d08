"""A copy of an OpenAI-driven chat model for each event loop, with a connection pool of its own.

langchain-openai shares one async HTTP client between all instances. Its pooled connections belong
to the loop that opened them, so a second `asyncio.run` fails with "Event loop is closed". Here
every loop gets a fresh client, which is closed when that loop ends.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memguard import compat

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from memguard.llm.models import Model


@dataclass(eq=False)
class _LoopClients:
    """The copies that live on one loop."""

    copies: dict[int, tuple[weakref.ref[Any], BaseChatModel]] = field(default_factory=dict)
    closers: list[AsyncGenerator[None, None]] = field(default_factory=list)
    building: dict[int, asyncio.Future[BaseChatModel]] = field(default_factory=dict)


_LOCK = threading.Lock()
_LOOPS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = (
    weakref.WeakKeyDictionary()
)


async def chat_on_this_loop(model: Model) -> BaseChatModel:
    """The chat model to call from the running loop.

    A model of another family is returned as it is. An HTTP client of the user's own is kept; only
    the SDK's retries are turned off, since attempts are counted here.
    """
    if compat.openai_client(model.chat) is None:
        return model.chat
    loop = asyncio.get_running_loop()
    with _LOCK:
        _forget_ended_loops()
        clients = _LOOPS.setdefault(loop, _LoopClients())
    # By `id`, since a chat model cannot be hashed; the weak reference tells whether the object is
    # still the same one, because an id is used again.
    cached = clients.copies.get(id(model.chat))
    if cached is not None and cached[0]() is model.chat:
        return cached[1]
    return await _build_once(clients, model)


async def _build_once(clients: _LoopClients, model: Model) -> BaseChatModel:
    # Everything here runs on one loop, so a plain dictionary is lock enough.
    key = id(model.chat)
    if key not in clients.building:
        clients.building[key] = asyncio.ensure_future(_build(clients, model))
        clients.building[key].add_done_callback(lambda _: clients.building.pop(key, None))
    # Shielded: a caller that is cancelled must not take the client from those who wait with it.
    return await asyncio.shield(clients.building[key])


async def _build(clients: _LoopClients, model: Model) -> BaseChatModel:
    options: dict[str, Any] = {"max_retries": 0, "timeout": model.timeout}
    closer: AsyncGenerator[None, None] | None = None
    if not _has_own_client(model.chat):
        # In a thread, because a TLS context reads the certificate store from disk.
        client = await asyncio.to_thread(_new_client, model.chat, model.timeout)
        closer = _close_with_the_loop(client)
        await anext(closer)
        clients.closers.append(closer)
        options["http_client"] = client
    openai = compat.openai_client(model.chat).with_options(**options)
    copy = compat.with_openai_client(model.chat, openai)
    # The copy must not keep the model alive, or neither would ever be garbage.
    reference = weakref.ref(model.chat, _dropper(clients, id(model.chat), closer))
    clients.copies[id(model.chat)] = (reference, copy)
    return copy


async def _close_with_the_loop(client: Any) -> AsyncGenerator[None, None]:
    """Close the client when the loop ends.

    A generator that was started on a loop is closed by the loop's `shutdown_asyncgens`, which
    `asyncio.run` and the portal call. asyncio has no other hook for the end of a loop.
    """
    try:
        yield
    finally:
        await client.aclose()


def _dropper(
    clients: _LoopClients, key: int, closer: AsyncGenerator[None, None] | None
) -> Callable[[object], None]:
    """Close the client when its model is garbage before its loop ends."""
    # Weak references only: this function lives as long as the model, which may outlive the loop.
    loop_ref, clients_ref = weakref.ref(asyncio.get_running_loop()), weakref.ref(clients)
    closer_ref = None if closer is None else weakref.ref(closer)

    async def close() -> None:
        clients = clients_ref()
        closer = None if closer_ref is None else closer_ref()
        if closer is not None:
            if clients is not None and closer in clients.closers:
                clients.closers.remove(closer)
            await closer.aclose()

    def drop(_ref: object) -> None:
        # The garbage collector calls this in any thread, so the loop is asked to do the rest.
        loop, clients = loop_ref(), clients_ref()
        if clients is not None:
            clients.copies.pop(key, None)
        if loop is not None and not loop.is_closed():
            _schedule(loop, close)

    return drop


def _schedule(
    loop: asyncio.AbstractEventLoop, close: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    def start() -> None:
        task = loop.create_task(close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError:
        return  # the loop ended in between and has closed the client itself


_CLOSING: set[asyncio.Task[None]] = set()


def _has_own_client(chat: BaseChatModel) -> bool:
    # For a proxy, langchain-openai fills the field itself, with a client of one loop.
    proxied = bool(getattr(chat, "openai_proxy", None))
    return not proxied and getattr(chat, "http_async_client", None) is not None


def _new_client(chat: BaseChatModel, timeout: float) -> Any:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    proxy = getattr(chat, "openai_proxy", None)
    settings: dict[str, Any] = {"timeout": timeout, "verify": _tls_context()}
    if proxy:
        settings["proxy"] = proxy
    return DefaultAsyncHttpxClient(**settings)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """One context for all clients, as the SDK's HTTP library would make it for each.

    Reading the certificate store takes tens of milliseconds, which every new loop would pay.
    """
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    # httpx or httpx2, by the release of the SDK: its client is a subclass of theirs.
    library = DefaultAsyncHttpxClient.__bases__[0].__module__.partition(".")[0]
    context: ssl.SSLContext = import_module(library).create_ssl_context()
    return context


def _forget_ended_loops() -> None:
    for loop in [loop for loop in _LOOPS if loop.is_closed()]:
        del _LOOPS[loop]
