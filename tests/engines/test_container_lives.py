"""Containers through everything that goes wrong: engines that die or hang, guards killed, floods, bombs and strays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines.containers import IMAGE, ContainerYard, Podman
from tests.engines.places import is_alive, replica

from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.cluster import NodeState
from gpuyard.domain.errors import EngineError, EngineUnsure
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Cause, Life, ReplicaId, Seen
from gpuyard.engines.container.engine import Options
from gpuyard.engines.logs import LogFile


def running(yard: ContainerYard, script: str, id: ReplicaId | None = None) -> ReplicaId:
    id = yard.launch(script, id or replica())
    assert yard.look(id).life is Life.RUNNING
    return id


def first_process(yard: ContainerYard, id: ReplicaId) -> int:
    return int(yard.status(id)["job"]["pid"])


def guard_of(pid: int) -> int:
    """Its conmon."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


# --- the engine -----------------------------------------------------------------------------------------------------


def test_work_goes_on_while_the_engines_service_is_killed_and_new_work_starts_soon_after(
    each_yard: ContainerYard,
) -> None:
    first = running(each_yard, "sleep 600")
    os.kill(each_yard.host.pid(), signal.SIGKILL)
    assert each_yard.look(first).life is Life.RUNNING
    second = each_yard.launch("echo again", replica(1))
    assert each_yard.ended(second)[1] == "again\n"
    assert each_yard.look(first).life is Life.RUNNING


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_an_engine_that_hangs_holds_nobody_up(container_yard: ContainerYard) -> None:
    id = running(container_yard, "trap 'exit 9' TERM; while true; do sleep 0.1; done")
    with hanging(container_yard.host.pid()):
        container_yard.wait_for(lambda: container_yard.engine.nodes()[0].state is NodeState.LOST, "trouble")
        assert container_yard.look(id).life is Life.RUNNING
        assert container_yard.engine.sweep([id]) == []
        with pytest.raises(EngineUnsure):
            container_yard.engine.launch(container_yard.request(replica(1), "true"))
        with pytest.raises(EngineError):
            container_yard.engine.images()
        container_yard.engine.stop(id, None, 5.0)
        container_yard.wait_for(lambda: container_yard.look(id).life is Life.ENDED, "an end without the engine")
    assert container_yard.look(id).exit_code == 9
    container_yard.wait_for(lambda: container_yard.engine.nodes()[0].state is NodeState.READY, "the engine's return")
    assert container_yard.run("echo well", replica(2))[1] == "well\n"
    container_yard.wait_for(lambda: container_yard.containers() == [], "the removal of what has ended")


def test_with_its_guard_killed_work_runs_on_and_its_end_is_told_as_it_was(container_yard: ContainerYard) -> None:
    id = running(container_yard, "while [ ! -e $HOME/go ]; do sleep 0.1; done; echo done; exit 7")
    os.kill(guard_of(first_process(container_yard, id)), signal.SIGKILL)
    (container_yard.data / "files" / "user" / "ann" / "go").touch()
    seen, log = container_yard.ended(id)
    assert (seen.exit_code, seen.cause, log) == (7, Cause.EXIT, "done\n")
    container_yard.wait_for(lambda: container_yard.containers() == [], "the removal of its container")


