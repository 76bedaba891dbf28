"""What control may rely on, whatever the engine: each promise in the seam's words is one test here."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.containers import ContainerHost, ContainerYard
from tests.engines.places import IS_ROOT, PATIENCE_SECONDS, Yard, replica

from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.errors import EngineError
from gpuyard.domain.reasons import Code
from gpuyard.domain.told import SmallFile
from gpuyard.domain.workload import Cause, Life, ReplicaId, Seen
from gpuyard.engines.seam import Engine, KeepsLogs, LaunchRequest, ReadsProgress, ReadsUsage
from gpuyard.engines.simulated import SimulatedEngine, virtual_nodes

TO_BE_SEEN = 3.0  # seconds of work that has to be met while it runs; the machine may be busy


class Stage(ABC):
    """An engine, and how time passes in it."""

    engine: Any  # an Engine that also reads usage and keeps logs

    @abstractmethod
    def work(self, id: ReplicaId, seconds: float, exit_code: int = 0, *, is_deaf: bool = False) -> LaunchRequest: ...

    @abstractmethod
    def saving_work(self, id: ReplicaId) -> LaunchRequest:
        """It runs for long and saves its work soon."""

    @abstractmethod
    def curious_work(self, id: ReplicaId, name: str, path: str) -> LaunchRequest:
        """It looks for another by name, and for a file; that it cannot write to it is well."""

    @abstractmethod
    def wait_for(self, condition: Callable[[], object]) -> None: ...

    @abstractmethod
    def restarted(self) -> Any:
        """Another engine in the same place, as a new server process makes one."""

    @abstractmethod
    def telling(self) -> Any:
        """An engine that tells of changes by itself."""

    def look(self, id: ReplicaId, handle: str | None = None) -> Seen:
        seen: Seen = self.engine.observe({id: handle})[id]
        return seen

    def end_of(self, id: ReplicaId, handle: str | None = None) -> Seen:
        self.wait_for(lambda: self.look(id, handle).life is Life.ENDED)
        return self.look(id, handle)


class ProcessStage(Stage):
    _yard: Yard | ContainerYard

    def __init__(self, data: Path) -> None:
        self._yard = Yard(data, devices=[SimulatedProbe(data, 2)])
        self._others: list[Engine] = []
        self.engine = self._yard.engine

    def work(self, id: ReplicaId, seconds: float, exit_code: int = 0, *, is_deaf: bool = False) -> LaunchRequest:
        trap = "trap '' TERM; " if is_deaf else ""
        return self._yard.request(id, "sh", "-c", f"{trap}echo started; sleep {seconds}; exit {exit_code}")

    def saving_work(self, id: ReplicaId) -> LaunchRequest:
        return self._yard.request(id, "sh", "-c", "echo 120 > $YARD_BEACON; sleep 60")

    def curious_work(self, id: ReplicaId, name: str, path: str) -> LaunchRequest:
        find = f"until (getent hosts {name} || nslookup {name}) > /dev/null 2>&1; do sleep 0.1; done; echo found"
        return self._yard.request(id, "sh", "-c", f"cat {path}; (echo more >> {path}) 2>/dev/null && exit 3; {find}")

    def wait_for(self, condition: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.01)

    def restarted(self) -> Engine:
        self._others.append(self._yard.new_engine())
        return self._others[-1]

    def telling(self) -> Engine:
        return self._yard.engine

    def close(self) -> None:
        self._yard.close()
        for other in self._others:
            other.close()


class ContainerStage(ProcessStage):
    """Work is asked for in the same words; it runs in an image with nothing but busybox."""

    def __init__(self, host: ContainerHost, data: Path) -> None:
        self._yard = ContainerYard(host, data, devices=[SimulatedProbe(data, 2)])
        self._others = []
        self.engine = self._yard.engine


class SimulatedStage(Stage):
    def __init__(self, folder: Path) -> None:
        self._now = 1000.0
        self._folder = folder
        self.engine = SimulatedEngine(virtual_nodes(1, 2), lambda: self._now, logs=folder)

    def work(self, id: ReplicaId, seconds: float, exit_code: int = 0, *, is_deaf: bool = False) -> LaunchRequest:
        env = [("YARD_SIM_SECONDS", str(seconds)), ("YARD_SIM_EXIT", str(exit_code)), ("YARD_SIM_START_SECONDS", "0.1")]
        return _simulated_request(id, [*env, ("YARD_SIM_DEAF", "1")] if is_deaf else env)

    def saving_work(self, id: ReplicaId) -> LaunchRequest:
        return _simulated_request(id, [("YARD_SIM_SECONDS", "600"), ("YARD_SIM_CHECKPOINT_SECONDS", "60")])

    def curious_work(self, id: ReplicaId, name: str, path: str) -> LaunchRequest:
        return _simulated_request(id, [])

    def wait_for(self, condition: Callable[[], object]) -> None:
        until = self._now + 1000
        while not condition():
            assert self._now < until
            self._now += 0.1

    def restarted(self) -> Engine:
        return SimulatedEngine(virtual_nodes(1, 2), lambda: self._now, logs=self._folder)

    def telling(self) -> Engine:
        return SimulatedEngine(virtual_nodes(1, 2), time.time, real_time=True)

    def close(self) -> None:
        self.engine.close()


def _simulated_request(id: ReplicaId, env: list[tuple[str, str]]) -> LaunchRequest:
    from gpuyard.domain.cluster import Allotment

    return LaunchRequest(
        id, "ann", 1000, 1000, "vision", ("true",), tuple(env), Allotment("sim-1", 1000, 1 << 30, 0), 5.0
    )


@pytest.fixture(params=["process", "podman", "docker", "simulated"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made: ProcessStage | SimulatedStage
    if request.param == "simulated":
        made = SimulatedStage(tmp_path)
    elif request.param in ("podman", "docker"):
        made = ContainerStage(request.getfixturevalue(request.param), tmp_path / "data")
    else:
        made = ProcessStage(tmp_path / "data")
    yield made
    made.close()


def test_an_engine_names_itself_and_its_machines_with_their_cards(stage: Stage) -> None:
    (node,) = stage.engine.nodes()
    assert stage.engine.name in ("process", "container", "simulated")
    assert node.cpu_milli > 0
    assert node.memory > 0
    assert [card.index for card in node.cards] == [0, 1]
    assert all(card.simulated and not card.trouble for card in node.cards)


def test_a_replica_runs_and_ends_well(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, TO_BE_SEEN))
    stage.wait_for(lambda: stage.look(id, handle).life is Life.RUNNING)
    assert stage.look(id, handle).started_at
    seen = stage.end_of(id, handle)
    assert (seen.exit_code, seen.cause, seen.reason) == (0, None, None)
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.started_at <= seen.ended_at


def test_an_error_is_told_with_its_exit_code_and_reason(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 0.01, exit_code=3))
    seen = stage.end_of(id, handle)
    assert (seen.exit_code, seen.cause) == (3, Cause.EXIT)
    assert seen.reason is not None
    assert seen.reason.code is Code.EXIT_CODE
    assert seen.reason.facts == {"exit_code": 3, "replica": "worker-0"}


def test_launched_twice_it_starts_once_and_answers_the_same(stage: Stage) -> None:
    id = replica()
    first = stage.engine.launch(stage.work(id, TO_BE_SEEN))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    started = stage.look(id).started_at
    assert stage.engine.launch(stage.work(id, TO_BE_SEEN)) == first
    assert stage.end_of(id).started_at == started
    assert stage.engine.launch(stage.work(id, TO_BE_SEEN)) == first
    assert stage.look(id).started_at == started


def test_observing_answers_for_every_replica_asked_and_unknown_ones_are_absent(stage: Stage) -> None:
    known, unknown = replica(0), replica(7, workload="wzzzzzzzzz")
    stage.engine.launch(stage.work(known, 60))
    seen = stage.engine.observe({known: None, unknown: None})
    assert set(seen) == {known, unknown}
    assert seen[known].life in (Life.STARTING, Life.RUNNING)
    assert seen[unknown] == Seen()


def test_an_end_is_told_the_same_for_ever_also_by_a_new_engine(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 0.01, exit_code=5))
    first = stage.end_of(id, handle)
    assert stage.look(id, handle) == first
    assert stage.restarted().observe({id: handle})[id] == first


def test_a_new_engine_that_only_has_the_handle_adopts_what_runs(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 60))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    before = stage.look(id)
    engine = stage.restarted()
    assert engine.observe({id: handle})[id] == before
    engine.stop(id, handle, 1.0)
    stage.wait_for(lambda: engine.observe({id: handle})[id].life is Life.ENDED)


def test_a_stop_that_was_asked_for_is_not_a_failure(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 60))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    stage.engine.stop(id, handle, 5.0)
    seen = stage.end_of(id, handle)
    assert (seen.exit_code, seen.cause, seen.reason) == (143, None, None)


def test_one_that_ignores_the_signal_is_ended_after_its_grace(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 600, is_deaf=True))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    stage.engine.stop(id, handle, 0.3)
    assert stage.look(id, handle).life is not Life.ABSENT
    assert stage.end_of(id, handle).cause is None


def test_a_later_stop_with_a_shorter_grace_shortens_it(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 6000, is_deaf=True))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    stage.engine.stop(id, handle, 3000.0)
    stage.engine.stop(id, handle, 3000.0)
    assert stage.look(id, handle).life is Life.RUNNING
    stage.engine.stop(id, handle, 0.1)
    stage.engine.stop(id, handle, 3000.0)
    assert stage.end_of(id, handle).cause is None


def test_stopped_before_it_was_launched_it_stays_absent_for_good(stage: Stage) -> None:
    id = replica()
    stage.engine.stop(id, None, 5.0)
    assert stage.look(id) == Seen()
    handle = stage.engine.launch(stage.work(id, 0.1))
    assert stage.look(id, handle).life is Life.ABSENT
    assert stage.engine.sweep(()) == []


def test_stopping_one_that_has_ended_changes_nothing(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 0.01, exit_code=4))
    before = stage.end_of(id, handle)
    stage.engine.stop(id, handle, 0.0)
    assert stage.look(id, handle) == before


def test_a_sweep_ends_what_nobody_knows_and_leaves_the_rest(stage: Stage) -> None:
    known, stray, done = replica(0), replica(1), replica(2)
    stage.engine.launch(stage.work(done, 0.01))
    stage.end_of(done)
    for id in (known, stray):
        stage.engine.launch(stage.work(id, 600))
    assert list(stage.engine.sweep([known])) == [stray]
    assert stage.end_of(stray).cause is None
    assert stage.look(known).life in (Life.STARTING, Life.RUNNING)
    stage.engine.stop(known, None, 0.0)
    stage.end_of(known)


def test_replicas_go_on_when_the_engine_is_closed(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 60))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    stage.engine.close()
    engine = stage.restarted()
    assert engine.observe({id: handle})[id].life is Life.RUNNING
    engine.stop(id, handle, 0.0)
    stage.wait_for(lambda: engine.observe({id: handle})[id].life is Life.ENDED)


def test_changes_are_told(stage: Stage) -> None:
    engine = stage.telling()
    calls: list[float] = []
    engine.on_change(lambda: calls.append(time.monotonic()))
    engine.launch(stage.work(replica(), 0.05))
    until = time.monotonic() + PATIENCE_SECONDS
    while len(calls) < 2:  # it runs; it has ended
        assert time.monotonic() < until
        time.sleep(0.01)
    engine.close()


def test_whose_life_changed_is_named_and_who_goes_on_as_before_is_not(stage: Stage) -> None:
    short, long = replica(0), replica(1)
    assert stage.engine.changed() is None  # a new engine cannot know what happened before it
    named = _Named(stage)
    stage.engine.launch(stage.work(long, 600))
    named.wait_for(long)
    assert stage.look(long).life is Life.RUNNING
    stage.end_of(short, stage.engine.launch(stage.work(short, 0.2)))
    named.wait_for(short)
    assert named.last == {short}
    stage.engine.stop(long, None, 1.0)
    stage.end_of(long)
    named.wait_for(long)


def test_stopped_before_it_was_launched_it_is_named(stage: Stage) -> None:
    stage.engine.changed()
    stage.engine.stop(replica(), None, 1.0)
    assert stage.engine.changed() == {replica()}


class _Named:
    """Asks who changed, as control does in every pass."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.last: frozenset[ReplicaId] = frozenset()

    def wait_for(self, id: ReplicaId) -> None:
        self._stage.wait_for(lambda: id in self._ask())

    def _ask(self) -> frozenset[ReplicaId]:
        self.last = self._stage.engine.changed() or frozenset()
        return self.last


