"""Real processes: at most one start, complete records, and nothing left behind, whatever dies when."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.places import MakeYard, Yard, is_alive, replica, wait_for

from gpuyard.domain.errors import EngineError
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Life
from gpuyard.engines.process.supervision import processes, record


def running(yard: Yard, script: str, **more: Any) -> int:
    """Launch, wait until it says `ready`, and return the supervisor's pid."""
    id = yard.launch(script, **more)
    yard.says(id, "ready")
    wait_for(lambda: yard.look(id).life is Life.RUNNING)
    return yard.supervisor(id)


def test_twenty_launches_at_once_start_it_once(yard: Yard) -> None:
    request = yard.request(replica(), "sh", "-c", "echo started; sleep 0.2")
    engines = [yard.new_engine() for _ in range(4)]
    threads = [threading.Thread(target=engines[n % 4].launch, args=(request,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, log = yard.ended(replica())
    assert log == "started\n"
    for engine in engines:
        engine.close()


def test_stops_and_launches_at_once_leave_it_absent_or_stopped(yard: Yard) -> None:
    for number in range(10):
        id = replica(number)
        request = yard.request(id, "sh", "-c", "echo started; sleep 100")
        threads = [
            threading.Thread(target=yard.engine.launch, args=(request,)),
            threading.Thread(target=yard.engine.stop, args=(id, None, 0.0)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for(lambda id=id: yard.look(id).life in (Life.ENDED, Life.ABSENT))  # type: ignore[misc]
        assert yard.look(id).cause is None


def test_a_supervisor_may_be_rung_as_soon_as_it_can_be_found(yard: Yard) -> None:
    for number in range(10):
        id = replica(number)
        request = yard.request(id, "sh", "-c", "exit 7")
        launching = threading.Thread(target=yard.engine.launch, args=(request,))
        launching.start()
        while (status := record.read(str(yard.engine.log_path(id).parent), record.STATUS)) is None:
            pass  # the very first moment
        with contextlib.suppress(ProcessLookupError):
            os.kill(status["supervisor"]["pid"], signal.SIGUSR1)
        launching.join()
        seen, _ = yard.ended(id)
        assert (seen.cause, seen.exit_code) == (Cause.EXIT, 7)


def test_a_lost_supervisor_takes_the_job_with_it_and_is_told_as_such_for_ever(yard: Yard) -> None:
    id = replica()
    supervisor = running(yard, "echo ready; setsid sh -c 'sleep 1000' & sleep 1000")
    left = [*processes.descendants(supervisor)]
    assert left
    os.kill(supervisor, signal.SIGKILL)
    seen, log = yard.ended(id)
    assert (seen.cause, seen.exit_code) == (Cause.LOST, None)
    assert seen.reason is not None
    assert seen.reason.code is Code.SUPERVISOR_LOST
    assert log == "ready\n"
    assert not [pid for pid in left if is_alive(pid)]
    assert yard.look(id) == seen
    other = yard.new_engine()
    assert other.observe({id: None})[id] == seen
    other.close()


def test_the_log_is_complete_when_the_supervisor_is_killed(yard: Yard) -> None:
    id = replica()
    supervisor = running(yard, "echo ready; i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; sleep 1000")
    yard.says(id, "line 4999\n")
    os.kill(supervisor, signal.SIGKILL)
    _, log = yard.ended(id)
    assert log.splitlines() == ["ready", *(f"line {n}" for n in range(5000))]


def test_another_process_with_the_supervisors_number_is_not_taken_for_it(yard: Yard) -> None:
    id = replica()
    supervisor = running(yard, "echo ready; sleep 1000")
    folder = str(yard.engine.log_path(id).parent)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_alive(supervisor))
    status = yard.status(id)
    status["supervisor"] = {"pid": os.getpid(), "start": 1}  # as if the number had been given out again
    record.write(folder, record.STATUS, status)
    seen, _ = yard.ended(id)
    assert seen.reason is not None
    assert seen.reason.code is Code.SUPERVISOR_LOST


def test_what_ran_before_a_reboot_is_told_as_lost_by_it(tmp_path: Path, make_yard: MakeYard) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("the first boot\n")
    yard = make_yard(tmp_path / "data", boot_id_path=boot)
    id = replica()
    supervisor = running(yard, "echo ready; sleep 1000")
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_alive(supervisor))
    boot.write_text("the second boot\n")
    seen = yard.look(id)
    assert (seen.life, seen.cause) == (Life.ENDED, Cause.LOST)
    assert seen.reason is not None
    assert seen.reason.code is Code.REBOOTED
    assert seen.reason.facts["replica"] == "worker-0"
    boot.write_text("the first boot\n")
    assert yard.look(id) == seen


def test_a_record_that_a_power_cut_destroyed_is_told_as_lost(yard: Yard) -> None:
    id = replica()
    supervisor = running(yard, "echo ready; sleep 1000")
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_alive(supervisor))
    (yard.engine.log_path(id).parent / record.STATUS).write_bytes(b"")
    assert yard.ended(id)[0].cause is Cause.LOST


def test_nothing_a_job_forked_survives_the_end_of_its_main_process(yard: Yard) -> None:
    script = """
    setsid sh -c 'echo $$ > pids; sleep 1000' </dev/null &
    ( ( nohup sh -c 'echo $$ >> pids2; sleep 1000' >/dev/null 2>&1 & ) & )
    while [ ! -s pids ] || [ ! -s pids2 ]; do sleep 0.01; done
    cat pids pids2
    """
    seen, log = yard.run(script)
    assert seen.exit_code == 0
    pids = [int(word) for word in log.split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if is_alive(pid)]


def test_the_whole_tree_is_gone_after_a_stop_with_grace(yard: Yard) -> None:
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ ready; sleep 1000' & wait; sleep 1000"
    id = yard.launch(script)
    yard.says(id, "ready")
    child = int(yard.log(id).split()[0])
    yard.engine.stop(id, None, 0.2)
    seen, _ = yard.ended(id)
    assert seen.cause is None
    assert not is_alive(child)


def test_a_job_may_use_its_grace_to_end_in_its_own_way(yard: Yard) -> None:
    id = yard.launch("trap 'echo saving; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    yard.says(id, "ready")
    yard.engine.stop(id, None, 60.0)
    seen, log = yard.ended(id)
    assert (seen.exit_code, seen.cause) == (7, None)
    assert "saving" in log


def test_a_program_behind_a_shell_has_its_grace_too(yard: Yard) -> None:
    """`prepare && train`: the shell dies of the signal at once, the training saves."""
    train = """trap "sleep 0.5; echo saved; exit" TERM; echo ready; while :; do sleep 0.05; done"""
    id = yard.launch(f"true && sh -c '{train}' && true")
    yard.says(id, "ready")
    yard.engine.stop(id, None, 50.0)
    seen, log = yard.ended(id)
    assert (seen.exit_code, seen.cause) == (143, None)
    assert log.endswith("saved\n")


def test_a_stop_asked_by_one_server_is_carried_out_though_that_server_is_gone(yard: Yard) -> None:
    id = replica()
    supervisor = running(yard, "trap '' TERM; echo ready; sleep 1000")
    yard.engine.stop(id, None, 0.5)
    yard.engine.close()
    wait_for(lambda: not is_alive(supervisor))
    yard.engine = yard.new_engine()
    assert yard.look(id).life is Life.ENDED


def test_a_supervisor_told_to_go_ends_its_job_and_says_it_was_not_the_jobs_fault(yard: Yard) -> None:
    supervisor = running(yard, "echo ready; sleep 1000")
    os.kill(supervisor, signal.SIGTERM)
    seen, _ = yard.ended(replica())
    assert seen.cause is Cause.LOST


@pytest.mark.parametrize("times", [200, pytest.param(1000, marks=pytest.mark.soak)])
def test_a_job_that_dies_at_once_leaves_its_whole_log(yard: Yard, times: int) -> None:
    for number in range(times):
        yard.launch("echo hi; exit 3", replica(number))
    for number in range(times):
        seen, log = yard.ended(replica(number))
        assert (seen.exit_code, log) == (3, "hi\n")


def test_a_signal_is_named(yard: Yard) -> None:
    seen, _ = yard.run("kill -SEGV $$")
    assert (seen.exit_code, seen.cause) == (128 + signal.SIGSEGV, Cause.EXIT)
    assert seen.reason is not None
    assert seen.reason.facts == {"signal": "SIGSEGV", "replica": "worker-0"}


def test_an_unknown_command_is_not_started_and_named(yard: Yard) -> None:
    yard.engine.launch(yard.request(replica(), "no-such-command-here", "x"))
    seen, log = yard.ended(replica())
    assert (seen.exit_code, seen.cause) == (None, Cause.LAUNCH)
    assert seen.reason == because(Code.NO_SUCH_COMMAND, name="no-such-command-here", replica="worker-0")
    assert "no-such-command-here" in log


def test_a_command_that_may_not_be_run_is_not_started_and_named(yard: Yard) -> None:
    yard.engine.launch(yard.request(replica(), "/etc/services"))
    seen, log = yard.ended(replica())
    assert (seen.exit_code, seen.cause) == (None, Cause.LAUNCH)
    assert seen.reason == because(Code.NOT_EXECUTABLE, path="/etc/services", replica="worker-0")
    assert "/etc/services" in log


def test_a_start_file_that_is_missing_is_named(yard: Yard) -> None:
    seen, _ = yard.run("python3 missing.py")
    home = yard.data / "files" / "user" / yard.owner
    assert seen.cause is Cause.LAUNCH
    assert seen.reason == because(Code.NO_START_FILE, path=str(home / "missing.py"), replica="worker-0")


def test_replicas_outlive_the_server_that_started_them(tmp_path: Path, make_yard: MakeYard) -> None:
    """The server is killed without warning, together with its whole process group, as a closing terminal would."""
    data = tmp_path / "data"
    program = """
import os, signal, sys
from pathlib import Path
from typing import Any
from tests.engines.places import Yard, replica
yard = Yard(Path(sys.argv[1]))
yard.launch("echo ready; sleep 1; echo done")
os.killpg(0, signal.SIGKILL)
"""
    server = subprocess.run([sys.executable, "-c", program, str(data)], start_new_session=True, check=False)
    assert server.returncode == -signal.SIGKILL
    yard = make_yard(data)
    seen, log = yard.ended(replica())
    assert (seen.exit_code, log) == (0, "ready\ndone\n")


def test_a_supervisor_imports_nothing_of_gpuyard_and_nothing_third_party(yard: Yard) -> None:
    supervisor = running(yard, "echo ready; sleep 1000")
    command = Path(f"/proc/{supervisor}/cmdline").read_bytes().split(b"\0")
    assert b"-I" in command
    assert b"-S" in command
    assert b"site-packages" not in Path(f"/proc/{supervisor}/maps").read_bytes()
    folder = Path(processes.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    assert "import gpuyard" not in text
    assert "from gpuyard" not in text


def test_secrets_in_the_environment_are_in_no_command_line_and_in_no_readable_file(yard: Yard) -> None:
    id = replica()
    running(yard, "echo ready; sleep 1000", env=[("TOKEN", "s3cr3t-value")])
    lines = [_command_line(pid) for pid in processes.all_pids()]
    assert not [line for line in lines if b"s3cr3t-value" in line]
    request = yard.engine.log_path(id).parent / record.REQUEST
    assert json.loads(request.read_text())["env"]["TOKEN"] == "s3cr3t-value"
    assert request.stat().st_mode & 0o077 == 0


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_running_workload_is_not_forgotten(yard: Yard) -> None:
    running(yard, "echo ready; sleep 1000")
    with pytest.raises(EngineError) as refused:
        yard.engine.forget(replica().workload)
    assert refused.value.reason.code is Code.ENGINE_CANNOT
    assert yard.look(replica()).life is Life.RUNNING


def test_forgetting_follows_no_link_and_no_depth_is_too_deep(yard: Yard, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    yard.run("true")
    work = yard.engine.log_path(replica()).parent / "work"
    (work / "link").symlink_to(precious)
    here = os.open(work, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    yard.engine.forget(replica().workload)
    assert not yard.engine.log_path(replica()).parent.parent.parent.exists()
    assert (precious / "file").read_text() == "kept"


def test_a_data_folder_with_a_very_long_path_works_and_is_woken(tmp_path: Path, make_yard: MakeYard) -> None:
    yard = make_yard(tmp_path / ("long" * 30) / ("folder" * 20))
    woken = threading.Event()
    yard.engine.on_change(woken.set)
    yard.launch("true")
    assert woken.wait(30)
    yard.ended(replica())


def test_a_listener_that_fails_does_not_make_the_others_deaf(yard: Yard) -> None:
    woken = threading.Event()

    def fails() -> None:
        raise RuntimeError("a mistake")

    yard.engine.on_change(fails)
    yard.engine.on_change(woken.set)
    yard.launch("true")
    assert woken.wait(30)


def test_a_launch_that_fails_inside_is_told_in_words(yard: Yard, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"this is not a tar file" * 100)
    seen, _ = yard.run("true", workdir=bad)
    assert (seen.cause, seen.exit_code) == (Cause.LAUNCH, None)
    assert seen.reason is not None
    assert seen.reason.code is Code.LAUNCH_FAILED
    assert "the shipped folder cannot be unpacked" in seen.reason.facts["detail"]


def test_cards_this_machine_does_not_have_are_refused(yard: Yard) -> None:
    with pytest.raises(EngineError) as refused:
        yard.launch("true", cards=[3])
    assert "cards [3]" in refused.value.reason.facts["detail"]


def test_names_that_would_leave_their_folder_are_refused(yard: Yard) -> None:
    for owner in ("..", "a/b", ".hidden", ""):
        with pytest.raises(EngineError):
            yard.engine.launch(yard.request(replica(), "true", owner=owner or "/"))


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_supervisors_killed_at_any_moment_leave_an_end_and_nothing_else(yard: Yard, times: int) -> None:
    chance = random.Random(7)
    for number in range(times):
        id = replica(number)
        yard.launch("echo ready; (setsid sleep 1000 &); sleep 0.05; exit 3", id)
        time.sleep(chance.uniform(0.0, 0.15))
        with contextlib.suppress(ProcessLookupError):
            os.kill(yard.supervisor(id), signal.SIGKILL)
    for number in range(times):
        id = replica(number)
        seen, log = yard.ended(id)
        assert seen.cause in (Cause.LOST, Cause.EXIT)
        assert seen.exit_code in (None, 3)
        assert log in ("", "ready\n")
        assert not processes.marked(str(id))
    yard.engine.sweep(())
    assert not list((yard.data / "run" / "live").iterdir())


def test_a_port_that_is_in_use_is_told_before_anything_starts(yard: Yard) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        request = replace(yard.request(replica(), "sh", "-c", "echo started"), ports=(port,))
        with pytest.raises(EngineError) as refused:
            yard.engine.launch(request)
        assert (refused.value.reason.code, refused.value.reason.facts["port"]) == (Code.PORT_TAKEN, port)
        assert yard.look(replica()).life is Life.ABSENT
    yard.engine.launch(request)
    _, log = yard.ended(replica())
    assert log == "started\n"
