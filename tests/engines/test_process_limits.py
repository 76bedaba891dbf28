"""Work that takes too much of memory, processes or disk. The machine stays well, and what happened is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import IS_ROOT, MakeYard, Yard, is_alive, replica, wait_for

from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Cause, Life
from gpuyard.engines.logs import Gap, LogFile

CGROUPS = Path("/sys/fs/cgroup")
has_groups = pytest.mark.skipif(
    not os.access(CGROUPS / "freezer", os.W_OK) and not os.access(CGROUPS / "cgroup.subtree_control", os.W_OK),
    reason="cgroups are not ours to use here",
)


def groups_of(yard: Yard) -> list[Path]:
    name = (yard.data / "run" / "yard-id").read_text()
    folders = (Path(at) / folder for at, inner, _ in os.walk(CGROUPS) for folder in inner)
    return [folder for folder in folders if folder.name.startswith(f"{name}.")]


@has_groups
def test_a_memory_hog_is_ended_and_told_how_much_it_had(yard: Yard) -> None:
    seen, _ = yard.run("""python3 -c "b = bytearray(500 << 20); print(len(b))" """, memory=64 * MIB)
    assert (seen.cause, seen.exit_code) == (Cause.OOM, 137)
    assert seen.reason is not None
    assert seen.reason.code is Code.OUT_OF_MEMORY
    assert seen.reason.facts == {"memory": 64 * MIB, "replica": "worker-0"}


@has_groups
def test_files_in_shared_memory_count_as_memory(yard: Yard) -> None:
    seen, _ = yard.run("exec head -c 200000000 /dev/zero > /dev/shm/x", memory=64 * MIB, shm=400 * MIB)
    assert seen.cause is Cause.OOM


@has_groups
def test_a_job_that_survives_the_loss_of_a_child_to_memory_ends_as_it_says(yard: Yard) -> None:
    hog = """python3 -c "b = bytearray(500 << 20)" """
    seen, _ = yard.run(f"{hog}; echo went on; exit 0", memory=64 * MIB)
    assert (seen.exit_code, seen.cause) == (0, None)


_FORK_BOMB = """exec python3 -c "
import os
while True:
    try: os.fork()
    except OSError: pass
" """


@has_groups
def test_a_fork_bomb_is_held_and_ended(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / "data", pids_limit=60)
    id = yard.launch(_FORK_BOMB)
    wait_for(lambda: id in yard.engine.usage([id]))
    wait_for(lambda: yard.engine.usage([id])[id].processes >= 30)
    assert yard.engine.usage([id])[id].processes <= 60
    yard.engine.stop(id, None, 0.0)
    seen, _ = yard.ended(id)
    assert seen.cause is None
    wait_for(lambda: not groups_of(yard), "the removal of its groups")


@has_groups
def test_groups_are_gone_after_the_end_and_after_a_lost_supervisor(yard: Yard) -> None:
    yard.run("true")
    wait_for(lambda: not groups_of(yard), "the removal of its groups")
    id = yard.launch("echo ready; sleep 1000", replica(1))
    yard.says(id, "ready")
    assert groups_of(yard)
    os.kill(yard.supervisor(id), 9)
    yard.ended(id)
    wait_for(lambda: not groups_of(yard), "the removal of its groups")


@has_groups
def test_a_sweep_takes_away_groups_that_belong_to_nobody_and_leaves_other_yards_alone(
    yard: Yard, tmp_path: Path, make_yard: MakeYard
) -> None:
    other = make_yard(tmp_path / "other")
    kept = other.launch("echo ready; sleep 1000")
    other.says(kept, "ready")
    id = yard.launch("echo ready; sleep 1000", replica(1))
    yard.says(id, "ready")
    (yard.data / "run" / "live" / str(id)).unlink()
    yard.engine.sweep(())
    yard.ended(id)
    wait_for(lambda: not groups_of(yard), "the removal of its groups")
    assert other.look(kept).life is Life.RUNNING


@has_groups
def test_cpu_memory_and_processes_are_measured(yard: Yard) -> None:
    id = yard.launch("""exec python3 -c "
b = bytearray(50 << 20)
while True: pass
" """)
    wait_for(lambda: id in yard.engine.usage([id]) and yard.engine.usage([id])[id].cpu_seconds > 0.3)
    usage = yard.engine.usage([id])[id]
    assert 50 * MIB < usage.memory < 200 * MIB
    assert usage.processes == 1