def test_a_replica_that_cannot_be_started_is_refused_in_words(stage: Stage) -> None:
    if isinstance(stage, SimulatedStage):
        stage.engine.faults.refuse_launches = 1
        request = stage.work(replica(), 1)
    elif IS_ROOT:
        request = _as_root(stage.work(replica(), 1))
    else:
        pytest.skip("not root, everything is started as ourselves")
    with pytest.raises(EngineError) as refused:
        stage.engine.launch(request)
    assert refused.value.reason.facts
    assert stage.look(replica()).life is Life.ABSENT


def _as_root(request: LaunchRequest) -> LaunchRequest:
    from dataclasses import replace

    return replace(request, uid=0, gid=0)


@pytest.mark.skipif(not IS_ROOT, reason="only root gives each user a room")
def test_it_is_shown_files_and_finds_its_like_under_their_other_names(stage: Stage) -> None:
    first, second = replica(0, workload="wcuriosity"), replica(1, workload="wcuriosity")
    names = ("train-master-0", "train-master-0.train", "train-worker-0", "train-worker-0.train")
    shown = SmallFile("/etc/curious/worker.host", "train-worker-0.train\n")
    assert stage.engine.makes_rooms
    assert stage.engine.file_refusal(shown.path) is None
    stage.engine.launch(replace(stage.work(first, 60), aliases=names[:2], peers=names))
    work = stage.curious_work(second, "train-master-0.train", shown.path)
    stage.engine.launch(replace(work, aliases=names[2:], peers=names, files=(shown,)))
    seen = stage.end_of(second)
    log = stage.engine.log_path(second)
    told = log.read_text() if log.exists() else ""
    assert seen.exit_code == 0, told
    if stage.engine.name != "simulated":
        assert told == "train-worker-0.train\nfound\n"
    assert not Path("/etc/curious").exists(), "nothing is made on the machine itself"
    stage.engine.stop(first, None, 0.0)
    stage.end_of(first)


