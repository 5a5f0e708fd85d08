"""A private Postgres for tests: a cluster in a temporary folder, reached by a Unix socket."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_OWNERS = ("postgres", "nobody")
"""Who may own the cluster where tests run as root, which Postgres refuses."""


def find_binaries() -> Path | None:
    """The folder with `initdb` and `pg_ctl`: on the PATH, or where Debian puts them."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def private_cluster(binaries: Path) -> Generator[str]:
    """Start a cluster that listens on no port, and end it; gives how to connect."""
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="memguard-pg-"))
    if owner is not None:
        shutil.chown(folder, owner)
    data, log = folder / "data", folder / "log"
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    control = [str(binaries / "pg_ctl"), "-D", str(data)]
    try:
        initdb = [str(binaries / "initdb"), "-D", str(data)]
        _run([*initdb, "-U", "memguard", "-A", "trust", "-E", "UTF8", "--no-locale"], owner)
        _run([*control, "-w", "-t", "300", "-l", str(log), "-o", options, "start"], owner)
        try:
            yield f"host={folder} user=memguard dbname=postgres"
        finally:
            _run([*control, "-w", "-m", "immediate", "stop"], owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner() -> str | None:
    """Another user where this one is root."""
    if os.geteuid() != 0:
        return None
    import pwd

    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in _OWNERS if name in known)


def _run(command: list[str], owner: str | None) -> None:
    # Output goes to a file: the server would keep a pipe open for ever.
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            user=owner,
            group=None,
            extra_groups=None if owner is None else (),
            cwd="/",
            check=False,
        )
        if done.returncode != 0:
            said.seek(0)
            msg = f"{command[0]} ended with {done.returncode}: {said.read().decode()[-2000:]}"
            raise RuntimeError(msg)
