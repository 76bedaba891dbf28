"""`python -m tests.halves`: all tests, in two halves at the same time where they can be kept apart, else one by one.

    machine   what starts containers, or needs much of the machine: where it is, with the machine's own network; and as
              much of the rest as makes both halves take equally long
    apart     everything else: in namespaces of its own, so that neither half sees the other's processes or ports

What is given is passed on to both, and PYTEST_ADDOPTS reaches both. The first half is shown as it goes, the second when
both are over, and then how each ended. An interrupt ends both.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MACHINE, APART = "machine", "apart"
EVENS_OUT = frozenset({"journal", "scheduling", "store"})
MACHINES_FOLDERS = frozenset({"attacks", "end_to_end", "engines", "faults", "images"}) | EVENS_OUT
CONTAINERS = re.compile(r"^from tests\.(images|engines\.containers)\b", re.MULTILINE)
UNSHARE = ("unshare", "--pid", "--fork", "--mount", "--mount-proc", "--net", "--kill-child")
AS_FIRST_PROCESS = "--as-first-process"
WANTS_ONE_RUN = ("--junit", "--basetemp", "--pdb", "--trace")  # one place for the whole, or a person who answers
ENDING_SECONDS = 120.0  # to tear down, after an interrupt
NO_TESTS = 5  # pytest's own word for it: the tests that were asked for may all be in the other half
INTERRUPTED = 2
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UP_AND_RUNNING, SET_FLAGS = 0x41, 0x8914  # of an interface: IFF_UP | IFF_RUNNING, SIOCSIFFLAGS


@functools.cache
def half_of(file: Path) -> str:
    """What is new is apart, unless it uses the tests' containers."""
    if file.relative_to(HERE).parts[0] in MACHINES_FOLDERS:
        return MACHINE
    return MACHINE if CONTAINERS.search(file.read_text(encoding="utf-8")) else APART


class Half:
    """One run of pytest, in a process group of its own. What it says is kept, and shown meanwhile if wished."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  read until the very end
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True
        )
        self._shown = 0

    def show(self) -> None:
        """What it has said since."""
        while more := os.pread(self.said.fileno(), 1 << 16, self._shown):
            self._shown += len(more)
            sys.stdout.buffer.write(more)
        sys.stdout.flush()

    def interrupt(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> None:
        """Tests have processes in groups of their own: those of namespaces end with the first one there."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def summary(self) -> str:
        """Its last line."""
        size = os.fstat(self.said.fileno()).st_size
        tail = os.pread(self.said.fileno(), 4096, max(0, size - 4096)).decode(errors="replace")
        lines = [line.strip("= ") for line in COLOUR.sub("", tail).splitlines()]
        return next(filter(None, reversed(lines)), f"ended with {self.process.returncode}")


def main(words: list[str]) -> int:
    if words[:1] == [AS_FIRST_PROCESS]:
        return as_first_process(words[1:])
    pytest = [sys.executable, "-m", "pytest", *words]
    asked = " ".join([*words, os.environ.get("PYTEST_ADDOPTS", "")])
    if any(option in asked for option in WANTS_ONE_RUN) or not can_be_apart():
        os.execv(sys.executable, pytest)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    pytest += ["--color=yes"] if sys.stdout.isatty() else []
    with tempfile.TemporaryDirectory(prefix="yard-", ignore_cleanup_errors=True) as folder:
        return both(
            Half(MACHINE, [*pytest, f"--half={MACHINE}", *places(Path(folder), MACHINE)]),
            Half(APART, in_namespaces([*pytest, f"--half={APART}", *places(Path(folder), APART)])),
        )


def places(folder: Path, half: str) -> list[str]:
    """Where it may write without meeting the other, or what an earlier run has left."""
    return [f"--basetemp={folder / half[0]}", "-o", f"cache_dir=.pytest_cache/{half}"]


def both(first: Half, second: Half) -> int:
    halves, stopped = (first, second), False
    try:
        follow(first, second)
    except KeyboardInterrupt:
        stopped = True
        stop(halves)
    for half in halves:
        half.show()
    print()
    for half in halves:
        print(f"{half.name}: {half.summary()}")
    return INTERRUPTED if stopped else verdict([half.process.returncode for half in halves])


def follow(shown: Half, other: Half) -> None:
    while shown.process.poll() is None:
        shown.show()
        with contextlib.suppress(subprocess.TimeoutExpired):
            shown.process.wait(0.2)
    shown.show()
    if other.process.poll() is None:
        print(f"\n{other.name}: still at it ...", flush=True)
    other.process.wait()


def stop(halves: tuple[Half, ...]) -> None:
    """They may tear down what they made; whoever is asked twice ends at once."""
    try:
        for half in halves:
            half.interrupt()
        for half in halves:
            with contextlib.suppress(subprocess.TimeoutExpired):
                half.process.wait(ENDING_SECONDS)
    except KeyboardInterrupt:
        pass
    finally:
        for half in halves:
            half.end()


def verdict(codes: list[int]) -> int:
    """Good when both are; a half without any test of those that were asked for is none."""
    told = [code for code in codes if code != NO_TESTS]
    return next((code for code in told if code != 0), 0) if told else NO_TESTS


# --- apart --------------------------------------------------------------------------------------------------------


def can_be_apart() -> bool:
    trial = in_namespaces(["true"])
    try:
        return os.geteuid() == 0 and subprocess.run(trial, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def in_namespaces(command: list[str]) -> list[str]:
    return [*UNSHARE, sys.executable, "-m", "tests.halves", AS_FIRST_PROCESS, *command]


def as_first_process(command: list[str]) -> int:
    """Runs it with a loopback, and takes in every process that loses its parent, as the first one must."""
    with socket.socket() as asking:
        fcntl.ioctl(asking, SET_FLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
    signal.signal(signal.SIGINT, lambda number, frame: None)  # the tests get it too, and end by themselves
    wanted = os.posix_spawnp(command[0], command, os.environ)
    for pid, status in _ended():
        if pid == wanted:
            return os.waitstatus_to_exitcode(status)
    raise AssertionError("it was never waited for")


def _ended() -> Iterator[tuple[int, int]]:
    while True:
        yield os.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
