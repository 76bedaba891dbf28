"""The porter: it runs a command and ends as the command does, and through its door shells, programs and connections
are had from inside, whatever those who come there try."""

from __future__ import annotations

import io
import os
import random
import resource
import signal
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import IS_ROOT, is_alive, wait_for
from tests.engines.porters import PorterPlace, read_all, read_until

from gpuyard.engines.inside import wire

SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PorterPlace]:
    place = PorterPlace(tmp_path)
    yield place
    place.close()


# --- the command --------------------------------------------------------------------------------------------------


def test_it_ends_as_its_command_does_and_the_output_is_in_the_log(place: PorterPlace) -> None:
    (place.folder / "log").write_text("before\n")
    place.start("sh", "-c", "echo out; echo err >&2; cat; exit 7")
    assert place.wait() == 7
    assert place.log == "before\nout\nerr\n"
    assert place.end() == {"exit_code": 7, "signal": None, "oom": False, "problem": None}


def test_a_command_that_is_killed_is_told_with_its_signal(place: PorterPlace) -> None:
    place.start("sh", "-c", "kill -9 $$")
    assert place.wait() == 128 + 9
    assert place.end()["signal"] == 9


def test_the_stop_signal_reaches_the_command_which_may_save_and_say_how_it_ended(place: PorterPlace) -> None:
    place.start("sh", "-c", "trap 'echo saving; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    wait_for(lambda: "up" in place.log)
    os.kill(place.pid, signal.SIGTERM)
    assert place.wait() == 3
    assert "saving" in place.log


def test_a_program_below_a_shell_that_dies_at_once_has_its_grace(place: PorterPlace) -> None:
    program = "trap 'sleep 0.3; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    place.start("sh", "-c", f'sh -c "{program}"; true')
    wait_for(lambda: "up" in place.log)
    os.kill(place.pid, signal.SIGTERM)
    assert place.wait() == 128 + signal.SIGTERM
    assert "saved" in place.log


def test_orphans_are_reaped(place: PorterPlace) -> None:
    place.start("sh", "-c", "(sh -c 'echo $$; exec sleep 0.1' &); sleep 60")
    wait_for(lambda: place.log.strip())
    orphan = place.log.strip()
    wait_for(lambda: not Path(f"/proc/{orphan}").exists(), "the end of all of the orphan")


def test_a_shipped_folder_is_unpacked_where_the_command_runs(place: PorterPlace) -> None:
    _ship(place.folder / "shipped.tar", {"src/main.sh": "echo unpacked", "data": "x"})
    place.start("sh", "src/main.sh", workdir=str(place.folder / "shipped.tar"), cwd=str(place.folder / "made" / "work"))
    assert place.wait() == 0
    assert place.log == "unpacked\n"


def test_a_shipped_folder_that_leads_out_of_its_place_is_refused(place: PorterPlace) -> None:
    _ship(place.folder / "shipped.tar", {"../outside": "x"})
    place.start("true", workdir=str(place.folder / "shipped.tar"), cwd=str(place.folder / "work"))
    assert place.wait() == 126
    assert "cannot be unpacked" in place.end()["problem"]["detail"]
    assert not (place.folder / "outside").exists()


def test_a_command_that_plainly_cannot_run_is_not_started_and_says_why(place: PorterPlace) -> None:
    place.start("python3", "missing.py")
    assert place.wait() == 126
    assert place.end()["problem"] == {"code": "ended.no_start_file", "path": str(place.folder / "missing.py")}
    assert "missing.py" in place.log


def test_a_working_folder_that_is_not_there_is_told(place: PorterPlace) -> None:
    place.start("true", cwd=str(place.folder / "gone"))
    assert place.wait() == 126
    assert place.end()["problem"]["code"] == "ended.no_working_folder"


def _ship(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))


def test_a_command_that_runs_out_of_memory_goes_before_the_porter(place: PorterPlace) -> None:
    place.start("sh", "-c", "cat /proc/self/oom_score_adj; sleep 60")
    wait_for(lambda: place.log.strip())
    assert int(place.log) > int(Path(f"/proc/{place.pid}/oom_score_adj").read_text())


