"""`yard run` and `yard logs` with real processes: output as it comes, exit codes, Ctrl-C, restarts."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.cli.yard import Yard, wait_until

SLEEPER = ["--", "sh", "-c", "echo begun; sleep 600"]


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143), ("exec /nonexistent/program", 127)],
)
def test_run_ends_with_the_jobs_own_code(machine: Yard, script: str, code: int) -> None:
    assert machine.run("run", "--", "sh", "-c", script).code == code


def test_output_goes_to_stdout_and_the_rest_to_stderr(machine: Yard) -> None:
    done = machine.run("run", "--cards", "1", "--", "sh", "-c", "echo hello; echo oops >&2; printf 'no newline'")
    assert done.out == "hello\noops\nno newline"
    assert "submitted" in done.err
    assert "succeeded" in done.err
    assert done.code == 0


def test_progress_bars_arrive_byte_for_byte(machine: Yard) -> None:
    ran = subprocess.run(
        machine.command("run", "--", "printf", r"10%%\r50%%\r100%%\n数\033[1mb\n"),
        capture_output=True,
        env=machine.environment(),
        timeout=60,
        check=True,
    )
    assert ran.stdout == b"10%\r50%\r100%\n\xe6\x95\xb0\x1b[1mb\n"


def test_a_failure_is_told_in_words_and_in_chinese_when_asked(machine: Yard) -> None:
    done = machine.run("run", "--", "sh", "-c", "exit 3", YARD_LANG="zh")
    assert done.code == 3
    assert "失败" in done.err


def test_every_attempt_is_shown(machine: Yard) -> None:
    done = machine.run("run", "--retries", "1", "--", "sh", "-c", "echo tried; exit 4")
    assert done.code == 4
    assert done.out == "tried\ntried\n"
    assert "begins attempt 2" in done.err
    assert "failed (attempt 2, no retries left)" in done.err


def test_a_job_whose_time_is_up_ends_as_timeout_does(machine: Yard) -> None:
    done = machine.run("run", "--max-time", "1s", "--", "sleep", "600")
    assert done.code == 124
    assert "maximum time" in done.err


def test_a_failure_ends_with_the_command_that_shows_its_log(machine: Yard) -> None:
    script = 'test "$YARD_INDEX" = 1 && echo "it was me" && exit 3; sleep 600'
    done = machine.run("run", "--name", "one-fails", "--replicas", "2", "--", "sh", "-c", script)
    assert done.code == 3
    job = machine.json("show", "one-fails")["id"]
    command = f"yard logs {job} --replica worker-1"
    assert done.err.rstrip().endswith(command)
    assert machine.good("show", job).endswith(command)
    assert machine.run(*command.split()[1:]).out == "it was me\n"
    by_itself = machine.run("logs", job)
    assert by_itself.out == "it was me\n"
    assert "worker-1" in by_itself.err


def test_a_job_file_takes_a_folder_along(machine: Yard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('shipped with a file')\n")
    (tmp_path / "job.yaml").write_text("name: filed\ncommand: python3 train.py\n")
    options = [str(tmp_path / "job.yaml"), "--workdir", str(tmp_path)]
    assert machine.run("preview", *options).code == 0
    job = machine.good("submit", *options)
    machine.wait_for(job)
    assert machine.run("logs", job).out == "shipped with a file\n"
    digest = machine.json("show", job)["workdir"]
    assert digest[:12] in machine.good("show", job)
    assert machine.run("submit", options[0], "--workdir", "/nonexistent").code == 2


def test_several_replicas_share_the_output_line_by_line(machine: Yard) -> None:
    done = machine.run("run", "--replicas", "2", "--", "sh", "-c", "echo one; echo two")
    assert sorted(done.out.splitlines()) == [
        "worker-0 | one",
        "worker-0 | two",
        "worker-1 | one",
        "worker-1 | two",
    ]


def test_options_reach_the_job(machine: Yard) -> None:
    options = ["--name", "options", "--cpu", "1", "--memory", "256M", "--shm", "64M", "--priority", "700"]
    more = ["--image", "pytorch:2", "--max-time", "5m", "--env", "GREETING=hi there", "--preemptible"]
    done = machine.run("run", *options, *more, "--", "sh", "-c", 'echo "$GREETING"')
    assert done.out == "hi there\n"
    shown = machine.json("show", "options")
    assert (shown["priority"], shown["image"], shown["max_seconds"]) == (700, "pytorch:2", 300)
    assert shown["preemptible"] is True


def test_a_working_folder_is_shipped_and_used(machine: Yard, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import helper\nprint(helper.word)\n")
    (tmp_path / "helper.py").write_text("word = 'shipped'\n")
    (tmp_path / "big.bin").write_bytes(b"x" * 1000)
    (tmp_path / ".yardignore").write_text("*.bin\n")
    command = ["run", "--workdir", str(tmp_path), "--", "sh", "-c", "python3 train.py; ls"]
    for _ in range(2):
        done = machine.run(*command)
        assert done.code == 0, done.err
        assert "shipped\n" in done.out
        assert "big.bin" not in done.out
    (tmp_path / "out").symlink_to("/etc")
    assert machine.run(*command).code == 2


# --- Ctrl-C -------------------------------------------------------------------------------------------------------


def test_ctrl_c_asks_and_stop_stops_the_job(machine: Yard) -> None:
    terminal = Terminal(machine, "run", "--name", "to-stop", *SLEEPER)
    terminal.read_until("begun")
    terminal.type("\x03")
    terminal.read_until("[s]top")
    terminal.type("s\n")
    assert terminal.exit_code() == 130
    assert machine.json("show", "to-stop")["state"] == "stopped"


def test_ctrl_c_asks_and_detach_leaves_the_job(machine: Yard) -> None:
    terminal = Terminal(machine, "run", "--name", "to-leave", *SLEEPER)
    terminal.read_until("begun")
    terminal.type("\x03")
    terminal.read_until("[s]top")
    terminal.type("what?\nc\n")
    wait_until(lambda: terminal.count("[s]top") >= 2)
    assert "“what?” is none of s, d, c" in terminal.seen
    terminal.type("\x03")
    wait_until(lambda: terminal.count("[s]top") >= 3)
    terminal.type("d\n")
    assert terminal.exit_code() == 0
    assert "yard logs -f" in terminal.seen
    assert machine.json("show", "to-leave")["state"] == "running"
    machine.good("stop", "to-leave")


def test_the_question_ends_by_itself_when_the_job_does(machine: Yard, tmp_path: Path) -> None:
    terminal = Terminal(machine, "run", "--name", "ends-itself", *SLEEPER)
    terminal.read_until("begun")
    terminal.type("\x03")
    terminal.read_until("[s]top")
    machine.good("stop", "ends-itself")
    assert terminal.exit_code() == 143
    assert "has ended meanwhile" in terminal.seen


def test_q_ends_top(machine: Yard) -> None:
    terminal = Terminal(machine, "top")
    terminal.read_until("q quits")
    terminal.type("q")
    assert terminal.exit_code() == 0


def test_an_interrupt_with_nobody_to_ask_stops_nothing(machine: Yard) -> None:
    watching = machine.start("run", "--name", "nobody", *SLEEPER)
    assert watching.stdout is not None
    assert watching.stdout.readline() == b"begun\n"
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert b"yard logs -f" in said
    assert machine.json("show", "nobody")["state"] == "running"
    machine.good("stop", "nobody")


def test_a_job_stopped_by_someone_else_ends_the_watching(machine: Yard) -> None:
    watching = machine.start("run", "--name", "elsewhere", *SLEEPER)
    assert watching.stdout is not None
    assert watching.stdout.readline() == b"begun\n"
    machine.good("stop", "elsewhere")
    _, said = watching.communicate(timeout=60)
    assert watching.returncode == 143
    assert b"was stopped" in said


def test_output_cut_short_by_a_reader_that_left_is_quiet(machine: Yard) -> None:
    watching = machine.start("run", "--name", "flood", "--", "sh", "-c", "yes | head -c 20000000")
    assert watching.stdout is not None
    assert watching.stderr is not None
    assert watching.stdout.readline() == b"y\n"
    watching.stdout.close()
    said = watching.stderr.read().decode()
    watching.stderr.close()
    assert watching.wait(60) == 141
    assert "Traceback" not in said
    machine.wait_for("flood")


# --- logs ---------------------------------------------------------------------------------------------------------


def test_logs_are_kept_and_cut_to_the_tail_when_asked(machine: Yard) -> None:
    job = machine.good("run", "--detach", "--", "seq", "1", "1000")
    machine.wait_for(job)
    assert machine.run("logs", job).out == "".join(f"{n}\n" for n in range(1, 1001))
    assert machine.run("logs", job, "--tail", "2").out == "999\n1000\n"
    assert machine.run("logs", "-f", job, "--tail", "1").out == "1000\n"
    assert machine.run("logs", job, "--attempt", "1", "--replica", "worker-0").code == 0
    assert machine.run("logs", job, "--replica", "worker-7").code == 3
    assert machine.run("logs", job, "--attempt", "9").code == 3


def test_a_job_that_has_not_started_has_no_output_and_says_why(machine: Yard) -> None:
    job = machine.good("run", "--detach", "--cards", "2", *SLEEPER)
    machine.wait_for(job, "running")
    waiting = machine.good("run", "--detach", "--cards", "2", "--", "true")
    wait_until(lambda: machine.json("why", waiting)["reason_code"] == "waiting.busy")
    done = machine.run("logs", waiting)
    assert (done.code, done.out) == (0, "")
    assert "no output yet" in done.err
    machine.good("stop", job, waiting)


def test_a_followed_log_survives_the_servers_death_without_gap_or_repeat(yard: Yard) -> None:
    yard.up("--engine", "process")
    counting = yard.start("run", "--", "sh", "-c", "for n in $(seq 1 60); do echo $n; sleep 0.1; done; exit 5")
    assert counting.stdout is not None
    assert counting.stdout.readline() == b"1\n"
    for _ in range(2):
        os.kill(yard.pid, signal.SIGKILL)
        yard.up("--engine", "process")  # on another port
    rest = counting.stdout.read()  # `communicate` would pass over what came together with the first line
    said = counting.communicate(timeout=120)[1]
    assert rest.decode().split() == [str(n) for n in range(2, 61)], said
    assert counting.returncode == 5
