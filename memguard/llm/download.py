"""Fetches one large file: resumed after an interruption, bounded, checked while it arrives.

Bytes are appended to a partial file, whose SHA-256 is computed on the way. A download that is
interrupted, killed or cancelled leaves the partial file, and the next one asks for the rest with an
HTTP range. Nothing here renames the partial file: only the caller does, after the check.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from memguard.errors import ErrorCode, GuardError, InvalidInputError, ModelConfigurationError
from memguard.llm.failures import public_address
from memguard.private_files import create_file
from memguard.version import read_version

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

PullStep = Literal["waiting", "checking", "copying", "downloading"]
"""What a pull is doing: it waits for another process, computes the digest of what is on the disk,
copies a local file, or downloads."""


@dataclass(frozen=True, kw_only=True)
class PullProgress:
    """How far a step of a pull is."""

    step: PullStep
    done: int
    """Bytes, those of an earlier, interrupted pull included."""
    total: int | None
    """Bytes of the whole file; `None` while it is unknown."""


OnProgress = Callable[[PullProgress], object]
"""Receives the progress, in the thread that does the work."""


class PullCancelledError(Exception):
    """The caller no longer waits. What has arrived stays in the partial file."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What is known of a file before it is fetched."""

    sha256: str | None
    """Its digest, in lower case; `None` only for a local file that the user vouches for."""
    size: int | None
    """Its size in bytes."""


_CHUNK = 1 << 20
_MAX_FAILURES = 5
"""Attempts in a row that bring no new byte, after which a download gives up."""
_BACKOFF = 0.5
_MAX_WAIT = 30.0
"""Seconds; a server that asks for a longer wait ends the download."""
_TIMEOUT = 30.0
"""Seconds to connect, and to wait for the next bytes."""
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_BEGINS_AGAIN = "the server does not send the range that is missing"
_OTHER_WAYS = "name a mirror with --url, or a file on this machine with --from"


class _InterruptedError(Exception):
    """An attempt ended early; another one may bring the rest."""

    def __init__(self, problem: str, *, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class PartialFile:
    """A file that grows until it is complete, with the digest of what it contains."""

    def __init__(
        self,
        path: Path,
        *,
        expected: Expectation,
        on_progress: OnProgress,
        cancelled: threading.Event,
    ) -> None:
        """Nothing is read or written yet."""
        self.path = path
        self.expected = expected
        self.total = expected.size
        self.done = 0
        self.is_resumed = False
        """Whether it contains bytes of an earlier run."""
        self._digest = hashlib.sha256()
        self._on_progress = on_progress
        self._cancelled = cancelled

    @property
    def sha256(self) -> str:
        """The digest of its bytes so far."""
        return self._digest.hexdigest()

    @property
    def is_right(self) -> bool:
        """Whether it is the file that is expected, to the last byte."""
        return self.expected.sha256 == self.sha256

    def of_file(self, path: Path) -> PartialFile:
        """Another file that is to have the same bytes, for example a finished one."""
        return PartialFile(
            path,
            expected=self.expected,
            on_progress=self._on_progress,
            cancelled=self._cancelled,
        )

    def report(self, step: PullStep) -> None:
        """Tell how far a step is.

        Raises:
            PullCancelledError: If the caller no longer waits.
        """
        if self._cancelled.is_set():
            raise PullCancelledError
        self._on_progress(PullProgress(step=step, done=self.done, total=self.total))

    def wait(self, seconds: float) -> None:
        """Wait before the next attempt; a cancellation ends the wait."""
        self._cancelled.wait(seconds)

    def read(self) -> None:
        """Compute the digest of the bytes that are there."""
        create_file(self.path)
        self.done, self._digest = 0, hashlib.sha256()
        with self.path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self._digest.update(chunk)
                self.done += len(chunk)
                self.report("checking")
        self.is_resumed = self.done > 0

    def clear(self) -> None:
        """Begin again with an empty file."""
        create_file(self.path)
        with self.path.open("r+b") as file:
            file.truncate(0)
        self.done, self._digest, self.is_resumed = 0, hashlib.sha256(), False

    @contextmanager
    def opened(self) -> Generator[BinaryIO]:
        """The file, open for appending.

        Raises:
            GuardError: If it cannot be written, usually because the disk is full.
        """
        try:
            with self.path.open("ab") as file:
                yield file
        except OSError as error:  # also from closing, which writes what is buffered
            needed = (self.total or self.done) - self.done
            raise _no_space(self.path, needed=needed, reason=str(error)) from error

    def append(self, file: BinaryIO, chunk: bytes, *, step: PullStep) -> None:
        """Add bytes to the file, which `opened` has opened.

        Raises:
            GuardError: If there are more bytes than the file is to have.
        """
        if self.total is not None and self.done + len(chunk) > self.total:
            raise wrong_size(self, "more of them")
        file.write(chunk)
        self._digest.update(chunk)
        self.done += len(chunk)
        self.report(step)

    def check_space(self) -> None:
        """Refuse to begin what does not fit.

        Raises:
            GuardError: If the disk has less room than the missing bytes need.
        """
        if self.total is None:
            return
        needed, free = self.total - self.done, shutil.disk_usage(self.path.parent).free
        if needed > free:
            raise _no_space(self.path, needed=needed, reason=f"{free:,} bytes are free")


def copy(source: Path, part: PartialFile) -> None:
    """Copy a file of this machine to the partial file.

    Raises:
        InvalidInputError: If it cannot be read.
        GuardError: If it has another size than expected, or the disk is full.
    """
    part.clear()
    try:
        size = source.stat().st_size
        file = source.open("rb")
    except OSError as error:
        msg = f"{str(source)!r} cannot be read ({error.strerror}): name a GGUF file with --from"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE) from error
    with file:
        if part.total is not None and size != part.total:
            raise wrong_size(part, f"{size:,}")
        part.total = size
        part.check_space()
        with part.opened() as target:
            while chunk := file.read(_CHUNK):
                part.append(target, chunk, step="copying")


