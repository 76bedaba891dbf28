"""Launches that wait for something that takes long: they hold no thread, their story says what for, and whoever stops
them does not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.errors import EngineWaits
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ReplicaId, State, Wanted
from gpuyard.engines.seam import LaunchRequest
from gpuyard.engines.simulated import SimulatedEngine
from gpuyard.store.database import Database


class Fetching:
    """Put before an engine: launches wait until the image has come."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._launch, self.is_here, self.asked = engine.launch, False, 0
        self.then: dict[ReplicaId, Callable[[], None]] = {}

    def launch(self, request: LaunchRequest) -> str:
        self.asked += 1
        if self.is_here:
            return self._launch(request)
        raise EngineWaits(because(Code.PULLING, image="x", replica=request.id.short), partial(self._keep, request.id))

    def _keep(self, id: ReplicaId, call: Callable[[], None]) -> None:
        self.then[id] = call


def a_yard(database: Database) -> tuple[Yard, Fetching]:
    yard = Yard(database, [a_node("a", 8)])
    fetching = Fetching(yard.engine)
    yard.engine.launch = fetching.launch  # type: ignore[method-assign]
    return yard, fetching


def test_a_launch_that_waits_is_asked_for_again_when_that_leads_on_and_not_before(database: Database) -> None:
    yard, fetching = a_yard(database)
    id = yard.submit(a_job(cards=1))
    yard.pass_time(steps=8)
    assert (yard.state(id), fetching.asked) == (State.PLACED, 1)
    assert yard.told(id).count(Code.PULLING) == 1
    fetching.is_here = True
    (again,) = fetching.then.values()
    again()
    yard.pass_time()
    assert yard.state(id) is State.RUNNING
    yard.close()


def test_who_is_stopped_while_it_waits_has_stopped_at_once_and_is_not_asked_for_again(database: Database) -> None:
    yard, fetching = a_yard(database)
    id = yard.submit(a_job(cards=1))
    yard.pass_time()
    yard.want(id, Wanted.STOP)
    yard.pass_time()
    assert yard.state(id) is State.STOPPED
    (again,) = fetching.then.values()
    again()
    assert fetching.asked == 1
    yard.close()
