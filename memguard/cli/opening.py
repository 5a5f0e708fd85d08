"""Open the store, the journal and the model that the options of a command name."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memguard.cli.options import namespace_of
from memguard.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from memguard.journal.journal import Journal
    from memguard.llm.models import Model
    from memguard.memories.memories import Memories
    from memguard.stores import ChromaStore

JOURNAL_FILE = "memguard.sqlite3"
_FILE_ENDINGS = {".json", ".jsonl", ".md", ".txt"}
"""A single word with one of these endings is the name of a file, and never a text."""


def open_store(
    store: str, *, embed: str | None, create: bool = True, data_path: Path | None = None
) -> "ChromaStore":
    """Open the store in a folder or at HOST:PORT.

    Args:
        store: The folder, or host and port.
        embed: The embedding model; `None` for the built-in one.
        create: Whether to create a folder that does not exist.
        data_path: The data folder of a server on this machine.

    Raises:
        InvalidInputError: If the folder does not exist and is not to be created.
    """
    from memguard.stores import ChromaStore

    server = server_address(store)
    if server is not None:
        return ChromaStore.server(*server, embed=embed, data_path=data_path)
    if not create and not Path(store).exists():
        msg = f"there is no store at {store!r}: write to it first, or name another one"
        raise InvalidInputError(msg, code=ErrorCode.STORE_PATH)
    return ChromaStore.local(store, embed=embed)


def journal_path(store: str) -> Path:
    """The file of the journal: in the folder of a local store; in this folder for a server."""
    # Receipts are a file, and a server has no folder that this machine could write it to.
    return (Path() if server_address(store) is not None else Path(store)) / JOURNAL_FILE


def create_journal(store: str) -> "Journal":
    """The journal of a store, created if there is none."""
    from memguard.journal.journal import Journal

    return Journal.open(journal_path(store))


def open_journal(store: str) -> "Journal":
    """The journal of a store that was written to before.

    Raises:
        InvalidInputError: If the store has no journal.
    """
    path = journal_path(store)
    if not path.exists():
        msg = f"no receipts at {str(path)!r}: write to this store first, or name another one"
        raise InvalidInputError(msg, code=ErrorCode.STORE_PATH)
    return create_journal(store)


def pick_model(model: str | None, *, base_url: str | None) -> "Model | str":
    """The model that the options name, else the only one of the server, else `"local"`."""
    if model == "local" or (model is None and base_url is None):
        return "local"
    from memguard.llm.models import list_models, resolve_model
    from memguard.portal import run_sync

    if model is not None:
        return resolve_model(model, base_url=base_url)
    # A client needs some name; listing the models of a server does not use it.
    unnamed = resolve_model("openai:unnamed", base_url=base_url)
    names = run_sync(list_models(unnamed))
    if len(names) == 1:
        return resolve_model(f"openai:{names[0]}", base_url=base_url)
    msg = (
        f"{unnamed.base_url!r} serves {len(names)} models, {names[:10]}: name one with --model "
        "openai:NAME"
    )
    raise InvalidInputError(msg, code=ErrorCode.MODEL_MISSING)


def named_file(text: str) -> Path | None:
    """The file that an argument names, if it may be a file or a text; `None` for a text.

    Raises:
        InvalidInputError: If it can only be the name of a file, and there is none.
    """
    try:
        path = Path(text)
        if path.is_file():
            return path
        is_folder = bool(text) and path.is_dir()
    except (OSError, ValueError):
        return None  # too long, or with characters that no file name has: the text itself
    if is_folder or (path.suffix.lower() in _FILE_ENDINGS and len(text.split()) == 1):
        # Judged as a text, a misspelled name would look like a source without support.
        msg = f"there is no file {text!r}: name a file, or pass the text itself"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
    return None


def server_address(store: str) -> tuple[str, int] | None:
    """Host and port, if `--store` is HOST:PORT; `None` for a folder."""
    host, colon, port = store.rpartition(":")
    # A path may end in a colon and a number too, but the name of a host has no slash.
    if not colon or not port.isdecimal() or "/" in host or "\\" in host or not host:
        return None
    return host, int(port)


@contextmanager
def open_memories(
    store: str,
    *,
    embed: str | None,
    user: str | None,
    namespace: list[str] | None,
    create: bool = False,
) -> "Generator[Memories]":
    """The memories of the namespace that the options name; the store is closed at the end.

    Args:
        store: The folder of the store, or host and port.
        embed: The embedding model; `None` for the built-in one.
        user: The user, as in `namespace_of`.
        namespace: The labels, as in `namespace_of`.
        create: Whether to create a folder that does not exist.

    Raises:
        InvalidInputError: If a label is blank, or there is no store and none is to be created.
    """
    from memguard.memories.memories import Memories

    labels = namespace_of(user, namespace)
    # The path and not an open journal: a command that only looks at the store creates no file.
    with (
        open_store(store, embed=embed, create=create) as opened,
        Memories(opened, namespace=labels, receipts=journal_path(store)) as memories,
    ):
        yield memories
