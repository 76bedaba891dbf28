"""The server that the tests of the api ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.api.yard import Yard, running
from tests.postgres import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One for a whole file of tests, on each database: people and jobs are named so that they do not meet."""
    folder = tmp_path_factory.mktemp("yard")
    if request.param == "sqlite":
        with running(folder) as yard:
            yield yard
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    url = postgres.database_with_tables()
    with running(folder, database_url=url) as yard:
        yield yard
    postgres.drop_database(url)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One for this test alone."""
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yield yard
