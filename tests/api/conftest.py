"""The server that the tests of the api ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.api.yard import Yard, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One for a whole file of tests: people and jobs are named so that they do not meet."""
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yield yard


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One for this test alone."""
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yield yard
