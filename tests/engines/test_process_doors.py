"""Ways into replicas of the process engine: dev environments, and jobs that run, from their own room and with their
own rights. The job itself never notices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import GID, IS_ROOT, UID, MakeYard, Yard, is_alive, replica, wait_for
from tests.engines.porters import PorterPlace, read_all

from gpuyard.domain.workload import Life, ReplicaId
from gpuyard.engines.process.supervision import record

WORK = "echo up; while [ ! -e over ]; do sleep 0.05; done; exit 3"


@pytest.fixture
def doors() -> Iterator[list[PorterPlace]]:
    made: list[PorterPlace] = []
    yield made
    for door in made:
        door.close()


def start_env(yard: Yard, id: ReplicaId) -> None:
    yard.engine.launch(yard.request(id))
    wait_for(lambda: yard.look(id).life is Life.RUNNING)
    wait_for((folder(yard, id) / "door" / "porter.sock").exists, "the door")


def folder(yard: Yard, id: ReplicaId) -> Path:
    return yard.engine.log_path(id).parent


def door_of(yard: Yard, id: ReplicaId, doors: list[PorterPlace]) -> PorterPlace:
    doors.append(PorterPlace(folder(yard, id)))
    return doors[-1]


def want_in(yard: Yard, id: ReplicaId, doors: list[PorterPlace]) -> PorterPlace:
    """As the broker asks for it."""
    record.write(str(folder(yard, id)), record.WANTED, {}, durable=False)
    os.kill(yard.supervisor(id), signal.SIGUSR1)
    wait_for((folder(yard, id) / "door" / "porter.sock").exists, "the door")
    return door_of(yard, id, doors)


def said(door: PorterPlace, line: str) -> str:
    answer, ears = door.run(line)
    assert answer.message["ok"], answer.message
    text = read_all(ears).decode()
    answer.leave()
    return text


# --- dev environments ---------------------------------------------------------------------------------------------


def test_a_dev_environment_stays_until_it_is_stopped(yard: Yard, doors: list[PorterPlace]) -> None:
    id = replica()
    start_env(yard, id)
    door = door_of(yard, id, doors)
    assert said(door, "echo $YARD_REPLICA $HOME; pwd").split() == [
        str(id),
        str(yard.data / "files" / "user" / yard.owner),
        str(yard.data / "files" / "user" / yard.owner),
    ]
    assert record.read(str(folder(yard, id)), record.DOOR) == {
        "uid": UID if IS_ROOT else 0,
        "uids": 1,
        "owner": yard.owner,
        "group": "vision",
        "kind": "env",
    }
    shell = door.ask({"do": "shell"})
    yard.engine.stop(id, None, 5.0)
    seen, log = yard.ended(id)
    assert (seen.cause, log) == (None, "")
    wait_for(lambda: not is_alive(shell.message["pid"]), "the end of the shell")


def test_a_dev_environment_survives_a_new_engine_and_ends_with_its_supervisor(
    yard: Yard, doors: list[PorterPlace]
) -> None:
    id = replica()
    start_env(yard, id)
    yard.engine.close()
    yard.engine = yard.new_engine()
    door = door_of(yard, id, doors)
    shell = door.ask({"do": "shell"})
    os.kill(yard.supervisor(id), signal.SIGKILL)
    yard.ended(id)
    wait_for(lambda: not is_alive(shell.message["pid"]), "the end of all that was inside")


# --- jobs that run ------------------------------------------------------------------------------------------------


def test_a_porter_comes_into_a_running_job_when_somebody_wants_in(yard: Yard, doors: list[PorterPlace]) -> None:
    id = yard.launch(f"touch /tmp/mine; {WORK}" if IS_ROOT else WORK)
    yard.says(id, "up")
    door = want_in(yard, id, doors)
    assert said(door, "echo $YARD_REPLICA").strip() == str(id)
    pid = door.ask({"do": "ping"}).message["pid"]
    assert want_in(yard, id, doors).ask({"do": "ping"}).message["pid"] == pid
    if IS_ROOT:
        assert said(door, "ls /tmp/mine; id -u; id -g").split() == ["/tmp/mine", str(UID), str(GID)]
        assert said(door, "readlink /proc/self/ns/mnt") == os.readlink(f"/proc/{_job(yard, id)}/ns/mnt") + "\n"
        assert said(door, "cat /proc/self/cgroup") == Path(f"/proc/{_job(yard, id)}/cgroup").read_text()
    said(door, "touch over")
    seen, log = yard.ended(id)
    assert (seen.exit_code, log) == (3, "up\n")
    wait_for(lambda: not is_alive(pid), "the end of the porter")


def _job(yard: Yard, id: ReplicaId) -> int:
    return int(yard.status(id)["job"]["pid"])


def test_what_a_visitor_does_delays_no_stop(yard: Yard, doors: list[PorterPlace]) -> None:
    """The shell that runs the job dies of the signal at once; the visitor's program is not waited for."""
    id = yard.launch("echo up; sleep 1000; true")
    yard.says(id, "up")
    door = want_in(yard, id, doors)
    visitor, ears = door.run("trap '' TERM HUP; echo here; while :; do sleep 0.1; done")
    assert os.read(ears, 10) == b"here\n"
    yard.engine.stop(id, None, 10_000.0)
    yard.ended(id)
    wait_for(lambda: not is_alive(visitor.message["pid"]), "the end of the visitor's program")
    os.close(ears)


def test_a_porter_that_was_killed_comes_again(yard: Yard, doors: list[PorterPlace]) -> None:
    id = yard.launch(WORK)
    yard.says(id, "up")
    door = want_in(yard, id, doors)
    first = door.ask({"do": "ping"}).message["pid"]
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not is_alive(first))
    (door.door / "porter.sock").unlink()
    second = want_in(yard, id, doors).ask({"do": "ping"}).message["pid"]
    assert second != first
    assert yard.look(id).life is Life.RUNNING


@pytest.mark.skipif(not IS_ROOT, reason="only root gives each user a room")
def test_a_job_that_makes_itself_another_view_of_the_machine_does_not_lead_us_there(
    yard: Yard, doors: list[PorterPlace]
) -> None:
    if os.system("unshare --user --mount true 2>/dev/null"):
        pytest.skip("nobody may make such a view here")
    id = yard.launch(
        "exec unshare --user --map-root-user --mount "
        "sh -c 'mount -t tmpfs none /tmp; touch /tmp/trap; echo up; sleep 1000'"
    )
    yard.says(id, "up")
    door = want_in(yard, id, doors)
    assert said(door, "ls -d /tmp/tr*p 2>/dev/null") == ""


def test_nobody_comes_into_a_job_that_has_ended(yard: Yard) -> None:
    id = yard.launch("true")
    yard.ended(id)
    record.write(str(folder(yard, id)), record.WANTED, {}, durable=False)
    assert not (folder(yard, id) / "door" / "porter.sock").exists()


def test_the_door_is_seen_by_its_own_replica_only(
    tmp_path: Path, make_yard: MakeYard, doors: list[PorterPlace]
) -> None:
    yard = make_yard(tmp_path / "data")
    one, two = replica(1), replica(2)
    start_env(yard, one)
    start_env(yard, two)
    answer = said(
        door_of(yard, two, doors), f"echo x > $YARD_DOOR/mine; ls {folder(yard, one) / 'door'} 2>&1; ls $YARD_DOOR"
    )
    assert "mine" in answer
    if IS_ROOT:
        assert "No such file" in answer
