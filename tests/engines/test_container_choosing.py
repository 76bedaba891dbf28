"""Which engine a platform takes by itself, and how it comes to a container engine of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.engines.containers import missing
from tests.engines.places import PATIENCE_SECONDS

from gpuyard.engines.container.client import EngineClient, about
from gpuyard.engines.container.seccomp import tightened
from gpuyard.engines.container.service import OwnService
from gpuyard.engines.process.engine import ProcessEngine
from gpuyard.engines.seam import KeepsImages
from gpuyard.settings import Settings
from gpuyard.wiring import CannotStart, SteadyClock, build_engine

CLOCK = SteadyClock(0.0, 0.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    if missing():
        pytest.skip(missing())
    return tmp_path / "data"


def test_without_a_toolbox_work_runs_as_processes_and_the_way_to_containers_is_told(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = build_engine(Settings(data=data), CLOCK)
    engine.close()
    assert isinstance(engine, ProcessEngine)
    assert "yard toolbox build" in capsys.readouterr().out


def test_with_a_toolbox_it_runs_in_containers_of_a_podman_of_our_own_that_goes_with_the_server(data: Path) -> None:
    (data / "toolbox" / "1").mkdir(parents=True)
    (data / "toolbox" / "current").symlink_to("1")
    service = OwnService(data)
    engine = build_engine(Settings(data=data), CLOCK)
    try:
        assert engine.name == "container"
        assert isinstance(engine, KeepsImages)
        assert engine.images() == []
        assert about(service.socket) is not None
    finally:
        engine.close()
    assert about(service.socket) is None


def test_a_socket_that_nobody_answers_on_is_told_when_it_was_asked_for(data: Path) -> None:
    with pytest.raises(CannotStart) as refused:
        build_engine(Settings(data=data, engine="container", engine_socket="/nowhere.sock"), CLOCK)
    assert "/nowhere.sock" in str(refused.value)


def test_a_service_that_was_killed_is_started_again(data: Path) -> None:
    service = OwnService(data)
    service.ensure()
    assert service.wait()
    client = EngineClient(service.socket)
    client.on_news(lambda is_away: service.heed(client.away_seconds) if is_away else None)
    until = time.monotonic() + PATIENCE_SECONDS
    first = service._pid()
    assert first is not None
    os.kill(first, 9)
    while not (service._pid() not in (None, first) and client.knock()):
        assert time.monotonic() < until
        time.sleep(0.05)
    client.close()
    service.end()


def test_the_data_folder_may_have_any_name(tmp_path: Path) -> None:
    """A socket's address has room for 107 letters."""
    assert len(OwnService(tmp_path / ("x" * 200)).socket) < 100


def test_new_namespaces_are_closed_and_all_other_calls_stay() -> None:
    allow = "SCMP_ACT_ALLOW"
    profile = {"defaultAction": "X", "syscalls": [{"names": ["read", "clone", "clone3", "unshare"], "action": allow}]}
    rules = tightened(profile)["syscalls"]
    allowed = [(rule["names"], "args" in rule) for rule in rules if rule["action"] == allow]
    assert allowed == [(["read"], False), (["clone"], True)]
