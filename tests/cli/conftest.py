"""One server of each engine for all tests of the command; tests that stop or kill a server start their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """The command with no server running yet. What a test leaves running is stopped."""
    fresh = Yard.fresh(tmp_path)
    yield fresh
    fresh.down()


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Two virtual nodes with four cards each."""
    there = Yard.fresh(tmp_path_factory.mktemp("simulated"))
    there.up("--engine", "simulated", "--nodes", "2x4")
    yield there
    there.down()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """This very machine, with two simulated cards."""
    there = Yard.fresh(tmp_path_factory.mktemp("machine"))
    there.up("--engine", "process", "--simulate-cards", "2")
    yield there
    for job in there.json("ls", "--state", "queued", "--state", "running"):
        there.run("stop", job["id"])
        there.wait_for(job["id"])
    there.down()
