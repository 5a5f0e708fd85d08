"""Small open models by name: a catalogue, the folder they are in, and how they get there.

`model="local:NAME"` runs a GGUF file of that folder in this process, as `llamacpp:FILE.gguf` does.
`pull_model` fetches it: from its address, or from a file of this machine. A file counts as pulled
only after its SHA-256 was found to be the expected one.

The catalogue, `catalogue.toml`, lists models that were measured as judges. Models of your own are
added by address and digest; what is known of them is stored next to the file.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import threading
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError

from memguard.errors import ErrorCode, GuardError, InvalidInputError, ModelConfigurationError
from memguard.llm.download import (
    Expectation,
    OnProgress,
    PartialFile,
    PullProgress,
    copy,
    download,
    wrong_digest,
)
from memguard.llm.failures import public_address
from memguard.private_files import create_file, create_folder
from memguard.schema.base import Frozen

FOLDER_VARIABLE = "MEMGUARD_MODELS"
"""The environment variable that names another folder."""

# Names become file names, on file systems that do not tell upper case from lower case.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAGIC = b"GGUF"
_LOCK_POLL = 0.2


class ThresholdFigures(Frozen):
    """What a model admits at one threshold."""

    tau: float
    """The threshold."""
    true: int
    """Supported memories admitted."""
    wrong: int
    """Changed memories admitted."""


class ModelFigures(Frozen):
    """How well a model judged labelled memories; one call and one short answer for each."""

    command: str
    """The command that measured it."""
    gate: str
    """The gate that judges so, as it is written in code."""
    supported: int
    """Labelled memories that their source supports."""
    changed: int
    """Labelled memories with one detail changed."""
    auc: float
    """The chance that a supported memory scores above a changed one, 0 to 1; 0.5 is guessing."""
    auc_low: float
    """Lower end of its 95 % interval."""
    auc_high: float
    """Upper end of its 95 % interval."""
    thresholds: tuple[ThresholdFigures, ...]
    """What it admits at some thresholds."""
    cpu_seconds: float
    """Mean processor seconds for one memory, on one thread."""
    memory_mb: int
    """Peak memory of the process, in MB."""
    hardware: str
    """What it was measured on."""
    on: date
    """The day of the measurement."""


class LocalModel(Frozen):
    """A GGUF chat model that can be pulled."""

    name: str
    """The name in `local:NAME`."""
    description: str = ""
    """What it is, and what it is good for."""
    url: str = ""
    """Where the file is served; empty for a model that came from a local file."""
    sha256: str
    """The digest of the file."""
    size: int | None = None
    """Bytes of the file; `None` for a model of your own before it is pulled."""
    licence: str = ""
    """SPDX identifier of the licence of the weights; empty if it is not known."""
    context: int | None = None
    """Tokens of context that it was trained for."""
    figures: tuple[ModelFigures, ...] = ()
    """How well it judges, by each way that was measured; empty if it was not."""


class StoredModel(Frozen):
    """A model, and what of its file is on this machine."""

    model: LocalModel
    path: Path
    """Where the file is, or would be."""
    state: Literal["pulled", "partial", "absent"]
    """`partial`: a pull was interrupted, and the next one goes on from there."""
    arrived: int
    """Bytes that are on this machine."""


def models_folder() -> Path:
    """The folder of the model files: `MEMGUARD_MODELS`, or `~/.cache/memguard/models`."""
    # The one variable that the library reads: program and command line must agree on the folder.
    configured = os.environ.get(FOLDER_VARIABLE, "").strip()
    return Path(configured or "~/.cache/memguard/models").expanduser()


def list_local_models() -> tuple[StoredModel, ...]:
    """The models of the catalogue, then those of your own, with their state on this machine.

    Raises:
        ModelConfigurationError: If the record of a model of your own cannot be read.
    """
    stems = sorted(path.stem for path in models_folder().glob("*.json"))
    custom = [name for name in stems if _NAME.fullmatch(name) and name not in _catalogue()]
    names = [*_catalogue(), *custom]
    return tuple(_stored(_model(name)) for name in names)


def path_of_model(name: str) -> Path:
    """The file of a pulled model. It reads the file's size, not its bytes.

    Raises:
        ModelConfigurationError: If there is no such model, or it is not pulled. The message has
            the command that pulls it.
    """
    stored = _stored(_model(name))
    if stored.state == "pulled":
        return stored.path
    size = "" if stored.model.size is None else f" ({stored.model.size / 1e9:.2f} GB)"
    what = "is only partly here" if stored.state == "partial" else "is not on this machine"
    msg = f"model 'local:{name}' {what}: run `memguard models pull {name}`{size}"
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_ABSENT)


def pull_model(
    name: str,
    *,
    url: str | None = None,
    sha256: str | None = None,
    file: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> StoredModel:
    """Bring a model to this machine, or check the one that is there. Blocks until it is done.

    Args:
        name: A model of the catalogue, or the name of one of your own.
        url: Another address of the file: a mirror, or that of a model of your own.
        sha256: The digest of a model of your own; required with `url`.
        file: A GGUF file of this machine that is copied, in place of a download.
        on_progress: Receives how far it is.

    Raises:
        ModelConfigurationError: If there is no such model.
        InvalidInputError: If name, address, digest and file do not go together, or a file or the
            folder cannot be used.
        GuardError: If the download fails, the file is not the expected one, or the disk is full.
            What has arrived of a download is kept, and the next pull goes on from there.
    """
    return _pull(
        name,
        url=url,
        sha256=sha256,
        file=None if file is None else Path(file),
        on_progress=on_progress or _ignore,
        cancelled=threading.Event(),
    )


async def apull_model(
    name: str,
    *,
    url: str | None = None,
    sha256: str | None = None,
    file: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> StoredModel:
    """As `pull_model`, in a worker thread, which also calls `on_progress`.

    A cancelled pull stops at the next bytes and keeps what has arrived.
    """
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(
            _pull,
            name,
            url=url,
            sha256=sha256,
            file=None if file is None else Path(file),
            on_progress=on_progress or _ignore,
            cancelled=cancelled,
        )
    finally:
        # A thread cannot be cancelled, so it checks this event between two pieces.
        cancelled.set()


def remove_model(name: str) -> int:
    """Delete the file of a model, or what has arrived of it, and return how many bytes that frees.

    A model of your own is forgotten as well.

    Raises:
        ModelConfigurationError: If there is no such model, or nothing of it is here.
        InvalidInputError: If the folder cannot be used.
        GuardError: If another process is pulling it.
    """
    stored = _stored(_model(name))
    record = _record_path(name)
    if stored.state == "absent" and not record.exists():
        msg = f"nothing of model 'local:{name}' is in {str(models_folder())!r}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_ABSENT)
    try:
        with FileLock(_lock_path(name), timeout=0):
            for path in (stored.path, _part_path(name), record):
                path.unlink(missing_ok=True)
    except Timeout as error:
        msg = f"another process is pulling 'local:{name}': wait for it, or stop it, and try again"
        raise GuardError(msg, code=ErrorCode.MODEL_DOWNLOAD) from error
    except OSError as error:
        raise _unusable_folder(error) from error
    return stored.arrived


@functools.cache
def _catalogue() -> dict[str, LocalModel]:
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return {
        name: LocalModel.model_validate({"name": name, **entry})
        for name, entry in tomllib.loads(text).items()
    }


def _model(name: str) -> LocalModel:
    """A model of the catalogue or of your own.

    Raises:
        ModelConfigurationError: If there is none of this name.
    """
    model = _catalogue().get(name) or _own_model(name)
    if model is not None:
        return model
    msg = (
        f"there is no local model {name!r}: `memguard models` lists them. To add one of your own: "
        f"memguard models pull NAME --url ADDRESS --sha256 DIGEST, or --from FILE.gguf"
    )
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNKNOWN)


def _own_model(name: str) -> LocalModel | None:
    path = _record_path(name)
    if not _NAME.fullmatch(name) or not path.exists():
        return None
    try:
        record = LocalModel.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        msg = f"{str(path)!r} cannot be read: delete it, and pull the model again"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_ABSENT) from error
    # Paths are made from the name, so it is never taken from what a file says.
    return record.model_copy(update={"name": name})


def _stored(model: LocalModel) -> StoredModel:
    path = models_folder() / f"{model.name}.gguf"
    size = _size_of(path)
    if size is not None and size == (model.size or size):
        return StoredModel(model=model, path=path, state="pulled", arrived=size)
    # A file of another size is of an older catalogue, or damaged; it is replaced by a pull.
    arrived = (size or 0) + (_size_of(_part_path(model.name)) or 0)
    state = "partial" if arrived else "absent"
    return StoredModel(model=model, path=path, state=state, arrived=arrived)


def _size_of(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _part_path(name: str) -> Path:
    return models_folder() / f"{name}.gguf.part"


def _record_path(name: str) -> Path:
    return models_folder() / f"{name}.json"


def _lock_path(name: str) -> Path:
    return models_folder() / f"{name}.lock"


def _ignore(_: PullProgress) -> None:
    """Progress that nobody follows."""


def _pull(
    name: str,
    *,
    url: str | None,
    sha256: str | None,
    file: Path | None,
    on_progress: OnProgress,
    cancelled: threading.Event,
) -> StoredModel:
    model = _requested(name, url=url, sha256=sha256, file=file)
    part = PartialFile(
        _part_path(name),
        expected=Expectation(sha256=model.sha256 or None, size=model.size),
        on_progress=on_progress,
        cancelled=cancelled,
    )
    try:
        create_folder(models_folder())
        with _locked(name, part):
            return _present(model, part) or _fetched(model, part, file=file)
    except (
        OSError
    ) as error:  # of the folder: those of the network and of a full disk are GuardErrors
        raise _unusable_folder(error) from error


def _unusable_folder(error: OSError) -> InvalidInputError:
    msg = (
        f"the folder {str(models_folder())!r} cannot be used ({error}): check its permissions, or "
        f"set {FOLDER_VARIABLE} to another one"
    )
    return InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)


def _requested(name: str, *, url: str | None, sha256: str | None, file: Path | None) -> LocalModel:
    """The model that the arguments of a pull name; an empty digest is one to be computed."""
    digest = (sha256 or "").strip().lower()
    problem = _problem_of(name, url=url, digest=digest, file=file)
    if problem:
        raise InvalidInputError(problem, code=ErrorCode.INPUT_INVALID)
    model = _catalogue().get(name)
    if model is None and url is None and file is None:
        model = _model(name)
    if model is None:
        return LocalModel(name=name, url=url or "", sha256=digest)
    if digest and digest != model.sha256:
        msg = f"{name!r} has the sha256 {model.sha256}: choose another name for another file"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return model.model_copy(update={"url": url}) if url else model


def _problem_of(name: str, *, url: str | None, digest: str, file: Path | None) -> str:
    """Why the arguments of a pull cannot be used; empty if they can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not a name: use up to 64 of a-z, 0-9, '.', '_' and '-'"
    if url is not None and file is not None:
        return "pass an address or a file, not both"
    if url is not None and not url.lower().startswith(("https://", "http://")):
        return f"{url!r} is not a web address: it begins with https://"
    if digest and not _SHA256.fullmatch(digest):
        return f"{digest!r} is not a SHA-256: it has 64 hexadecimal digits"
    if url is not None and not digest and name not in _catalogue():
        return "the file at an address needs its digest: --sha256, 64 hexadecimal digits"
    return ""


