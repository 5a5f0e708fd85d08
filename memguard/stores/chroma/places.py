"""Where a Chroma is; values that can be compared, and no Chroma yet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self


class _Fixed:
    """A place with one name."""

    def resolved(self) -> Self:
        """The place itself."""
        return self


@dataclass(frozen=True, kw_only=True)
class Local:
    """A directory of this machine."""

    path: Path

    def resolved(self) -> Self:
        """The same directory by its one absolute path, so that two names of it are one place."""
        return replace(self, path=self.path.expanduser().resolve())

    def __str__(self) -> str:
        return f"path {str(self.path)!r}"


@dataclass(frozen=True, kw_only=True)
class Memory(_Fixed):
    """A Chroma of its own in this process, gone when it is closed."""

    serial: int

    def __str__(self) -> str:
        return "memory"


@dataclass(frozen=True, kw_only=True)
class Server(_Fixed):
    """A `chroma run` somewhere."""

    host: str
    port: int
    ssl: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    tenant: str = "default_tenant"
    database: str = "default_database"

    def __str__(self) -> str:
        return f"server {self.host}:{self.port}"

    @classmethod
    def at(
        cls,
        host: str,
        port: int,
        *,
        ssl: bool,
        headers: Mapping[str, str] | None,
        tenant: str,
        database: str,
    ) -> "Server":
        """The address of a server; headers in any order are the same headers."""
        return cls(
            host=host,
            port=port,
            ssl=ssl,
            headers=tuple(sorted((headers or {}).items())),
            tenant=tenant,
            database=database,
        )


Place = Local | Memory | Server
