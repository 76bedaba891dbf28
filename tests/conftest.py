"""What tests share: a database of each kind, real and fresh each time."""

from __future__ import annotations

import compileall
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from tests.postgres import PostgresMissing, PostgresServer, postgres_server

import gpuyard
from gpuyard.store.database import Database

SOURCE = Path(gpuyard.__file__).parent

# A change must not fail by chance: `make test` tries the same worlds every time, `make soak` throws the dice anew.
settings.register_profile("same", derandomize=True)
settings.register_profile("dice", derandomize=False)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("dice" if config.getoption("markexpr") == "soak" else "same")
    # Where Python keeps no bytecode, each of the hundreds of servers would translate all of gpuyard's source again.
    compileall.compile_dir(SOURCE, quiet=1)


# A run started in the background has Ctrl-C ignored, and so would every command that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run. Tests that kill a server start their own."""
    try:
        with postgres_server() as server:
            yield server
    except PostgresMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """The test runs once on each."""
    return str(request.param)


@pytest.fixture
def database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database in which nothing is written yet."""
    if database_kind == "sqlite":
        yield f"sqlite:///{tmp_path}/gpuyard.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.database_with_tables()
    yield url
    server.drop_database(url)


@pytest.fixture
def empty_database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same without any tables."""
    if database_kind == "sqlite":
        yield f"sqlite:///{tmp_path}/gpuyard.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(Database.open(database_url)) as opened:
        yield opened
