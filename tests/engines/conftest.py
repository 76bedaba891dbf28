"""A yard with a process engine, and one with simulated cards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import Yard

from gpuyard.devices.simulated import SimulatedProbe


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path / "data")
    yield yard
    yard.close()


@pytest.fixture
def yard_with_cards(tmp_path: Path) -> Iterator[Yard]:
    data = tmp_path / "data"
    yard = Yard(data, devices=[SimulatedProbe(data, 4)])
    yield yard
    yard.close()
