"""From options to a store, a journal and a model."""

from pathlib import Path
from typing import TYPE_CHECKING

from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.llm.models import Model
    from memguard.stores import ChromaStore
    from memguard.stores.journal import Journal

JOURNAL_FILE = "memguard.sqlite3"
_FILE_ENDINGS = {".json", ".jsonl", ".md", ".txt"}


def open_store(store: str, *, embed: str | None, make: bool = True) -> "ChromaStore":
    """The store at a folder, or at HOST:PORT; a new folder only where one is to be made."""
    from memguard.stores import ChromaStore

    server = server_address(store)
    if server is None and not make and not Path(store).exists():
        msg = f"there is no store at {store!r}: write to it first, or name another one"
        raise InvalidInputError(msg, code=ErrorCode.STORE_PATH)
    if server is not None:
        return ChromaStore.server(*server, embed=embed)
    return ChromaStore.local(store, embed=embed)


def journal_path(store: str) -> Path:
    """The file of the journal: beside a local store, in this folder for a server."""
    return (Path() if server_address(store) is not None else Path(store)) / JOURNAL_FILE


def make_journal(store: str) -> "Journal":
    """The journal of a store; a new one where there is none."""
    from memguard.stores.journal import Journal

    return Journal.open(journal_path(store))


def open_journal(store: str) -> "Journal":
    """The journal of a store that was written to before."""
    path = journal_path(store)
    if not path.exists():
        msg = f"no receipts at {str(path)!r}: write to this store first, or name another one"
        raise InvalidInputError(msg, code=ErrorCode.STORE_PATH)
    return make_journal(store)


def open_model(model: str | None, *, base_url: str | None) -> "Model":
    """The model that the options name; there is no default one."""
    from memguard.llm.models import resolve_model

    return resolve_model(model, base_url=base_url)


def pick_model(model: str | None, *, base_url: str | None) -> "Model | str":
    """The model that the options name; else the only one that `base_url` serves; else `"local"`."""
    if model == "local" or (model is None and base_url is None):
        return "local"
    if model is not None:
        return open_model(model, base_url=base_url)
    from memguard.llm.reach import served
    from memguard.portal import run_sync

    names = run_sync(served(open_model("openai:unnamed", base_url=base_url)))
    if len(names) == 1:
        return open_model(f"openai:{names[0]}", base_url=base_url)
    msg = (
        f"{base_url!r} serves {len(names)} models, {names[:10]}: name one with --model openai:NAME"
    )
    raise InvalidInputError(msg, code=ErrorCode.MODEL_MISSING)


def named_file(given: str) -> Path | None:
    """The file that is meant, where a file or a text may be given; `None` for a text.

    Raises:
        InvalidInputError: If it can only be the name of a file, and there is none.
    """
    try:
        path = Path(given)
        if path.is_file():
            return path
        is_folder = bool(given) and path.is_dir()
    except (OSError, ValueError):
        return None  # too long or too odd for a file name: it is the text itself
    if is_folder or (path.suffix.lower() in _FILE_ENDINGS and len(given.split()) == 1):
        # Judged as a text, a slip in the name would read as a lack of support.
        msg = f"there is no file {given!r}: name a file, or give the text itself"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
    return None


def server_address(store: str) -> tuple[str, int] | None:
    """HOST and PORT, if that is what `--store` holds."""
    host, colon, port = store.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host or "\\" in host or not host:
        return None
    return host, int(port)
