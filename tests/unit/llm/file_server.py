"""A server of one file on the loopback address, which can fail in the ways that servers fail."""

import re
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Act = Callable[[BaseHTTPRequestHandler], None]
"""Answers one request in place of the server."""


class FileServer:
    """Serves `content` at every path; `acts` answer the first requests instead."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.acts: deque[Act] = deque()
        self.ranges = True
        self.pace = threading.Event()
        """Cleared, the server stops in the middle of the body until it is set."""
        self.pace.set()
        self.requests: list[tuple[str, str]] = []
        """Path and `Range` of every request."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that is killed or cancelled hangs up; that is what is tested."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/m.gguf"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pace.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range", "")
        self.requests.append((request.path, asked))
        if self.acts:
            self.acts.popleft()(request)
            return
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        start = int(match[1]) if match and self.ranges else 0
        if match and self.ranges and start >= len(self.content):
            status(416)(request)
            return
        body = self.content[start:]
        request.send_response(206 if match and self.ranges else 200)
        request.send_header("Content-Length", str(len(body)))
        if match and self.ranges:
            end = len(self.content) - 1
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(self.content)}")
        request.end_headers()
        middle = len(body) // 2
        request.wfile.write(body[:middle])
        request.wfile.flush()
        self.pace.wait(30)
        request.wfile.write(body[middle:])


def status(code: int, **headers: str) -> Act:
    """Answer with a status and no body."""

    def act(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return act


def body(content: bytes, *, stated: int | None = None, code: int = 200, **headers: str) -> Act:
    """Answer with a body, of which another length may be stated; then close the connection."""

    def act(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        if stated is None or stated >= 0:
            request.send_header("Content-Length", str(len(content) if stated is None else stated))
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(content)
        request.wfile.flush()
        request.close_connection = True

    return act


def redirect(target: str) -> Act:
    """Point to another address."""
    return status(302, Location=target)
