"""The SSH door, with people and somewhere to go. Tests of the web part have a `house` of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.ssh_house import SshHouse, a_house

from gpuyard.domain.workload import Workload


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHouse]:
    with a_house(tmp_path_factory.mktemp("ssh")) as there:
        for name in ("ann", "ben"):
            there.person(name)
        yield there


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHouse]:
    """For one test alone."""
    with a_house(tmp_path_factory.mktemp("ssh")) as there:
        there.person("ann")
        yield there


@pytest.fixture(scope="module")
def dev(house: SshHouse) -> Workload:
    """Ann's environment."""
    return house.environment("ann", "dev")


@pytest.fixture(scope="module")
def key(house: SshHouse, dev: Workload) -> Path:
    """Ann's key."""
    return house.key("ann")
