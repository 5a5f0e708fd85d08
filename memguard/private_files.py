"""Files and folders that only their owner can read: they contain a person's memories.

Folders are created with the mode 0700 and files with 0600, whatever the umask is. What exists
already keeps its mode, because its owner may share it on purpose; `memguard doctor` reports it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_folder(path: Path) -> bool:
    """Create a folder and its parents if it does not exist; returns whether it was created.

    Raises:
        OSError: If it cannot be created, or the path is that of a file.
    """
    if path.is_dir():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return True


def create_file(path: Path) -> None:
    """Create an empty file if it does not exist.

    Raises:
        OSError: If it cannot be created.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def readable_by_others(folder: Path) -> Iterator[Path]:
    """A folder, and what is in it, as far as its own mode lets other users read it.

    What is in a private folder below it cannot be reached by others, whatever its mode is.
    """
    if os.name == "nt":  # other rules, which the mode does not show
        return
    if folder.stat().st_mode & _OTHERS:
        yield folder
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.stat().st_mode & _OTHERS:
            continue
        if path.is_dir():
            yield from readable_by_others(path)
        else:
            yield path


def make_private(paths: Iterator[Path]) -> int:
    """Take away the rights of other users; returns how many paths have changed."""
    count = 0
    for path in paths:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
        count += 1
    return count
