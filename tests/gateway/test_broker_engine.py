"""The broker and the process engine together: into dev environments, and into jobs that run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import Yard, replica, wait_for
from tests.engines.porters import read_all
from tests.gateway.brokers import BrokerPlace, Screen

from gpuyard.domain.errors import Unavailable
from gpuyard.domain.workload import Life, ReplicaId
from gpuyard.gateway.broker_client import frame


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path / "data")
    yield yard
    yard.close()


@pytest.fixture
def broker(yard: Yard) -> Iterator[BrokerPlace]:
    broker = BrokerPlace(yard.data)
    yield broker
    broker.close()


def said(broker: BrokerPlace, id: ReplicaId, line: str) -> str:
    async def run() -> str:
        ears, mouth = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        running = await broker.client.run(str(id), "ann", line=line, fds=(nothing, mouth, mouth))
        os.close(nothing)
        os.close(mouth)
        text = await asyncio.to_thread(read_all, ears)
        running.close()
        return text.decode()

    return broker.do(run())


def test_somebody_comes_into_a_running_job_and_into_none_that_has_ended(yard: Yard, broker: BrokerPlace) -> None:
    id = yard.launch("echo up; while [ ! -e over ]; do sleep 0.05; done")
    yard.says(id, "up")
    assert said(broker, id, "echo $YARD_REPLICA").strip() == str(id)
    said(broker, id, "touch over")
    yard.ended(id)
    with pytest.raises(Unavailable):
        broker.do(broker.client.ping(str(id), "ann"))


def test_a_dev_environment_is_entered_while_it_starts(yard: Yard, broker: BrokerPlace) -> None:
    id = replica()
    yard.engine.launch(yard.request(id))
    broker.do(broker.client.ping(str(id), "ann"))
    wait_for(lambda: yard.look(id).life is Life.RUNNING)
    _, is_new, sock = broker.do(broker.client.terminal(str(id), "ann"))
    screen = Screen(sock)
    assert is_new
    screen.sock.send(frame(b"d", b"echo in-$YARD_WORKLOAD\n"))
    screen.shows(f"in-{id.workload}".encode())
    yard.engine.stop(id, None, 5.0)
    screen.ends()
    yard.ended(id)
    sock.close()