def download(url: str, part: PartialFile) -> None:
    """Fetch what is missing of the partial file.

    Proxies are taken from the environment, as `httpx` does. Attempts are repeated while they bring
    bytes, and a few times when they bring none.

    Raises:
        GuardError: If the server refuses, the connection fails again and again, the file is not the
            expected one, or the disk is full.
        PullCancelledError: If the caller no longer waits.
    """
    part.read()
    if part.is_right:
        return
    if part.total is not None and part.done >= part.total:
        part.clear()  # as long as the file, but it is another one
    _fetch(url, part)
    if not part.is_right and part.is_resumed:
        # Bytes of an earlier run may be of an older file, or damaged: once more, from the start.
        part.clear()
        _fetch(url, part)


def _fetch(url: str, part: PartialFile) -> None:
    import httpx  # noqa: PLC0415 - half a second that listing models should not cost
    from tenacity import Retrying, retry_if_exception_type  # noqa: PLC0415

    part.check_space()
    failures = _Failures(part)
    retrying = Retrying(
        retry=retry_if_exception_type(_InterruptedError),
        stop=failures.are_too_many,
        wait=failures.wait,
        sleep=part.wait,
        reraise=True,
    )
    client = _open_client()
    try:
        with client:
            retrying(_attempt, client, url, part)
    except (_InterruptedError, httpx.HTTPError, httpx.InvalidURL) as error:
        msg = (
            f"{public_address(url)!r} could not be downloaded: {error}; {part.done:,} bytes are "
            f"kept. Run the same command again to go on, or {_OTHER_WAYS}"
        )
        raise GuardError(msg, code=ErrorCode.MODEL_DOWNLOAD) from error


def _open_client() -> httpx.Client:
    import httpx  # noqa: PLC0415

    # An encoded body would have other bytes than the file, and no ranges of it.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"memguard/{read_version()}"}
    try:
        return httpx.Client(follow_redirects=True, timeout=_TIMEOUT, headers=headers)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        msg = (
            f"the network settings of the environment cannot be used ({error}): check HTTPS_PROXY, "
            f"HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE, or {_OTHER_WAYS}"
        )
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_DOWNLOAD) from error


