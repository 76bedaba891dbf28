"""Yards with a process engine, as many as a test needs. Whatever happens in the test, nothing of them is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engines.containers import ContainerYard, Podman, missing
from tests.engines.places import MakeYard, Yard

from gpuyard.devices.probe import DeviceProbe
from gpuyard.devices.simulated import SimulatedProbe


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    if missing():
        pytest.skip(missing())
    service = Podman(tmp_path_factory.mktemp("podman"))
    try:
        service.start()
        yield service
    finally:
        service.close()


@pytest.fixture
def container_yard(tmp_path: Path, podman: Podman) -> Iterator[ContainerYard]:
    yard = ContainerYard(podman, tmp_path / "data", devices=[SimulatedProbe(tmp_path / "data", 2)])
    yield yard
    yard.close()


@pytest.fixture
def make_yard() -> Iterator[MakeYard]:
    made: list[Yard] = []

    def make(data: Path, devices: Sequence[DeviceProbe] = (), **options: Any) -> Yard:
        made.append(Yard(data, devices=devices, options=options))
        return made[-1]

    yield make
    for yard in made:
        yard.close()


@pytest.fixture
def yard(tmp_path: Path, make_yard: MakeYard) -> Yard:
    return make_yard(tmp_path / "data")


@pytest.fixture
def yard_with_cards(tmp_path: Path, make_yard: MakeYard) -> Yard:
    return make_yard(tmp_path / "data", [SimulatedProbe(tmp_path / "data", 4)])
