"""The files of the journal: torn, damaged, bounded, full disks, and nothing in them that is nobody's business."""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.yard import wait_until
from tests.journal.keeper import Keeper, keep
from tests.journal.yard import SMALL, Writing
from tests.scheduling.worlds import Rough

from gpuyard.domain.workload import Mount, Origin, Port, State
from gpuyard.journal.folder import Bounds, segments
from gpuyard.journal.frames import Damaged, SegmentWriter, read_frames
from gpuyard.journal.replay import Asked, replay

BUSY = Rough(11, nodes=4, queue=9, runs=9)
LARGE = replace(SMALL, segment_bytes=1 << 30)


def frames_of(path: Path) -> list[object]:
    return list(read_frames(path))


def readable(path: Path) -> tuple[list[object], Damaged | None]:
    found: list[object] = []
    try:
        for frame in read_frames(path):
            found.append(frame)
    except Damaged as damage:
        return found, damage
    return found, None


def some_frames(path: Path, count: int = 6) -> list[object]:
    writer = SegmentWriter(path)
    for number in range(count):
        writer.append([number, ["x" * number, {"a": number / 3}]])
    writer.abandon()
    return frames_of(path)


def test_a_tail_torn_at_any_byte_is_read_up_to_the_tear(tmp_path: Path) -> None:
    path = tmp_path / "00000001-1.journal"
    five = some_frames(tmp_path / "five", 5)
    whole = some_frames(path, 6)
    begins, data = (tmp_path / "five").stat().st_size, path.read_bytes()
    assert data[:begins] == (tmp_path / "five").read_bytes()
    for length in range(begins, len(data)):
        path.write_bytes(data[:length])
        found, damage = readable(path)
        assert found == five == whole[:5]
        assert (damage is None) is (length == begins)
        assert damage is None or (damage.torn and damage.at == begins)