class _Failures:
    """Decides whether a download goes on: progress forgives earlier failures."""

    def __init__(self, part: PartialFile) -> None:
        self._part = part
        self._done = part.done
        self._count = 0

    def are_too_many(self, state: RetryCallState) -> bool:
        """Whether this failure is the last one; asked once after each."""
        self._count = 1 if self._part.done > self._done else self._count + 1
        self._done = self._part.done
        return self._count >= _MAX_FAILURES or _requested_wait(state) > _MAX_WAIT

    def wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt, with jitter."""
        from tenacity import wait_random  # noqa: PLC0415

        # Not tenacity's exponential wait: that counts attempts which brought bytes, too.
        jitter = wait_random(0, min(_MAX_WAIT, _BACKOFF * 2**self._count))(state)
        return _requested_wait(state) + jitter


def _requested_wait(state: RetryCallState) -> float:
    """Seconds that the server asked for in `Retry-After`."""
    error = state.outcome.exception() if state.outcome is not None else None
    return error.retry_after if isinstance(error, _InterruptedError) else 0.0


def _attempt(client: httpx.Client, url: str, part: PartialFile) -> None:
    """One request for what is missing."""
    import httpx  # noqa: PLC0415

    part.report("downloading")
    if part.is_right:
        return  # all bytes came before the connection failed
    headers = {"Range": f"bytes={part.done}-"} if part.done else {}
    try:
        with client.stream("GET", url, headers=headers) as response:
            _check(response, part)
            with part.opened() as file:
                for chunk in response.iter_raw():
                    part.append(file, chunk, step="downloading")
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
        raise  # the address is wrong, and stays so
    except httpx.TransportError as error:
        problem = f"{type(error).__name__}: {error}"
        raise _InterruptedError(problem) from error
    if part.total is not None and part.done < part.total:
        problem = f"the connection ended after {part.done:,} of {part.total:,} bytes"
        raise _InterruptedError(problem)


def _check(response: httpx.Response, part: PartialFile) -> None:
    """Read the status and the sizes of an answer, before its body.

    Raises:
        _InterruptedError: If a new request may help.
        GuardError: If the server refuses, or serves a file of another size.
    """
    status = response.status_code
    if status in _RETRYABLE:
        seconds = response.headers.get("retry-after", "")
        retry_after = float(seconds) if seconds.isdecimal() else 0.0
        problem = f"the server answers {status}, and asks to wait {retry_after:g} s"
        raise _InterruptedError(problem, retry_after=retry_after)
    if status == _UNSATISFIABLE and part.done:
        part.clear()
        raise _InterruptedError(_BEGINS_AGAIN)
    if status == _PARTIAL and part.done:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
        if match is None or int(match[1]) != part.done:
            part.clear()
            raise _InterruptedError(_BEGINS_AGAIN)
        _note_total(part, match[2])
        return
    if status != _OK:
        msg = (
            f"{public_address(str(response.url))!r} answers {status} {response.reason_phrase}: the "
            f"file is not there, or not for everybody; check the address, {_OTHER_WAYS}"
        )
        raise GuardError(msg, code=ErrorCode.MODEL_DOWNLOAD)
    # Before anything is deleted: an error page must not cost what an earlier run has brought.
    _note_total(part, response.headers.get("content-length", ""))
    if part.done:
        part.clear()  # the server knows no ranges, and sends everything


def _note_total(part: PartialFile, text: str) -> None:
    """Compare the size that a server states with the expected one."""
    if not text.isdecimal():
        return
    if part.expected.size is not None and int(text) != part.expected.size:
        raise wrong_size(part, f"{int(text):,}")
    part.total = int(text)
    part.check_space()


def wrong_size(part: PartialFile, actual: Any) -> GuardError:
    """The error for a file with another number of bytes than expected."""
    msg = (
        f"this is not the expected file: {part.total:,} bytes are expected, and it has {actual}. "
        f"It may be another version, or an error page; check address and file, or {_OTHER_WAYS}"
    )
    return GuardError(msg, code=ErrorCode.MODEL_DIGEST)


def wrong_digest(part: PartialFile, *, origin: str) -> GuardError:
    """The error for a file with another SHA-256 than expected."""
    msg = (
        f"{origin!r} is not the expected file: its sha256 is {part.sha256}, expected "
        f"{part.expected.sha256}. It was not installed; check the address and the digest, or "
        f"{_OTHER_WAYS}"
    )
    return GuardError(msg, code=ErrorCode.MODEL_DIGEST)


def _no_space(path: Path, *, needed: int, reason: str) -> GuardError:
    msg = (
        f"no room in {str(path.parent)!r} for {needed:,} more bytes ({reason}): free some, or set "
        "MEMGUARD_MODELS to a folder on another disk"
    )
    return GuardError(msg, code=ErrorCode.MODEL_SPACE)