@pytest.mark.parametrize("path", ["relative", "/etc/../shadow", "/opt/yard/bin/x", "/etc"])
def test_files_are_not_shown_just_anywhere(stage: Stage, path: str) -> None:
    if stage.engine.name == "simulated":
        return
    refusal = stage.engine.file_refusal(path)
    assert refusal is not None
    assert refusal.code is Code.ENGINE_CANNOT
    with pytest.raises(EngineError) as refused:
        stage.engine.launch(replace(stage.work(replica(), 1), files=(SmallFile(path, "x"),)))
    assert refused.value.reason == refusal


def test_usage_is_read_for_what_runs_and_left_out_for_what_is_unknown(stage: Stage) -> None:
    id = replica()
    stage.engine.launch(stage.work(id, 60))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    assert isinstance(stage.engine, ReadsUsage)
    usage = stage.engine.usage([id, replica(9)])
    assert set(usage) == {id}
    assert usage[id].memory > 0
    assert usage[id].processes >= 1


def test_a_replica_that_says_nothing_of_saved_work_is_left_out(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.work(id, 60))
    stage.wait_for(lambda: stage.look(id).life is Life.RUNNING)
    assert isinstance(stage.engine, ReadsProgress)
    assert stage.engine.progress({id: handle, replica(9): None}) == {}


def test_saved_work_is_told_with_its_time_and_step_also_by_a_new_engine(stage: Stage) -> None:
    id = replica()
    handle = stage.engine.launch(stage.saving_work(id))
    stage.wait_for(lambda: stage.engine.progress({id: handle}))
    for engine in (stage.engine, stage.restarted()):
        progress = engine.progress({id: handle})[id]
        started_at = stage.look(id, handle).started_at
        assert progress.step is not None
        assert started_at is not None
        assert started_at <= progress.saved_at


def test_a_log_is_kept_until_it_is_forgotten(stage: Stage) -> None:
    id = replica()
    stage.engine.launch(stage.work(id, 0.01))
    stage.end_of(id)
    assert isinstance(stage.engine, KeepsLogs)
    assert stage.engine.log_path(id).read_bytes()
    stage.engine.forget(id.workload)
    assert not stage.engine.log_path(id).exists()
    assert stage.look(id).life is Life.ABSENT