def test_a_flood_of_output_stays_bounded_with_its_head_and_tail_and_the_gap_is_told(
    tmp_path: Path, make_yard: MakeYard
) -> None:
    limit = 4 * MIB
    yard = make_yard(tmp_path / "data", log_limit_bytes=limit)
    id = yard.launch("echo the first line; yes | head -c 100000000; echo the last line")
    seen, _ = yard.ended(id)
    assert seen.exit_code == 0
    path = yard.engine.log_path(id)
    log = LogFile(path)
    assert log.size() == len("the first line\n") + 100_000_000 + len("the last line\n")
    assert path.stat().st_blocks * 512 < 2 * limit
    pieces = log.read(0, 1 << 30)
    assert [type(piece) for piece in pieces if isinstance(piece, Gap)] == [Gap]
    data = b"".join(piece.data for piece in pieces if not isinstance(piece, Gap))
    assert data.startswith(b"the first line\ny\n")
    assert data.endswith(b"y\nthe last line\n")
    assert b"\0" not in data
    assert len(data) <= limit
    assert sum(piece.end - piece.start for piece in pieces) == log.size()


def test_a_flood_that_goes_on_stays_bounded_while_it_runs(tmp_path: Path, make_yard: MakeYard) -> None:
    limit = 16 * MIB
    yard = make_yard(tmp_path / "data", log_limit_bytes=limit)
    id = yard.launch("yes")
    path = yard.engine.log_path(id)
    log = LogFile(path)
    wait_for(lambda: log.size() > 8 * limit)
    wait_for(lambda: path.stat().st_blocks * 512 < 2 * limit, "the middle to be dropped")
    yard.engine.stop(id, None, 0.0)
    yard.ended(id)


_RESERVE = """exec python3 -c "
import ctypes, time
print('the first line', flush=True)
reserve = ctypes.CDLL(None).fallocate
assert reserve(1, 1, ctypes.c_int64(1 << 20), ctypes.c_int64({size})) == 0
print('the last line', flush=True)
time.sleep({seconds})
" """


def test_room_reserved_behind_the_end_of_a_log_is_taken_back_while_it_runs(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / "data", log_limit_bytes=4 * MIB)
    id = yard.launch(_RESERVE.format(size=64 * MIB, seconds=1000))
    yard.says(id, "the last line")
    path = yard.engine.log_path(id)
    wait_for(lambda: path.stat().st_blocks * 512 <= 8 * MIB, "the return of what was reserved")
    assert yard.look(id).life is Life.RUNNING
    assert yard.log(id) == "the first line\nthe last line\n"


def test_room_reserved_within_the_bound_is_given_back_at_the_end(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / "data", log_limit_bytes=64 * MIB)
    seen, log = yard.run(_RESERVE.format(size=32 * MIB, seconds=0))
    assert (seen.exit_code, log) == (0, "the first line\nthe last line\n")
    assert yard.engine.log_path(replica()).stat().st_blocks * 512 < MIB


def test_a_log_made_huge_without_writing_ends_where_its_data_ends(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / "data", log_limit_bytes=4 * MIB)
    grow = "import os; print('output', flush=True); os.ftruncate(1, 1 << 43)"
    id = yard.launch(f'exec python3 -c "{grow}"')
    assert yard.ended(id)[0].exit_code == 0
    log = LogFile(yard.engine.log_path(id))
    assert log.size() <= 4096
    assert b"".join(piece.data for piece in log.read(0, MIB) if not isinstance(piece, Gap)).startswith(b"output\n")


@pytest.mark.skipif(not IS_ROOT, reason="only a room has the side door")
def test_a_log_that_can_take_no_more_does_not_end_the_job(yard: Yard) -> None:
    grow = "import os; os.ftruncate(1, (1 << 44) - 4096); open('/dev/stdout', 'w').write('A' * 60000)"
    seen, _ = yard.run(f'python3 -c "{grow}"; sleep 0.5; exit 7')
    assert (seen.cause, seen.exit_code) == (Cause.EXIT, 7)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "gpuyard-test", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.skipif(not IS_ROOT, reason="needs a disk of its own")
def test_a_full_disk_ends_no_job_and_the_end_is_told_once_there_is_room(small_disk: Path, make_yard: MakeYard) -> None:
    yard = make_yard(small_disk / "data")
    (small_disk / "ballast").write_bytes(bytes(MIB))
    flood = "yes | head -c 9000000 > /dev/stderr"
    id = yard.launch(f"while [ ! -e $HOME/go ]; do sleep 0.05; done; {flood}; exit 7")
    wait_for(lambda: "job" in yard.status(id))
    (yard.data / "files" / "user" / "ann" / "go").touch()
    wait_for(lambda: not is_alive(yard.status(id)["job"]["pid"]), "its end")
    assert os.statvfs(small_disk).f_bavail == 0
    (small_disk / "ballast").unlink()
    seen, _ = yard.ended(id)
    assert (seen.cause, seen.exit_code) == (Cause.EXIT, 7)