def test_without_a_command_it_stays_until_it_is_told_to_go(place: PorterPlace) -> None:
    place.start()
    assert place.ask({"do": "ping"}).message == {"ok": True, "pid": place.pid}
    os.kill(place.pid, signal.SIGTERM)
    assert place.wait() == 0


# --- shells -------------------------------------------------------------------------------------------------------


def test_a_shell_comes_with_a_terminal_of_the_size_asked_for_and_tells_its_end(place: PorterPlace) -> None:
    place.start(env={"FROM": "the workload"})
    shell = place.ask({"do": "shell", "rows": 33, "cols": 111, "env": {"MINE": "too"}, "term": "vt220"})
    assert shell.message["ok"]
    os.write(shell.fds[0], b"stty size; echo $FROM $MINE $TERM; pwd; exit 5\n")
    said = read_until(shell.fds[0], b"vt220\r\n")
    assert b"33 111" in said
    assert b"the workload too vt220" in said
    assert shell.more() == {"ended": 5, "signal": None}


def test_a_shell_that_is_left_takes_its_whole_session_along(place: PorterPlace) -> None:
    place.start()
    shell = place.ask({"do": "shell"})
    os.write(shell.fds[0], b"trap '' HUP; nohup sleep 1000 & sh -c 'trap \"\" HUP; echo in-$$-; sleep 1000'\n")
    said = read_until(shell.fds[0], b"-\r\n")
    inner = int(said.rpartition(b"in-")[2].split(b"-")[0])
    members = _session(shell.message["pid"])
    assert inner in members
    assert len(members) >= 3
    shell.leave()
    wait_for(lambda: not _session(shell.message["pid"]), "the end of the session")


def test_what_was_put_into_a_session_of_its_own_goes_on(place: PorterPlace) -> None:
    place.start()
    answer, ears = place.run("setsid sh -c 'echo $$; exec sleep 1000' & wait")
    pid = int(os.read(ears, 100))
    answer.leave()
    wait_for(lambda: not _session(answer.message["pid"]))
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    os.close(ears)


