"""What the simulated engine does besides the contract: work that is saved and goes on from there."""

from __future__ import annotations

import pytest
from tests.engines.places import replica

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.errors import EngineError
from gpuyard.domain.workload import Life, ReplicaId
from gpuyard.engines.seam import LaunchRequest, Progress
from gpuyard.engines.simulated import SimulatedEngine, virtual_nodes


class Yard:
    def __init__(self) -> None:
        self.now = 1000.0
        self.engine = SimulatedEngine(virtual_nodes(1, 2), lambda: self.now)

    def launch(self, id: ReplicaId, **env: str) -> None:
        room = Allotment("sim-1", 1000, 1 << 30, 0)
        self.engine.launch(LaunchRequest(id, "ann", 1, 1, "vision", ("true",), tuple(env.items()), room, 5.0))

    def life(self, id: ReplicaId) -> Life:
        return self.engine.observe({id: None})[id].life


def test_it_saves_every_so_often_and_not_after_it_was_stopped() -> None:
    yard, id = Yard(), replica()
    yard.launch(id, YARD_SIM_SECONDS="600", YARD_SIM_CHECKPOINT_SECONDS="60")
    yard.now = 1059.0
    assert yard.engine.progress({id: None}) == {}
    yard.now = 1150.0
    assert yard.engine.progress({id: None}) == {id: Progress(1120.0, 120)}
    yard.engine.stop(id, None, 5.0)
    yard.now = 1500.0
    assert yard.engine.progress({id: None}) == {id: Progress(1120.0, 120)}


def test_a_later_attempt_goes_on_from_what_was_saved() -> None:
    yard, first, second = Yard(), replica(), replica(attempt=2)
    work = {"YARD_SIM_SECONDS": "300", "YARD_SIM_CHECKPOINT_SECONDS": "60"}
    yard.launch(first, **work)
    yard.now = 1150.0
    yard.engine.stop(first, None, 5.0)
    yard.now = 2000.0
    yard.launch(second, **work)
    yard.now = 2070.0
    assert yard.engine.progress({second: None}) == {second: Progress(2060.0, 180)}
    yard.now = 2179.0
    assert yard.life(second) is Life.RUNNING
    yard.now = 2181.0
    assert yard.life(second) is Life.ENDED


def test_without_saving_all_of_it_is_done_again() -> None:
    yard = Yard()
    yard.launch(replica(), YARD_SIM_SECONDS="300")
    yard.now = 1290.0
    yard.engine.stop(replica(), None, 5.0)
    yard.launch(replica(attempt=2), YARD_SIM_SECONDS="300")
    yard.now = 1580.0
    assert yard.life(replica(attempt=2)) is Life.RUNNING


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_duration_that_is_none_is_refused_in_words(text: str) -> None:
    with pytest.raises(EngineError) as refused:
        Yard().launch(replica(), YARD_SIM_SECONDS=text)
    assert text in str(refused.value.reason.facts["detail"])


def test_faults_may_change_anyone() -> None:
    yard = Yard()
    yard.launch(replica(), YARD_SIM_SECONDS="300")
    assert yard.engine.changed() is None
    assert yard.engine.changed() == frozenset()
    yard.engine.faults.lost_nodes.add("sim-1")
    assert yard.engine.changed() is None
    assert yard.engine.changed() == frozenset()
