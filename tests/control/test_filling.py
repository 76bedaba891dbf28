"""Who writes too much on a machine's own disk is told in time, then ended; a full disk lets nothing new in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.test_control import sim
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Cause, Kind, ReplicaId, State, Wanted
from gpuyard.engines.seam import DiskUse
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.store import workplaces
from gpuyard.store.database import Database


class Measured(SimulatedEngine):
    """Simulated machines that also tell what was written on their disks."""

    def __init__(self, yard: Yard) -> None:
        super().__init__([a_node("a", 8)], lambda: yard.time)
        self.uses: dict[ReplicaId, DiskUse] = {}
        self.graces: list[float] = []
        self.state = NodeState.READY

    def nodes(self) -> list[Node]:
        return [replace(node, state=self.state) for node in super().nodes()]

    def disk_use(self) -> dict[ReplicaId, DiskUse]:
        return self.uses

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        self.graces.append(grace_seconds)
        super().stop(id, handle, grace_seconds)


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yard.engine = Measured(yard)
        yard.crash()
        yield yard


def measured(yard: Yard) -> Measured:
    assert isinstance(yard.engine, Measured)
    return yard.engine


def test_it_is_told_once_at_four_fifths_and_ended_beyond_the_limit_without_another_try(yard: Yard) -> None:
    job = a_job(cards=1, env=sim(100_000))
    spec = replace(job.spec, retries={Cause.EXIT: 3}, grace_seconds=3600.0)
    id = yard.submit(replace(job, spec=spec))
    yard.pass_time()
    replica = ReplicaId(id, 1, "worker", 0)
    measured(yard).uses = {replica: DiskUse(79, 100)}
    yard.pass_time(10)
    assert Code.DISK_SOON not in yard.told(id)
    measured(yard).uses = {replica: DiskUse(81, 100)}
    yard.pass_time(10)
    yard.pass_time(10)
    assert yard.told(id).count(Code.DISK_SOON) == 1
    assert yard.state(id) is State.RUNNING
    measured(yard).uses = {replica: DiskUse(101, 100)}
    yard.pass_time(10, steps=8)
    reason = yard.get(id).reason
    assert (yard.state(id), reason.code) == (State.FAILED, Code.DISK_OVER)
    assert (reason.facts["used"], reason.facts["limit"]) == (101, 100)
    assert measured(yard).graces[0] == 10.0


def test_an_environment_is_stopped_with_the_reason_and_can_be_started_again(yard: Yard) -> None:
    job = a_job(cards=1, env=sim(100_000))
    id = yard.submit(replace(job, spec=replace(job.spec, kind=Kind.ENV)))
    with yard.database.write() as conn:
        workplaces.add(conn, id, None)
    yard.pass_time()
    measured(yard).uses = {ReplicaId(id, 1, "worker", 0): DiskUse(101, 100)}
    yard.pass_time(10, steps=8)
    assert (yard.state(id), yard.get(id).reason.code) == (State.PAUSED, Code.DISK_OVER)
    yard.want(id, Wanted.RUN)
    yard.pass_time(10, steps=8)
    assert yard.state(id) is State.RUNNING  # what was measured of the attempt before does not count


def test_a_machine_whose_disk_is_nearly_full_gets_nothing_new_and_keeps_what_runs(yard: Yard) -> None:
    first = yard.submit(a_job(cards=1, env=sim(100_000)))
    yard.pass_time()
    measured(yard).state = NodeState.DISK_FULL
    second = yard.submit(a_job("second0001", cards=1, env=sim(100_000)))
    yard.pass_time(10, steps=8)
    assert (yard.state(first), yard.state(second)) == (State.RUNNING, State.QUEUED)
    reason = yard.get(second).reason
    assert (reason.code, reason.facts["nodes"]) == (Code.NO_NODES, ["a (disk_full)"])
    measured(yard).state = NodeState.READY
    yard.pass_time(10, steps=8)
    assert yard.state(second) is State.RUNNING
