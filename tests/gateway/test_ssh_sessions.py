"""Sessions over SSH with OpenSSH's own programs: commands, streams, terminals, copies."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

import pytest
from tests.gateway.ssh_house import SshHouse, wait_until

from gpuyard.domain.workload import Workload

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the OpenSSH client")


# --- commands -----------------------------------------------------------------------------------------------------


def test_a_command_runs_inside_with_its_own_exit_code_and_streams(house: SshHouse, dev: Workload, key: Path) -> None:
    ran = house.ssh("ann+dev", "echo out; echo err >&2; pwd; exit 9", key=key)
    assert (ran.code, ran.err) == (9, "err\n")
    assert ran.text == f"out\n{house.home(dev)}\n"


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_every_exit_code_comes_back(house: SshHouse, key: Path, code: int) -> None:
    assert house.ssh("ann+dev", f"exit {code}", key=key).code == code


def test_a_command_that_is_killed_ends_with_a_failure(house: SshHouse, key: Path) -> None:
    assert house.ssh("ann+dev", "kill -9 $$", key=key).code in (255, 128 + signal.SIGKILL)


def test_standard_input_is_passed_on_with_its_end(house: SshHouse, key: Path) -> None:
    text = os.urandom(3_000_000)
    ran = house.ssh("ann+dev", "sha256sum; echo after", key=key, stdin=text)
    assert ran.text == f"{hashlib.sha256(text).hexdigest()}  -\nafter\n"


def test_what_inside_does_not_read_is_dropped_and_nothing_hangs(house: SshHouse, key: Path) -> None:
    ran = house.ssh("ann+dev", "head -c 10 >/dev/null; exit 4", key=key, stdin=b"x" * 5_000_000)
    assert ran.code == 4


def test_large_output_arrives_whole_on_both_streams(house: SshHouse, key: Path) -> None:
    ran = house.ssh("ann+dev", "head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2", key=key)
    assert (ran.code, len(ran.out), len(ran.err)) == (0, 20_000_000, 3_000_000)


def test_a_reader_that_sleeps_holds_up_the_writer_and_not_the_gateway(house: SshHouse, key: Path) -> None:
    slow = house.start(house.command("ann+dev", "head -c 60000000 /dev/zero", key=key))
    time.sleep(1)
    before = _memory()
    time.sleep(1)
    assert house.ssh("ann+dev", "echo quick", key=key).text == "quick\n"
    assert _memory() - before < 20_000_000
    out, _ = slow.communicate(timeout=60)
    assert (slow.returncode, len(out)) == (0, 60_000_000)


def test_programs_find_their_streams_by_name(house: SshHouse, key: Path) -> None:
    ran = house.ssh("ann+dev", "echo one > /dev/stdout; echo two > /dev/stderr", key=key)
    assert (ran.text, ran.err) == ("one\n", "two\n")


def test_a_signal_reaches_the_command(house: SshHouse, key: Path) -> None:
    """OpenSSH's client sends none by itself, so asyncssh's does."""
    import asyncio

    import asyncssh

    async def visit() -> str:
        options = {"username": "ann+dev", "client_keys": [str(key)], "known_hosts": None, "config": None}
        async with asyncssh.connect("127.0.0.1", house.port, **options) as connection:
            script = "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.05; done"
            async with connection.create_process(script) as process:
                assert await process.stdout.readline() == "ready\n"
                process.send_signal("USR1")
                told = await process.stdout.readline()
                done = await process.wait()
                return f"{told}{done.exit_status}"

    assert asyncio.run(visit()) == "caught\n3"


def test_only_the_language_comes_along_from_outside(house: SshHouse, key: Path) -> None:
    names = ["LANG", "LC_ALL", "LC_MESSAGES", "LD_PRELOAD", "PATH", "HOME", "YARD_DOOR", "BASH_ENV"]
    given = dict.fromkeys(names, "zh_CN.UTF-8") | {"PATH": os.environ["PATH"], "HOME": "/nowhere", "LD_PRELOAD": ""}
    options = [part for name in names for part in ("-o", f"SendEnv={name}")]
    ran = house.ssh("ann+dev", "env", key=key, options=options, env=given)
    seen = dict(line.split("=", 1) for line in ran.text.splitlines() if "=" in line)
    assert seen["LANG"] == seen["LC_ALL"] == "zh_CN.UTF-8"
    assert seen["HOME"] != "/nowhere"
    assert "BASH_ENV" not in seen
    assert seen.get("YARD_DOOR") != "zh_CN.UTF-8"
    assert seen["SSH_CONNECTION"].startswith("127.0.0.1 ")


def test_what_a_command_leaves_in_the_background_goes_on(house: SshHouse, dev: Workload, key: Path) -> None:
    mark = house.home(dev) / "later"
    start = f"nohup sh -c 'sleep 1; touch {mark}' >/dev/null 2>&1 </dev/null & echo started"
    assert house.ssh("ann+dev", start, key=key).text == "started\n"
    wait_until(mark.exists)


def test_a_visitor_who_disappears_leaves_no_shell_behind(house: SshHouse, dev: Workload, key: Path) -> None:
    note = house.home(dev) / "pid"
    visit = house.start(house.command("ann+dev", f"echo $$ > {note}; cat", key=key))
    wait_until(lambda: note.exists() and note.read_text().strip() != "")
    pid = int(note.read_text())
    visit.kill()
    visit.communicate()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


# --- terminals ----------------------------------------------------------------------------------------------------


class Screen:
    """A terminal of ours, with ssh on it."""

    def __init__(self, command: list[str], environ: dict[str, str], rows: int = 33, cols: int = 111) -> None:
        self.master, slave = pty.openpty()
        self.resize(rows, cols)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def see(self, pattern: str, seconds: float = 20) -> str:
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, self.text
            self._read()
        self.text = self.text[found.end() :]
        return found.group()

    def _read(self) -> None:
        if not select.select([self.master], [], [], 0.1)[0]:
            return
        try:
            self.text += os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            time.sleep(0.05)

    def close(self) -> int:
        code = self.process.wait(20)
        os.close(self.master)
        return code


def test_a_shell_on_a_terminal_knows_its_size_and_follows_it(house: SshHouse, key: Path) -> None:
    screen = Screen(house.command("ann+dev", key=key), {**house.environ(), "TERM": "vt220"})
    screen.type("stty size; echo term=$TERM; tty\n")
    screen.see(r"33 111\r")
    screen.see(r"term=vt220\r")
    screen.see(r"/dev/pts/\d+")
    screen.resize(20, 70)
    os.kill(screen.process.pid, signal.SIGWINCH)
    screen.type("while [ \"$(stty size)\" != '20 70' ]; do sleep 0.05; done; echo resized-$((1+1))\n")
    screen.see(r"resized-2")
    screen.type("sh -c 'echo begin\"\"s; exec sleep 60'\n")
    screen.see("begins")
    screen.type("\x03")  # Ctrl-C ends sleep, not the shell
    screen.see(r"\^C[^#$]*[#$] ")
    screen.type("echo still-$((40+2))\n")
    screen.see("still-42")
    screen.type("exit 7\n")
    assert screen.close() == 7


def test_a_command_on_a_terminal_gives_all_its_output(house: SshHouse, key: Path) -> None:
    ran = house.ssh("ann+dev", "seq 1 100000; exit 5", key=key, options=["-tt"])
    assert ran.code == 5
    assert ran.text.split() == [str(number) for number in range(1, 100_001)]


def test_the_terminal_is_set_as_the_visitors_own(house: SshHouse, key: Path) -> None:
    screen = Screen(house.command("ann+dev", "stty -a; read x", key=key, options=["-t"]), house.environ())
    screen.see("iutf8")
    screen.process.kill()
    screen.close()


def test_a_closed_window_hangs_up_its_shell(house: SshHouse, dev: Workload, key: Path) -> None:
    note = house.home(dev) / "window"
    screen = Screen(house.command("ann+dev", key=key), house.environ())
    screen.type(f"echo $$ > {note}; echo no''ted\n")
    screen.see("noted")
    pid = int(note.read_text())
    screen.process.kill()
    screen.close()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


# --- copies -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree with space"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "数据.bin").write_bytes(os.urandom(700_000))
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def same(one: Path, other: Path) -> bool:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    return bool(files) and all((one / file).read_bytes() == (other / file).read_bytes() for file in files)


@pytest.mark.parametrize("way", [(), ("-O",)], ids=["sftp", "old"])
def test_scp_copies_there_and_back(
    house: SshHouse, dev: Workload, key: Path, tree: Path, tmp_path: Path, way: tuple[str, ...]
) -> None:
    name = f"copied{len(way)}"
    scp = ["scp", *way, *house.options(key), "-P", str(house.port), "-r", "-p"]
    there = house.run([*scp, str(tree), f"ann+dev@127.0.0.1:{name}"])
    assert there.code == 0, there.err
    assert same(tree, house.home(dev) / name)
    assert os.access(house.home(dev) / name / "run.sh", os.X_OK)
    back = house.run([*scp, f"ann+dev@127.0.0.1:{name}", str(tmp_path / "back")])
    assert back.code == 0, back.err
    assert same(tree, tmp_path / "back")


def test_sftp_lists_puts_gets_and_removes(
    house: SshHouse, dev: Workload, key: Path, tree: Path, tmp_path: Path
) -> None:
    orders = (
        f"""mkdir box\ncd box\nput "{tree}/deep/数据.bin" data.bin\nls -l\nget data.bin {tmp_path}/got\nrm data.bin\n"""
    )
    sftp = ["sftp", *house.options(key), "-b", "-", "-P", str(house.port), "ann+dev@127.0.0.1"]
    done = house.run(sftp, orders.encode())
    assert done.code == 0, done.err
    assert (tmp_path / "got").read_bytes() == (tree / "deep" / "数据.bin").read_bytes()
    assert list((house.home(dev) / "box").iterdir()) == []


@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_rsync_sends_only_what_changed(house: SshHouse, dev: Workload, key: Path, tree: Path) -> None:
    shell = " ".join(["ssh", *house.options(key), "-p", str(house.port)])
    sync = ["rsync", "-a", "--stats", "-e", shell, f"{tree}/", "ann+dev@127.0.0.1:synced/"]
    assert house.run(sync).code == 0
    assert same(tree, house.home(dev) / "synced")
    (tree / "new").write_text("new")
    again = house.run(sync)
    assert again.code == 0, again.err
    assert "Number of regular files transferred: 1\n" in again.text
    assert same(tree, house.home(dev) / "synced")


def test_without_an_sftp_server_inside_it_is_refused_in_words(house: SshHouse, key: Path, tmp_path: Path) -> None:
    """This machine has one; a shell that finds nothing stands for a place that has none."""
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nexit 97\n")
    shell.chmod(0o755)
    usual, house.shell = house.shell, str(shell)
    house.environment("ann", "bare")
    house.shell = usual
    sftp = ["sftp", *house.options(key), "-b", "-", "-P", str(house.port), "ann+bare@127.0.0.1"]
    refused = house.run(sftp, b"ls\n")
    assert refused.code == 255
    assert "sftp-server" in refused.err
    assert "yard toolbox build" in refused.err


def test_other_subsystems_are_refused(house: SshHouse, key: Path) -> None:
    assert house.ssh("ann+dev", "netconf", key=key, options=["-s"]).code == 255


# --- the rest -----------------------------------------------------------------------------------------------------


def test_ten_sessions_share_a_connection_and_no_more(house: SshHouse, key: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        shared = ["-o", f"ControlPath={short}/c"]
        visits = [house.start(house.command("ann+dev", "echo up; cat", key=key, options=[*shared, "-M"]))]
        try:
            wait_until(Path(short, "c").exists)
            client = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false"]  # never with a connection of its own
            more = house.command("ann+dev", "echo up; cat", key=key, options=[*shared, *client])
            visits += [house.start(more) for _ in range(9)]
            for visit in visits:
                assert visit.stdout is not None
                assert visit.stdout.readline() == b"up\n"
            refused = house.run(more)
            assert refused.code == 255
            assert b"up" not in refused.out
        finally:
            for visit in reversed(visits):
                visit.communicate(b"", timeout=20)
    assert [visit.returncode for visit in visits] == [0] * 10


def test_work_over_ssh_counts_as_use(house: SshHouse, dev: Workload, key: Path) -> None:
    house.used.clear()
    house.ssh("ann+dev", "true", key=key)
    assert house.used == {dev.id}


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