def test_a_file_torn_anywhere_gives_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "00000001-1.journal"
    whole = some_frames(path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        found, _ = readable(path)
        assert found == whole[: len(found)]


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "00000001-1.journal"
    whole = some_frames(path)
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
        found, damage = readable(path)
        assert damage is not None, f"byte {place} was changed and nobody noticed"
        assert found == whole[: len(found)]
        assert len(found) < len(whole)


def test_a_replay_reads_up_to_a_damage_tells_it_and_goes_on_with_the_next_segment(tmp_path: Path) -> None:
    keep(BUSY.world(), 3, tmp_path, cycles=80)
    whole, found = replay(tmp_path, Asked()), segments(tmp_path)
    assert len(found) > 2
    hurt = found[1].path
    data = bytearray(hurt.read_bytes())
    data[len(data) // 2] ^= 1
    hurt.write_bytes(data)
    report = replay(tmp_path, Asked())
    assert [(one.segment, one.torn) for one in report.unreadable] == [(hurt.name, False)]
    assert not report.is_same
    assert report.differences == []
    assert 0 < report.cycles < whole.cycles
    assert report.last == whole.last


def test_whoever_was_killed_begins_a_new_segment(tmp_path: Path) -> None:
    keep(BUSY.world(), 3, tmp_path, cycles=10, bounds=LARGE)
    newest = segments(tmp_path)[-1].path
    newest.write_bytes(newest.read_bytes()[:-30])
    before = len(segments(tmp_path))
    keep(BUSY.world(), 4, tmp_path, cycles=10, bounds=LARGE)
    assert len(segments(tmp_path)) > before
    report = replay(tmp_path, Asked())
    assert report.is_same
    assert [one.torn for one in report.unreadable] == [True]


# --- bounds -------------------------------------------------------------------------------------------------------


def test_the_oldest_go_when_there_is_more_than_may_be_kept(tmp_path: Path) -> None:
    bounds = Bounds(bytes=30_000, days=0, segment_bytes=5_000, segment_seconds=1e12)
    keep(BUSY.world(), 3, tmp_path, cycles=400, bounds=bounds)
    found = segments(tmp_path)
    assert found[0].number > 1
    assert [one.number for one in found] == list(range(found[0].number, found[-1].number + 1))
    assert sum(one.size for one in found[:-1]) <= bounds.bytes
    assert replay(tmp_path, Asked()).is_same


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    """The clock of this world leaps by half a day now and then."""
    bounds = Bounds(bytes=1 << 30, days=2, segment_bytes=3_000, segment_seconds=1e12)
    keeper = keep(BUSY.world(), 3, tmp_path, cycles=300, bounds=bounds)
    found = segments(tmp_path)
    assert found[0].number > 1
    assert found[1].begun >= found[-1].begun - 2 * 86400.0
    assert keeper.now - found[0].begun < keeper.now - BUSY.world().now


# --- a disk that takes nothing more ---------------------------------------------------------------------------------


def test_where_nothing_can_be_written_work_goes_on_and_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "journal"
    folder.write_text("in the way")  # so no folder can be made
    with caplog.at_level(logging.INFO):
        writing = Writing(folder, LARGE, try_again=0.05)
        keeper = Keeper(BUSY.world(), 3, writing.recorder)
        for _ in range(5):
            keeper.go_on()
        wait_until(lambda: bool(writing.recorder.problem), 20)
        for _ in range(20):
            keeper.go_on()
        assert len(keeper.plans) == 25
        folder.unlink()

        def is_written_again() -> bool:
            keeper.go_on()
            return not writing.recorder.problem

        wait_until(is_written_again, 20)
        for _ in range(10):
            keeper.go_on()
        writing.end()
    report = replay(folder, Asked())
    assert report.is_same
    assert 10 <= report.cycles < len(keeper.plans)
    assert report.lost_cycles > 0
    told = [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(told) == 1
    assert "not written" in told[0]


def test_the_last_of_a_disk_is_left_to_the_database(tmp_path: Path) -> None:
    writing = Writing(tmp_path, replace(LARGE, spare_bytes=1 << 60))
    keeper = Keeper(BUSY.world(), 3, writing.recorder)
    keeper.go_on()
    wait_until(lambda: writing.recorder.problem == os.strerror(errno.ENOSPC), 20)
    writing.end()
    assert segments(tmp_path) == []


def _replaced(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"")


@pytest.mark.parametrize("meddle", [Path.unlink, lambda path: os.truncate(path, 3), _replaced])
def test_a_file_that_somebody_takes_away_is_noticed_and_a_new_one_begun(
    tmp_path: Path, meddle: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    writing = Writing(tmp_path, LARGE, try_again=0.05)
    keeper = Keeper(BUSY.world(), 3, writing.recorder)
    keeper.go_on()
    wait_until(lambda: bool(segments(tmp_path)) and not writing.recorder.behind, 20)
    meddle(segments(tmp_path)[-1].path)

    def is_told() -> bool:
        keeper.go_on()
        return "the journal is not written" in caplog.text  # it may be over sooner than anybody looks

    def goes_on() -> bool:
        keeper.go_on()
        return not writing.recorder.problem

    wait_until(is_told, 20)
    wait_until(goes_on, 20)
    writing.end()
    newest = segments(tmp_path)[-1].path
    assert frames_of(newest)


def test_a_disk_that_is_full_in_the_middle_leaves_a_gap_that_is_told(tmp_path: Path) -> None:
    """The limit on the size of files makes every write fail from some byte on, as a full disk does."""
    script = tmp_path / "fill.py"
    script.write_text(
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.journal.keeper import Keeper\n"
        "from tests.journal.yard import Writing\n"
        "from tests.journal.test_segments import BUSY, LARGE\n"
        "import time\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "writing = Writing(Path(sys.argv[1]), LARGE, try_again=0.05)\n"
        "keeper = Keeper(BUSY.world(), 3, writing.recorder)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))\n"
        "deadline = time.monotonic() + 30\n"
        "while not writing.recorder.problem and time.monotonic() < deadline: keeper.go_on(); time.sleep(0.001)\n"
        "assert writing.recorder.problem, 'never full'\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "while writing.recorder.problem and time.monotonic() < deadline: keeper.go_on(); time.sleep(0.001)\n"
        "for _ in range(20): keeper.go_on()\n"
        "writing.end()\n"
        "print(len(keeper.plans))\n"
    )
    import subprocess
    import sys

    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "journal")],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert os.strerror(errno.EFBIG) in done.stderr
    report = replay(tmp_path / "journal", Asked())
    assert report.is_same
    assert report.lost_cycles > 0
    assert 20 <= report.cycles < int(done.stdout)


# --- what is not in it ----------------------------------------------------------------------------------------------


def test_no_secret_is_in_it_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    world = BUSY.world()
    secret = "hunter2secret"

    def with_secrets(number: int) -> object:
        workload = world.queue[number]
        role = replace(
            workload.spec.roles[0],
            command=("run", f"--password={secret}"),
            env=(("TOKEN", secret),),
            mounts=(Mount("home", f"/mnt/{secret}"),),
            ports=(Port(80, secret),),
        )
        spec = replace(
            workload.spec,
            roles=(role, *workload.spec.roles[1:]),
            workdir=secret,
            checkpoint=f"/{secret}",
            origin=Origin("dlc", (("key", secret),)),
        )
        return replace(workload, spec=spec, wanted_by=secret)

    queue = tuple(with_secrets(number) for number in range(len(world.queue)))
    keeper = keep(replace(world, queue=queue), 3, tmp_path, cycles=30, bounds=LARGE)  # type: ignore[arg-type]
    assert any(w.state is not State.QUEUED for w in keeper.live.values())
    for segment in segments(tmp_path):
        assert secret not in repr(frames_of(segment.path))
        assert stat.S_IMODE(segment.path.stat().st_mode) == 0o600
    assert replay(tmp_path, Asked()).is_same