def _session(leader: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(") ")[2].split() if name.isdigit() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields and fields[0] not in ("Z", "X") and int(fields[3]) == leader:
            found.append(int(name))
    return found


def test_the_toolboxs_stand_ins_come_last_in_path(place: PorterPlace) -> None:
    (place.folder / "toolbox" / "shims").mkdir(parents=True)
    place.start(env={"YARD_TOOLBOX": str(place.folder / "toolbox")})
    answer, ears = place.run("echo $PATH")
    assert answer.more()["ended"] == 0
    assert read_all(ears).decode().strip() == f"{os.environ['PATH']}:{place.folder}/toolbox/shims"


# --- commands -----------------------------------------------------------------------------------------------------


def test_a_command_gets_the_three_streams_that_were_handed_in(place: PorterPlace) -> None:
    place.start()
    inner, outer = socket.socketpair()
    errors, mouth = os.pipe()
    with inner, outer:
        answer = place.ask(
            {"do": "run", "argv": ["sh", "-c", "cat; echo no >&2; exit 9"]}, [inner.fileno()] * 2 + [mouth]
        )
        inner.close()
        os.close(mouth)
        outer.sendall(b"through")
        outer.shutdown(socket.SHUT_WR)
        assert outer.recv(100) == b"through"
        assert answer.more() == {"ended": 9, "signal": None}
        assert read_all(errors) == b"no\n"


def test_a_command_can_be_sent_signals(place: PorterPlace) -> None:
    place.start()
    answer, ears = place.run("trap 'echo asked; exit 4' USR1; echo up; while :; do sleep 0.05; done")
    assert os.read(ears, 10) == b"up\n"
    wire.send(answer.sock, {"signal": int(signal.SIGUSR1)})
    assert answer.more() == {"ended": 4, "signal": None}
    answer, _ = place.run("kill -15 $$")
    assert answer.more() == {"ended": 143, "signal": 15}
    os.close(ears)


@pytest.mark.parametrize(
    ("argv", "error"), [(["/nowhere/at/all"], "not_found"), (["no-such-command"], "not_found"), (["/etc"], "denied")]
)
def test_a_command_that_cannot_run_is_refused_in_a_word(place: PorterPlace, argv: list[str], error: str) -> None:
    place.start()
    answer, ears = place.run("", argv=argv)
    os.close(ears)
    assert answer.message["error"] == error
    assert argv[0] in answer.message["detail"]


# --- connections --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_ports_of_the_loopback_can_be_reached(place: PorterPlace, family: int, address: str) -> None:
    place.start()
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen()
        answer = place.ask({"do": "connect", "port": server.getsockname()[1]})
        assert answer.message == {"ok": True}
        with server.accept()[0] as there, socket.socket(fileno=answer.fds[0]) as here:
            there.sendall(b"hello")
            here.setblocking(True)
            assert here.recv(10) == b"hello"


def test_a_port_where_nobody_listens_is_refused(place: PorterPlace) -> None:
    place.start()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert place.ask({"do": "connect", "port": taken.getsockname()[1]}).message["error"] == "refused"


def test_socket_files_in_the_door_folder_can_be_reached(place: PorterPlace) -> None:
    place.start()
    assert place.ask({"do": "connect", "path": "lab.sock"}).message["error"] == "not_found"
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(place.door, os.O_PATH)
        server.bind(f"/proc/self/fd/{folder}/lab.sock")
        os.close(folder)
        server.listen()
        answer = place.ask({"do": "connect", "path": "lab.sock"})
        assert answer.message == {"ok": True}
        wire.close_all(answer.fds)


# --- services -----------------------------------------------------------------------------------------------------


def test_of_a_service_there_is_one_and_it_goes_on_without_its_asker(place: PorterPlace) -> None:
    place.start()
    wish = {
        "do": "serve",
        "name": "lab",
        "argv": ["sh", "-c", "echo served; while [ ! -e over ]; do sleep 0.05; done; exit 6"],
    }
    first = place.ask(wish).message
    assert first["started"] is True
    assert place.ask(wish).message == {"ok": True, "pid": first["pid"], "started": False}
    (place.folder / "over").touch()
    wait_for(lambda: not place.ask({"do": "services"}).message["services"]["lab"]["running"])
    assert place.ask({"do": "services"}).message["services"]["lab"]["exit_code"] == 6
    assert (place.door / "lab.log").read_text() == "served\n"
    assert place.ask(wish).message["started"] is True


def test_a_service_that_says_very_much_fills_no_disk(place: PorterPlace) -> None:
    def said() -> bytes:
        try:
            return (place.door / "loud.log").read_bytes()
        except FileNotFoundError:  # not yet, or just renamed because it was full
            return b""

    place.start()
    place.ask({"do": "serve", "name": "loud", "argv": ["sh", "-c", "head -c 5000000 /dev/zero; echo the end"]})
    wait_for(lambda: b"the end" in said())
    assert sum(path.stat().st_size for path in place.door.glob("loud*")) <= 1 << 20


# --- those who mean harm ------------------------------------------------------------------------------------------

GARBAGE: list[bytes] = [
    b"",
    b"\0",
    b"[]",
    b"{",
    b"nonsense \xff",
    b"[" * 50_000,
    b'{"do": ' + b"9" * 20_000 + b"}",
    b'{"do": ["ping"]}',
    b'{"do": "everything"}',
    b'{"do": "shell", "rows": 1e99}',
    b'{"do": "shell", "rows": -1}',
    b'{"do": "shell", "argv": [7]}',
    b'{"do": "shell", "argv": ["a\\u0000b"]}',
    b'{"do": "shell", "env": {"A=B": "c"}}',
    b'{"do": "shell", "env": [1]}',
    b'{"do": "shell", "cwd": 5}',
    b'{"do": "run", "argv": ["true"]}',
    b'{"do": "connect"}',
    b'{"do": "connect", "port": 0}',
    b'{"do": "connect", "port": true}',
    b'{"do": "connect", "path": "\\ud800"}',
    b'{"do": "serve", "name": "../../x", "argv": ["true"]}',
    b'{"do": "serve", "name": "x", "argv": []}',
]


def test_garbage_is_refused_and_costs_nothing(place: PorterPlace) -> None:
    place.start()
    place.ask({"do": "ping"}).leave()
    before = place.open_descriptors()
    for text in GARBAGE:
        with place.knock() as sock:
            sock.send(text)
            answer = sock.recv(10_000)
            assert answer == b"" or b'"ok": false' in answer, text
    too_large = place.knock()
    too_large.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    too_large.send(b"x" * 100_000)
    assert b"too large" in too_large.recv(1000)
    too_large.close()
    wait_for(lambda: place.open_descriptors() <= before, "nothing left open")
    assert place.ask({"do": "ping"}).message["ok"]


def test_descriptors_nobody_asked_for_are_closed(place: PorterPlace) -> None:
    place.start()
    place.ask({"do": "ping"}).leave()
    before = place.open_descriptors()
    for _ in range(50):
        place.ask({"do": "ping"}, [0, 1, 2]).leave()
    with place.knock() as sock:
        socket.send_fds(sock, [b'{"do": "ping"}'], [0] * 200)
        sock.recv(1000)
    wait_for(lambda: place.open_descriptors() <= before, "nothing left open")


def test_a_crowd_at_the_door_is_turned_away_and_shuts_nobody_out_for_good(place: PorterPlace) -> None:
    place.start()
    crowd = [place.knock() for _ in range(64)]
    late = place.knock()
    assert late.recv(10) == b""
    for sock in (*crowd, late):
        sock.close()
    wait_for(lambda: _answers(place), "an answer again")


def _answers(place: PorterPlace) -> bool:
    try:
        return bool(place.ask({"do": "ping"}).message["ok"])
    except (wire.Gone, OSError):
        return False


def test_a_socket_that_was_removed_comes_back(place: PorterPlace) -> None:
    place.start()
    (place.door / "porter.sock").unlink()
    wait_for(lambda: (place.door / "porter.sock").exists())
    assert place.ask({"do": "ping"}).message["ok"]


def test_a_door_folder_that_was_away_for_a_while_is_used_again(place: PorterPlace) -> None:
    place.start("sleep", "1000")
    place.door.rename(place.folder / "away")
    (place.folder / "door").mkdir()
    wait_for(lambda: (place.door / "porter.sock").exists())
    assert place.ask({"do": "ping"}).message["ok"]


def test_a_command_ends_well_even_where_its_end_cannot_be_written(place: PorterPlace) -> None:
    place.start("sh", "-c", "while [ ! -e over ]; do sleep 0.05; done; exit 3")
    place.door.rename(place.folder / "away")
    (place.folder / "over").touch()
    assert place.wait() == 3


@pytest.mark.skipif(not IS_ROOT or not Path(SYSTEM_PYTHON).exists(), reason="needs another user and a Python for it")
def test_when_no_process_can_be_made_the_door_says_so_and_goes_on(place: PorterPlace, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755) if folder != Path("/tmp") else None
    place.python = SYSTEM_PYTHON

    def few_processes() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))

    alone = random.SystemRandom().randrange(1_000_000, 2_000_000)  # a user's are counted on the whole machine
    place.start(log=None, user=alone, group=alone, extra_groups=[], preexec_fn=few_processes)
    held = [place.ask({"do": "shell", "argv": ["sleep", "1000"]}) for _ in range(4)]
    assert [answer.message.get("error") for answer in held][-1] == "too_many"
    held[0].leave()
    wait_for(lambda: place.ask({"do": "shell", "argv": ["sleep", "1000"]}).message["ok"], "room for one more")
