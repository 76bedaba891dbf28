"""A whole platform on this machine: the process engine with two simulated cards, and the owner's client to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.yard import Yard

from gpuyard import Client


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("machine")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    yard.up("--engine", "process", "--simulate-cards", "2")
    yield yard
    yard.down()


@pytest.fixture
def client(machine: Yard) -> Iterator[Client]:
    with Client(data=machine.data, language="en") as client:
        yield client
