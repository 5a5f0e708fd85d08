"""An OpenAI-compatible model server on the loopback address, for tests, benchmarks and demos.

It uses the standard library only. It runs its own event loop in a thread, so that sync and async
code can use it. An answer is a function of the request; see `memguard.testing.replies`.

`python -m memguard.testing.server` runs it as a separate process.
"""

import argparse
import asyncio
import contextlib
import json
import pkgutil
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from memguard.testing.replies import (
    ServerReply,
    as_events,
    completion,
    default_answer,
    embeddings,
    refusal_of_setting,
    text_of_request,
)

Answerer: TypeAlias = "Callable[[dict[str, Any]], str | ServerReply]"
"""Answers a chat request, the parsed JSON body. It is called for each of the `n` answers."""

Support: TypeAlias = Literal["yes", "refused", "ignored"]
"""What the server does with a setting: support it, answer 400, or ignore it."""

_MAX_HEADER_BYTES = 64 * 1024
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


@dataclass(frozen=True, kw_only=True)
class ServedRequest:
    """One request, as it was received."""

    path: str
    """Its path."""
    body: dict[str, Any]
    """Its JSON body."""
    key: str
    """Its bearer token."""

    @property
    def text(self) -> str:
        """The text of all messages of a chat request."""
        return text_of_request(self.body)