def test_with_guard_and_work_both_killed_it_is_lost_and_its_card_free(container_yard: ContainerYard) -> None:
    id = replica()
    container_yard.engine.launch(
        container_yard.request(id, "sh", "-c", "exec 9<$YARD_CARD_PATHS; sleep 600", cards=[0])
    )
    pid = first_process(container_yard, id)
    os.kill(guard_of(pid), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    seen, _ = container_yard.ended(id)
    assert seen.cause is Cause.LOST
    container_yard.wait_for(lambda: container_yard.containers() == [], "the removal of its container")
    container_yard.wait_for(lambda: not container_yard.engine.nodes()[0].cards[0].trouble, "a card that is free")


def test_a_container_that_somebody_paused_can_still_be_stopped(each_yard: ContainerYard) -> None:
    id = running(each_yard, "sleep 600")
    each_yard.host.command("pause", f"yard-{id}")
    each_yard.engine.stop(id, None, 0.2)
    assert each_yard.ended(id)[0].cause is None


def test_a_container_removed_behind_our_back_is_told_as_lost_or_killed(each_yard: ContainerYard) -> None:
    """Whichever is noticed first: that its first process was killed, or that it is not there any more."""
    id = running(each_yard, "sleep 600")
    each_yard.host.remove(f"yard-{id}")
    seen = each_yard.ended(id)[0]
    assert seen.cause is Cause.LOST or (seen.cause, seen.exit_code) == (Cause.EXIT, 137)


def test_two_yards_on_one_engine_leave_each_others_work_alone(container_yard: ContainerYard, tmp_path: Path) -> None:
    mine = running(container_yard, "sleep 600")
    other = ContainerYard(container_yard.host, tmp_path / "other")
    theirs = running(other, "sleep 600", replica(5, workload="wbbbbbbbbb"))
    assert other.engine.sweep(()) == [theirs]
    other.ended(theirs)
    other.close()
    assert container_yard.look(mine).life is Life.RUNNING


def test_a_sweep_takes_away_what_an_end_left_behind(container_yard: ContainerYard) -> None:
    """As when the engine refused a removal, or the server died before it."""
    id = replica()
    container_yard.run("true", id)
    container_yard.wait_for(lambda: container_yard.containers() == [], "the removal")
    mark = container_yard.engine._mark
    labels = {"data": mark, "workload": id.workload, "attempt": "1", "role": "worker", "index": "0"}
    words = [word for key, value in labels.items() for word in ("--label", f"yard.{key}={value}")]
    container_yard.host.command("create", "--network", "none", *words, IMAGE, "sleep", "600")
    assert container_yard.containers()
    container_yard.engine.sweep(())
    container_yard.wait_for(lambda: container_yard.containers() == [], "the removal of the stray")


# --- launching ------------------------------------------------------------------------------------------------------


def test_stopped_while_it_is_being_launched_it_never_runs(each_yard: ContainerYard) -> None:
    ids = [replica(number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        launches = [pool.submit(each_yard.launch, "echo ran; sleep 600", id) for id in ids]
        for id in ids:
            each_yard.engine.stop(id, None, 0.0)
        for launch in launches:
            launch.result()
    over = {Life.ABSENT, Life.ENDED}
    each_yard.wait_for(lambda: {each_yard.look(id).life for id in ids} <= over, "the end of all")
    each_yard.wait_for(lambda: each_yard.containers() == [], "nothing left")


def test_a_launch_that_was_broken_off_after_making_the_container_is_taken_up_again(
    each_yard: ContainerYard,
) -> None:
    id = replica()
    request = each_yard.request(id, "sh", "-c", "echo once")
    made = each_yard.engine._make(request, each_yard.engine.log_path(id).parent)
    assert each_yard.engine._settler.begin(id, made, request.allotment.memory)
    later = each_yard.new_engine()
    assert later.observe({id: None})[id].life is Life.STARTING
    later.launch(request)
    each_yard.wait_for(lambda: later.observe({id: None})[id].life is Life.ENDED, "its end")
    assert each_yard.log(id) == "once\n"


def test_a_launch_broken_off_right_after_the_start_does_not_run_it_twice(each_yard: ContainerYard) -> None:
    id = replica()
    request = each_yard.request(id, "sh", "-c", "echo once")
    engine = each_yard.engine
    made = engine._make(request, engine.log_path(id).parent)
    assert engine._settler.begin(id, made, request.allotment.memory)
    engine._containers.start(made)
    each_yard.wait_for(lambda: (found := engine._containers.look(made)) is not None and found.is_over, "its end")
    later = each_yard.new_engine()
    later.launch(request)
    each_yard.wait_for(lambda: later.observe({id: None})[id].life is Life.ENDED, "the record of its end")
    assert each_yard.log(id) == "once\n"


def test_a_command_that_is_not_in_the_image_is_told_in_words(container_yard: ContainerYard) -> None:
    container_yard.engine.launch(container_yard.request(replica(), "no-such-program"))
    seen, _ = container_yard.ended(replica())
    assert seen.cause is Cause.LAUNCH
    assert seen.reason == because(Code.NO_SUCH_COMMAND, name="no-such-program", replica="worker-0")


# --- bombs and floods -----------------------------------------------------------------------------------------------


def test_one_that_needs_more_memory_than_it_asked_for_is_told_so(each_yard: ContainerYard) -> None:
    seen, _ = each_yard.run("dd if=/dev/zero of=/dev/null bs=400M count=1", replica(), memory=64 * MIB)
    assert seen.cause is Cause.OOM
    assert seen.reason is not None
    assert seen.reason.code is Code.OUT_OF_MEMORY
    assert seen.reason.facts["memory"] == 64 * MIB


def test_a_fork_bomb_is_capped(each_yard: ContainerYard, tmp_path: Path) -> None:
    yard = ContainerYard(each_yard.host, tmp_path / "small", options=Options(pids_limit=40))
    script = "i=0; while [ $i -lt 200 ]; do sleep 30 & i=$((i+1)); done; echo unbounded"
    _, log = yard.run(script, replica(workload="wcccccccc"))
    yard.close()
    assert "unbounded" not in log
    assert "fork" in log


def test_nothing_that_was_started_inside_outlives_the_first_command(container_yard: ContainerYard) -> None:
    id = replica()
    script = "setsid sh -c 'exec 9<$YARD_CARD_PATHS; sleep 600' & sleep 0.5; echo ready"
    container_yard.engine.launch(container_yard.request(id, "sh", "-c", script, cards=[1]))
    pid = first_process(container_yard, id)
    assert container_yard.ended(id)[0].exit_code == 0
    container_yard.wait_for(lambda: not is_alive(pid), "the end of everything inside")
    container_yard.wait_for(lambda: not container_yard.engine.nodes()[0].cards[1].trouble, "a card that is free")


def test_children_that_lost_their_parent_are_reaped(container_yard: ContainerYard) -> None:
    are_left = "grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null"
    script = f"for i in 1 2 3 4 5; do (sleep 0.1 &) ; done; sleep 1; while {are_left}; do sleep 0.1; done; echo none"
    assert container_yard.run(script, replica())[1] == "none\n"


def test_a_flood_of_output_is_bounded_on_disk_with_head_and_tail_kept(
    container_yard: ContainerYard, tmp_path: Path
) -> None:
    yard = ContainerYard(container_yard.host, tmp_path / "small", options=Options(log_limit_bytes=4 * MIB))
    id = replica(workload="wdddddddd")
    script = "echo first; dd if=/dev/zero bs=1M count=200 2>/dev/null | tr '\\0' 'x'; echo; echo last"
    seen, _ = yard.run(script.replace("tr '\\0' 'x'", "cat"), id)
    path = yard.engine.log_path(id)
    assert seen.exit_code == 0
    assert path.stat().st_blocks * 512 <= 5 * MIB
    log = LogFile(path)
    assert log.gap() is not None
    assert path.read_bytes()[:6] == b"first\n"
    assert path.read_bytes()[-5:] == b"last\n"
    yard.close()


def test_what_dies_at_once_still_has_all_of_its_log(container_yard: ContainerYard) -> None:
    ids = [replica(number) for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda id: container_yard.launch("echo hi; exit 3", id), ids))
    for id in ids:
        seen, log = container_yard.ended(id)
        assert (seen.exit_code, log) == (3, "hi\n")


def test_shared_memory_is_as_large_as_asked_for(container_yard: ContainerYard) -> None:
    _, log = container_yard.run("df -k /dev/shm | tail -n 1", replica(), shm=48 * MIB)
    assert str(48 * 1024) in log.split()


def test_it_gets_the_memory_and_processors_it_was_given(each_yard: ContainerYard) -> None:
    id = running(each_yard, "sleep 600")
    group = each_yard.status(id)["cgroup"]
    limits = "memory.limit_in_bytes" if group["version"] == 1 else "memory.max"
    folder = group["dirs"].get("memory") or group["dirs"]["unified"]
    assert int(Path(folder, limits).read_text()) == 256 * MIB


# --- restarts -------------------------------------------------------------------------------------------------------


def test_an_end_that_nobody_watched_is_found_by_the_next_server(each_yard: ContainerYard) -> None:
    id = running(each_yard, "while [ ! -e $HOME/go ]; do sleep 0.1; done; exit 4")
    pid = first_process(each_yard, id)
    each_yard.engine.close()
    (each_yard.data / "files" / "user" / "ann" / "go").touch()
    each_yard.wait_for(lambda: not is_alive(pid), "its end")
    each_yard.engine = each_yard.new_engine()
    assert each_yard.ended(id)[0].exit_code == 4
    each_yard.wait_for(lambda: each_yard.containers() == [], "the removal of its container")


def test_a_stop_asked_of_one_server_is_carried_out_by_the_next(container_yard: ContainerYard) -> None:
    id = running(container_yard, "trap '' TERM; echo deaf; while true; do sleep 1; done")
    container_yard.says(id, "deaf")
    container_yard.engine.stop(id, None, 1.0)
    container_yard.engine.close()
    container_yard.engine = container_yard.new_engine()
    assert container_yard.ended(id)[0].cause is None


def test_after_a_reboot_nothing_of_before_is_taken_for_alive(container_yard: ContainerYard) -> None:
    id = running(container_yard, "sleep 600")
    from gpuyard.engines.process.supervision import record

    folder = str(container_yard.engine.log_path(id).parent)
    record.write(folder, record.STATUS, {**container_yard.status(id), "boot_id": "another"})
    container_yard.engine.close()
    container_yard.engine = container_yard.new_engine()
    seen, _ = container_yard.ended(id)
    assert seen.reason is not None
    assert seen.reason.code is Code.REBOOTED


def test_forgetting_leaves_nothing_behind(each_yard: ContainerYard) -> None:
    id = replica()
    each_yard.run("true", id)
    each_yard.engine.forget(id.workload)
    assert each_yard.containers() == []
    assert each_yard.look(id) == Seen()
    networks = each_yard.host.command("network", "ls", "--format", "{{.Name}}").split()
    assert f"yard-{id.workload}" not in networks


def test_what_runs_is_not_forgotten(container_yard: ContainerYard) -> None:
    id = running(container_yard, "sleep 600")
    with pytest.raises(EngineError):
        container_yard.engine.forget(id.workload)
    assert container_yard.look(id).life is Life.RUNNING


def test_cards_that_are_not_there_are_refused(podman: Podman, tmp_path: Path) -> None:
    yard = ContainerYard(podman, tmp_path / "data", devices=[SimulatedProbe(tmp_path / "data", 1)])
    request = yard.request(replica(), "true", cards=[0])
    shares = tuple(replace(share, index=5) for share in request.allotment.cards)
    with pytest.raises(EngineError) as refused:
        yard.engine.launch(replace(request, allotment=replace(request.allotment, cards=shares)))
    assert "[5]" in str(refused.value.reason.facts)
    yard.close()
