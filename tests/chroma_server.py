"""A real Chroma server on the loopback address, started and stopped by a test."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Self

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.1
_STOP_SECONDS = 10.0


class ChromaServer:
    """`chroma run` as a context manager; `restart` keeps the port and the data.

    Args:
        path: The folder of the data; created if it does not exist.
        ready_seconds: Seconds to wait for the first answer.
    """

    def __init__(self, path: str | os.PathLike[str], *, ready_seconds: float = 60.0) -> None:
        self.host = _HOST
        self.path = Path(path)
        self.port = _free_port()
        self._ready_seconds = ready_seconds
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start the server and wait until it answers.

        Raises:
            RuntimeError: If it exits or does not answer in time. Its output is in `server.log`.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        log = self.path / "server.log"
        command = [_program(), "run", "--path", str(self.path), "--host", self.host]
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # our own command
                [*command, "--port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "ANONYMIZED_TELEMETRY": "false"},
            )
        # Starting takes seconds, so the server is asked until it answers.
        deadline = time.monotonic() + self._ready_seconds
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                msg = f"`chroma run` did not answer on port {self.port!r}. See {str(log)!r}"
                raise RuntimeError(msg)
            time.sleep(_POLL_SECONDS)
        return self

    def stop(self) -> None:
        """Stop the server; harmless when called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> Self:
        """Stop the server and start it again on the same port."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        url = f"http://{self.host}:{self.port}/api/v2/heartbeat"
        try:
            with urllib.request.urlopen(url, timeout=1.0) as answer:  # loopback
                return answer.status == HTTPStatus.OK
        except OSError:
            return False


def _program() -> str:
    # First the program of this environment: another version may not read the data.
    folder = Path(sys.executable).parent
    program = shutil.which("chroma", path=str(folder)) or shutil.which("chroma")
    if program is None:
        msg = f"There is no `chroma` command in {str(folder)!r}. Install chromadb there"
        raise RuntimeError(msg)
    return program


def _free_port() -> int:
    # Chosen here and not by the server, so that a restart can use the same port.
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