@contextmanager
def _locked(name: str, part: PartialFile) -> Generator[None]:
    """Holds the lock of a model; waits for another pull of it."""
    lock = FileLock(_lock_path(name), mode=0o600)
    while True:
        try:
            lock.acquire(timeout=_LOCK_POLL)
            break
        except Timeout:
            part.report("waiting")
    try:
        yield
    finally:
        lock.release()


def _present(model: LocalModel, part: PartialFile) -> StoredModel | None:
    """The model, if its file is there and has the right bytes."""
    path = models_folder() / f"{model.name}.gguf"
    if not model.sha256 or _size_of(path) is None:
        return None
    existing = part.of_file(path)
    existing.read()
    return _stored(_recorded(model, existing)) if existing.is_right else None


def _fetched(model: LocalModel, part: PartialFile, *, file: Path | None) -> StoredModel:
    """The model, after its file was brought here."""
    if file is None and not model.url:
        msg = f"{model.name!r} came from a local file: name one again with --from"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    if file is None:
        if not _record_path(model.name).exists():
            _record(model)  # so that the name is enough to go on after an interruption
        download(model.url, part)
    else:
        copy(file, part)
    origin = model.url if file is None else str(file)
    if model.sha256 and not part.is_right:
        # Of no use to a later pull, which would append to it.
        part.path.unlink()
        raise wrong_digest(part, origin=origin)
    with part.path.open("rb+") as opened:
        magic = opened.read(len(_MAGIC))
        # On the disk before the rename: a crash must not put an empty file under the final name.
        os.fsync(opened.fileno())
    if magic != _MAGIC:
        part.path.unlink()
        msg = f"{origin!r} is not a GGUF file; convert or download the model as GGUF"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
    recorded = _recorded(model, part)
    part.path.replace(models_folder() / f"{model.name}.gguf")
    return _stored(recorded)


def _recorded(model: LocalModel, part: PartialFile) -> LocalModel:
    """The model with what is now known of its file."""
    if model.name in _catalogue():
        return model
    return _record(model.model_copy(update={"sha256": part.sha256, "size": part.done}))


def _record(model: LocalModel) -> LocalModel:
    """Note a model of your own on the disk; a password in its address is left out."""
    if model.name in _catalogue():
        return model
    noted = model.model_copy(update={"url": public_address(model.url)})
    path = _record_path(model.name)
    temporary = path.with_suffix(".json.new")
    create_file(temporary)
    temporary.write_text(noted.model_dump_json(indent=2), encoding="utf-8")
    temporary.replace(path)
    return noted
