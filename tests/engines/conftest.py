"""Yards with a process engine, as many as a test needs. Whatever happens in the test, nothing of them is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engines.containers import ContainerHost, ContainerYard, Docker, Podman, missing, missing_docker
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


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    if missing_docker():
        pytest.skip(missing_docker())
    service = Docker(tmp_path_factory.mktemp("docker"))
    try:
        service.start()
        yield service
    finally:
        service.close()


@pytest.fixture
def container_yard(tmp_path: Path, podman: Podman) -> Iterator[ContainerYard]:
    yield from _yard_on(podman, tmp_path)


@pytest.fixture
def docker_yard(tmp_path: Path, docker: Docker) -> Iterator[ContainerYard]:
    yield from _yard_on(docker, tmp_path)


@pytest.fixture(params=["podman", "docker"])
def each_yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContainerYard]:
    """For what must hold on both."""
    yield from _yard_on(request.getfixturevalue(request.param), tmp_path)


def _yard_on(host: ContainerHost, folder: Path) -> Iterator[ContainerYard]:
    yard = ContainerYard(host, folder / "data", devices=[SimulatedProbe(folder / "data", 2)])
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
