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
    if not _is_openai_driven(model.chat):
        return model.chat
    loop = asyncio.get_running_loop()
    with _LOCK:
        _forget_ended_loops()
        mine = _LOOPS.setdefault(loop, _LoopClients())
    found = mine.copies.get(id(model.chat))
    if found is not None and found[0]() is model.chat:
        return found[1]
    return await _build_once(mine, model)


async def _build_once(mine: _LoopClients, model: Model) -> BaseChatModel:
    # Everything here runs on one loop, so a plain dictionary is lock enough.
    key = id(model.chat)
    if key not in mine.building:
        mine.building[key] = asyncio.ensure_future(_build(mine, model))
        mine.building[key].add_done_callback(lambda _: mine.building.pop(key, None))
    # Shielded: a caller that is cancelled must not take the client from those who wait with it.
    return await asyncio.shield(mine.building[key])


async def _build(mine: _LoopClients, model: Model) -> BaseChatModel:
    options: dict[str, Any] = {"max_retries": 0, "timeout": model.timeout}
    closer: AsyncGenerator[None, None] | None = None
    if not _has_own_client(model.chat):
        # In a thread, because a TLS context reads the certificate store from disk.
        client = await asyncio.to_thread(_new_client, model.chat, model.timeout)
        closer = _close_with_the_loop(client)
        await anext(closer)
        mine.closers.append(closer)
        options["http_client"] = client
    root: Any = model.chat.root_async_client.with_options(**options)  # pyright: ignore[reportAttributeAccessIssue]
    copy = model.chat.model_copy(
        update={"root_async_client": root, "async_client": root.chat.completions}
    )
    gone = weakref.ref(model.chat, _dropper(mine, id(model.chat), closer))
    mine.copies[id(model.chat)] = (gone, copy)
    return copy


async def _close_with_the_loop(client: Any) -> AsyncGenerator[None, None]:
    """Wait in a generator that was begun on the loop: `shutdown_asyncgens` runs the `finally`."""
    try:
        yield
    finally:
        await client.aclose()


def _dropper(
    mine: _LoopClients, key: int, closer: AsyncGenerator[None, None] | None
) -> Callable[[object], None]:
    """Close the client when its model is garbage before its loop ends."""
    of_loop, of_mine = weakref.ref(asyncio.get_running_loop()), weakref.ref(mine)
    of_closer = None if closer is None else weakref.ref(closer)

    async def close() -> None:
        clients, opened = of_mine(), None if of_closer is None else of_closer()
        if opened is not None:
            if clients is not None and opened in clients.closers:
                clients.closers.remove(opened)
            await opened.aclose()

    def dropped(_ref: object) -> None:
        loop, clients = of_loop(), of_mine()
        if clients is not None:
            clients.copies.pop(key, None)
        if loop is not None and not loop.is_closed():
            _schedule(loop, close)

    return dropped


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


def _is_openai_driven(chat: BaseChatModel) -> bool:
    return hasattr(getattr(chat, "root_async_client", None), "with_options")


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
