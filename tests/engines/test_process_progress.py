"""When work was saved: what a job says of itself and what its folders show, whatever lies there."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.places import GID, IS_ROOT, UID, MakeYard, Yard, replica, wait_for

from gpuyard.domain.usage import Progress
from gpuyard.domain.workload import Life, Mount, ReplicaId
from gpuyard.engines.process import progress as reading
from gpuyard.engines.process.progress import Looks, NewestFile, read_beacon


def progress(yard: Yard, id: ReplicaId) -> Progress | None:
    return yard.engine.progress({id: None}).get(id)


def saying(yard: Yard, script: str, id: ReplicaId | None = None, **more: Any) -> ReplicaId:
    """Launch it, let it do its work until it says so, and leave it running."""
    id = yard.launch(f"sleep 0.1\n{script}\necho done; sleep 60", id, **more)
    yard.says(id, "done")
    wait_for(lambda: yard.look(id).life is Life.RUNNING)
    return id


def test_a_job_learns_where_to_tell_and_which_attempt_it_is(yard: Yard) -> None:
    id = replica(attempt=3)
    _, log = yard.run("echo $YARD_ATTEMPT; echo $YARD_CHECKPOINT; basename $YARD_BEACON", id, checkpoint="runs/one")
    assert log.splitlines() == ["3", f"{yard.data}/files/user/ann/runs/one", "saved"]


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("120", 120),
        ('{"step": 7, "loss": 0.5}', 7),
        ("", None),
        ('{"step": true}', None),
        ('{"step": -1}', None),
        ("[" * 200, None),
        ("9" * 250, None),
        ("1" + " " * 100_000, 1),
        ("\0\xff", None),
        ("NaN", None),
    ],
)
def test_any_words_in_a_beacon_count_as_a_sign_and_only_a_number_as_a_step(
    words: str, step: int | None, tmp_path: Path
) -> None:
    (tmp_path / "saved").write_text(words, encoding="latin-1")
    assert read_beacon(str(tmp_path), 0.0, time.time() + 1) == Progress((tmp_path / "saved").stat().st_mtime, step)


def test_a_beacons_time_is_neither_before_the_start_nor_in_the_future(tmp_path: Path) -> None:
    beacon = tmp_path / "saved"
    beacon.touch()
    os.utime(beacon, (500.0, 500.0))
    assert read_beacon(str(tmp_path), 600.0, 900.0) == Progress(600.0)
    assert read_beacon(str(tmp_path), 400.0, 900.0) == Progress(500.0)
    assert read_beacon(str(tmp_path), 400.0, 499.0) == Progress(499.0)
    assert read_beacon(str(tmp_path), 100.0, 200.0) is None


def test_a_beacon_that_is_something_else_is_none(tmp_path: Path) -> None:
    beacon = tmp_path / "saved"
    (tmp_path / "other").write_text("5")
    kinds: list[Callable[[], None]] = [lambda: os.mkfifo(beacon), lambda: os.symlink("other", beacon), beacon.mkdir]
    for number, make in enumerate(kinds):
        make()
        assert read_beacon(str(tmp_path), 0.0, time.time() + 1) is None
        beacon.rename(tmp_path / str(number))


def test_a_beacon_whose_owner_holds_a_lease_on_it_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "saved").write_text("5")
    before = signal.signal(signal.SIGIO, lambda *_: None)
    try:
        with (tmp_path / "saved").open("r+") as file:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            found = read_beacon(str(tmp_path), 0.0, time.time() + 1)
    finally:
        signal.signal(signal.SIGIO, before)
    assert found is not None
    assert found.step is None


def test_the_newest_file_of_the_checkpoint_folder_tells_when_work_was_saved(yard: Yard) -> None:
    script = 'mkdir -p "$YARD_CHECKPOINT/step-10"; echo x > "$YARD_CHECKPOINT/step-10/model"; echo y > outside'
    id = saying(yard, script, checkpoint="runs/one")
    wait_for(lambda: progress(yard, id))
    file = yard.data / "files/user/ann/runs/one/step-10/model"
    assert progress(yard, id) == Progress(file.stat().st_mtime)


def test_what_an_earlier_attempt_left_in_the_folder_is_not_its_own(yard: Yard) -> None:
    yard.run('echo old > "$YARD_CHECKPOINT/model"; touch -d "1 hour ago" "$YARD_CHECKPOINT/model"', checkpoint="ck")
    id = saying(yard, "true", replica(attempt=2), checkpoint="ck")
    assert progress(yard, id) is None


def test_the_newer_of_beacon_and_file_wins_and_the_step_stays(yard: Yard) -> None:
    script = 'echo 5 > $YARD_BEACON; sleep 0.1; echo x > "$YARD_CHECKPOINT/model"'
    id = saying(yard, script, checkpoint="ck")
    file = yard.data / "files/user/ann/ck/model"
    wait_for(lambda: progress(yard, id) == Progress(file.stat().st_mtime, 5))


def test_what_it_saved_while_it_stopped_is_told_after_its_end(yard: Yard) -> None:
    told = "trap 'echo 9 > $YARD_BEACON; exit 0' TERM"
    kept = "trap 'echo x > $YARD_CHECKPOINT/model; exit 0' TERM"
    ids = [
        yard.launch(f"{trap}; echo ready; sleep 60 & wait", id, checkpoint="ck")
        for trap, id in ((told, replica(0)), (kept, replica(1)))
    ]
    for id in ids:
        yard.says(id, "ready")
        yard.engine.stop(id, None, 30.0)
        yard.ended(id)
    found: dict[ReplicaId, Progress] = {}

    def is_told() -> bool:  # a look that takes long on a busy machine is answered the next time
        found.update(yard.engine.progress(dict.fromkeys(ids)))
        return found.keys() == set(ids)

    wait_for(is_told, "word of both")
    assert found[ids[0]].step == 9
    # A supervisor that got no time notes the start late, and nothing is told to be saved before the start.
    started_at = yard.look(ids[1]).started_at or 0
    assert found[ids[1]].saved_at == max(started_at, (yard.data / "files/user/ann/ck/model").stat().st_mtime)
    assert all(found[id].saved_at <= (yard.look(id).ended_at or 0) for id in ids)


def test_a_checkpoint_folder_that_cannot_be_made_is_told_at_the_start(yard: Yard) -> None:
    seen, _ = yard.run("true", checkpoint="/proc/nowhere/ck")
    assert seen.reason is not None
    assert "checkpoint folder /proc/nowhere/ck cannot be made" in str(seen.reason.facts["detail"])


@pytest.mark.skipif(not IS_ROOT, reason="only root mounts folders and gives each user a room")
class TestInARoom:
    def test_a_folder_below_a_mount_is_found(self, yard: Yard) -> None:
        (yard.data / "files").mkdir(exist_ok=True)
        share = yard.data / "files/share/vision"
        yard.run("mkdir -p $HOME/../../share/vision/team && chmod 770 $HOME/../../share/vision/team")
        mounts = (Mount("share", "/team", "team"),)
        id = saying(yard, "echo x > /team/ck/model", replica(1), mounts=mounts, checkpoint="/team/ck")
        wait_for(lambda: progress(yard, id))
        assert progress(yard, id) == Progress((share / "team/ck/model").stat().st_mtime)

    def test_its_private_tmp_is_meant_by_tmp(self, yard: Yard) -> None:
        id = saying(yard, "echo x > /tmp/ck/model", checkpoint="/tmp/ck")
        wait_for(lambda: progress(yard, id))

    def test_links_show_nothing_that_the_job_could_not_see(self, yard: Yard, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.mkdir(mode=0o700)
        id = saying(yard, f"ln -s {shlex.quote(str(secret))} outside; ln -s /root rooted", checkpoint="ck")
        (secret / "file").write_text("x")
        for number, path in enumerate(("outside", "rooted", str(secret), f"{yard.data}/replicas")):
            other = saying(yard, "true", replica(number + 1, workload=id.workload))
            folder = yard.engine.log_path(other).parent
            text = (folder / "request.json").read_text()
            home = yard.data / "files/user/ann"
            (folder / "request.json").write_text(text.replace('"checkpoint": null', f'"checkpoint": "{home / path}"'))
            time.sleep(reading._WRITING_SECONDS)
            assert progress(yard, other) is None

    def test_the_servers_other_threads_keep_their_rights(self, yard: Yard) -> None:
        id = saying(yard, 'echo x > "$YARD_CHECKPOINT/model"', checkpoint="ck")
        wait_for(lambda: progress(yard, id))
        for thread in threading.enumerate():
            if thread.name != "checkpoint-look":
                assert "Uid:\t0\t0\t0\t0" in Path(f"/proc/self/task/{thread.native_id}/status").read_text()

    def test_one_user_cannot_write_anothers_beacon(self, yard: Yard) -> None:
        id = saying(yard, "echo 5 > $YARD_BEACON; chmod 777 $YARD_BEACON $(dirname $YARD_BEACON)")
        beacon = yard.engine.log_path(id).parent / "beacon" / "saved"
        _, log = yard.run(f"echo 6 > {beacon}", replica(1), owner="bob", uid=UID + 1)
        assert "6" not in beacon.read_text()
        assert log
        assert (beacon.stat().st_uid, beacon.stat().st_gid) == (UID, GID)


def test_of_very_many_files_only_some_are_looked_at_and_links_and_pipes_never(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"file{number}").touch()
    os.mkfifo(tmp_path / "pipe")
    newest = NewestFile(0.0, time.time() + 1)
    fd = os.open(tmp_path, os.O_RDONLY)
    newest.look_into(fd, 3)
    assert newest.at is not None
    assert newest._left < 0
    os.close(fd)


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    ck, other = tmp_path / "ck", tmp_path / "other"
    ck.mkdir()
    other.mkdir()
    (other / "file").touch()
    (ck / "to-file").symlink_to(other / "file")
    (ck / "to-folder").symlink_to(other)
    (ck / "loop").symlink_to(ck)
    os.mkfifo(ck / "pipe")
    newest = NewestFile(0.0, time.time() + 1)
    fd = os.open(ck, os.O_RDONLY)
    newest.look_into(fd, 3)
    os.close(fd)
    assert newest.at is None


def test_a_folder_that_does_not_answer_keeps_no_other_waiting_and_is_not_asked_again() -> None:
    looks, stuck, asked = Looks(), threading.Event(), []

    def wait_long() -> float | None:
        asked.append(1)
        stuck.wait(60)
        return 7.0

    dead, well = replica(0), replica(1)
    for _ in range(3):
        assert looks.answers({dead: wait_long, well: lambda: 5.0}, 0.05) == {well: 5.0}
    assert len(asked) == 1
    stuck.set()
    wait_for(lambda: looks.answers({dead: lambda: 8.0, well: lambda: 5.0}, 0.05).get(dead) in (7.0, 8.0))


def test_many_that_do_not_answer_are_not_joined_by_more() -> None:
    looks, stuck = Looks(), threading.Event()
    before = threading.active_count()
    for round in range(3):
        looks.answers({replica(n, attempt=round + 1): lambda: stuck.wait(60) and None for n in range(50)}, 0.05)
    assert threading.active_count() - before <= reading._MOST_LOOKS
    stuck.set()


def test_an_old_request_that_knows_no_checkpoint_is_read_all_the_same(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / "data")
    id = saying(yard, "echo 5 > $YARD_BEACON")
    request = yard.engine.log_path(id).parent / "request.json"
    request.write_text(request.read_text().replace('"checkpoint": null, ', ""))
    found = progress(yard, id)
    assert found is not None
    assert found.step == 5
