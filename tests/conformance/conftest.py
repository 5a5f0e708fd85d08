"""One Chroma server for all of them, and the options every store under test gets."""

from collections.abc import Iterator

import pytest

from tests.chroma_server import ChromaServer


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    """A real server on the loopback address."""
    with ChromaServer(tmp_path_factory.mktemp("server")) as server:
        yield server