class LoopbackModelServer:
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models` on 127.0.0.1.

    ```python
    with LoopbackModelServer(lambda request: "0.9") as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key="test-key")
    ```
    """

    def __init__(
        self,
        answer: "Answerer | str" = default_answer,
        *,
        script: Sequence[str | ServerReply] = (),
        port: int = 0,
        latency: float = 0.0,
        n: Support = "yes",
        logprobs: Support = "yes",
        json_schema: Support = "yes",
        refuses: Collection[str] = (),
        api_key: str | None = None,
        max_requests: int | None = None,
    ) -> None:
        """Configure the server; `start` or a `with` block runs it.

        Args:
            answer: Answers when the script is used up; a string is the answer to every request.
            script: Replies in order, one for each answer.
            port: The port; 0 picks a free one.
            latency: Seconds before each reply.
            n: How a request for several answers is treated.
            logprobs: How a request for log-probabilities is treated.
            json_schema: How a request with `response_format` is treated.
            refuses: Names of other settings that are answered with 400.
            api_key: The only key that is accepted; `None` accepts any.
            max_requests: How many of the latest requests are recorded; `None` sets no limit.
        """
        self.answer: Answerer = (lambda _request: answer) if isinstance(answer, str) else answer
        self.latency = latency
        self.api_key = api_key
        self.n: Support = n
        self.logprobs: Support = logprobs
        self.json_schema: Support = json_schema
        self.refuses = frozenset(refuses)
        self.requests: list[ServedRequest] = []
        """Requests so far, including those that were answered with an error."""
        self._max_requests = max_requests
        self.high_water = 0
        """The largest number of requests that were in flight at once."""
        self.connections = 0
        """Connections accepted so far."""
        # Changed by the server's thread alone, so without a lock.
        self._in_flight = 0
        self._script = list(script)
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def chats(self) -> list[ServedRequest]:
        """The chat requests so far."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    @property
    def keys(self) -> set[str]:
        """The keys of all requests so far."""
        return {request.key for request in self.requests}

    def start(self) -> Self:
        """Start the server; returns when the port is open."""
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="memguard-loopback", daemon=True
        )
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        """Close all connections and join the thread; harmless when called twice."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stopping is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        handlers: set[asyncio.Task[None]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            handlers.add(task)
            try:
                await self._connection(reader, writer)
            finally:
                handlers.discard(task)

        server = await asyncio.start_server(handle, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        # Clients keep connections open, and `wait_closed` would wait for them.
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await server.wait_closed()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            # Clients of HTTP/1.1 send many requests over one connection.
            while (request := await _read_request(reader)) is not None:
                reply = await self._reply(*request)
                if reply.drops:
                    return
                await _send(reply, writer)
                if reply.cut_after is not None:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the client went away, as one that timed out does
        except asyncio.CancelledError:
            return  # the server stops
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _reply(self, path: str, headers: Mapping[str, str], raw: bytes) -> ServerReply:
        self._in_flight += 1
        self.high_water = max(self.high_water, self._in_flight)
        try:
            key = headers.get("authorization", "").removeprefix("Bearer ")
            body: dict[str, Any] = json.loads(raw) if raw else {}
            # Recorded before it is answered, so that refused requests are counted too.
            self.requests.append(ServedRequest(path=path, body=body, key=key))
            if self._max_requests is not None:
                del self.requests[: -self._max_requests or None]
            reply = self._answered(path, body, key)
            await asyncio.sleep(self.latency if reply.latency is None else reply.latency)
            return reply
        finally:
            self._in_flight -= 1

    def _answered(self, path: str, body: dict[str, Any], key: str) -> ServerReply:
        if self.api_key is not None and key != self.api_key:
            return ServerReply.error(401, "Incorrect API key provided.", code="invalid_api_key")
        if path.endswith("/models"):
            return ServerReply.of_json({"object": "list", "data": [{"id": "m", "object": "model"}]})
        if path.endswith("/embeddings"):
            return ServerReply.of_json(embeddings(body))
        if path.endswith("/chat/completions"):
            return self._chat(body)
        return ServerReply.error(404, f"no such path: {path}")

    def _chat(self, body: dict[str, Any]) -> ServerReply:
        modes = {"n": self.n, "logprobs": self.logprobs, "response_format": self.json_schema}
        refused = self.refuses | {name for name, mode in modes.items() if mode == "refused"}
        for name in sorted(refused):
            # `n=1` asks for what every provider does by default.
            if body.get(name) and not (name == "n" and body[name] == 1):
                return refusal_of_setting(name)
        count = int(body.get("n") or 1) if self.n == "yes" else 1
        answers: list[ServerReply] = []
        for _ in range(count):
            answer = self._script.pop(0) if self._script else self.answer(body)
            reply = ServerReply(text=answer) if isinstance(answer, str) else answer
            # An error or a broken body stands for the whole request, as with a real provider.
            if reply.is_whole:
                return reply
            answers.append(reply)
        with_logprobs = bool(body.get("logprobs")) and self.logprobs == "yes"
        whole = completion(body, answers, with_logprobs=with_logprobs)
        return as_events(whole, body=body) if body.get("stream") else whole


async def _read_request(
    reader: asyncio.StreamReader,
) -> tuple[str, dict[str, str], bytes] | None:
    """One HTTP/1.1 request; `None` when the client has closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    # HTTP/1.1 headers are Latin-1.
    lines = head[:_MAX_HEADER_BYTES].decode("latin-1").split("\r\n")
    _method, path, _version = lines[0].split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return path.partition("?")[0], headers, body


async def _send(reply: ServerReply, writer: asyncio.StreamWriter) -> None:
    """Send a reply, or the part of it that arrives, at the speed that it asks for."""
    body = reply.payload()
    writer.write(_head(reply, length=len(body)))
    # The head promises the whole body, so the client can tell that the connection was cut.
    arriving = body if reply.cut_after is None else body[: int(len(body) * reply.cut_after)]
    if not reply.drip:
        writer.write(arriving)
        await writer.drain()
        return
    for position in range(len(arriving)):
        writer.write(arriving[position : position + 1])
        await writer.drain()
        await asyncio.sleep(reply.drip)


def _head(reply: ServerReply, *, length: int) -> bytes:
    headers = {
        "Content-Type": reply.content_type,
        "Content-Length": str(length),
        "Connection": "keep-alive",
        **reply.headers,
    }
    head = f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Status')}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode("latin-1") + b"\r\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until interrupted. The first line of the output is the base URL."""
    settings = vars(_parser().parse_args(argv))
    settings["latency"] /= 1_000
    answer = settings.pop("answer")
    answerer = pkgutil.resolve_name(answer) if answer else default_answer
    with LoopbackModelServer(answerer, **settings) as server:
        sys.stdout.write(f"{server.url}\n")
        # The parent process waits for this line.
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m memguard.testing.server", description=main.__doc__
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds before each reply")
    parser.add_argument("--answer", help="function that answers a request, as module:function")
    parser.add_argument("--api-key", help="the only key that is accepted")
    parser.add_argument("--max-requests", type=int, help="latest requests that are recorded")
    parser.add_argument(
        "--refuse", dest="refuses", action="append", default=[], help="a setting to answer with 400"
    )
    for name in ("n", "logprobs", "json-schema"):
        parser.add_argument(f"--{name}", choices=get_args(Support), default="yes")
    return parser


if __name__ == "__main__":
    main()
