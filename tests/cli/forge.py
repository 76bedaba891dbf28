"""A Python that has the libraries loaded already, and begins each `yard` from there: the same program in a process of
its own, without the largest part of its start. What is gpuyard's own is loaded anew each time, since it looks up while
it is loaded what a person may have chosen, such as the language. Tests of the start itself begin it as people do.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

PROJECT = Path(__file__).parents[2]
COMMAND = "gpuyard.cli.main"
MOST_ASKED = 1 << 17  # bytes of one request: arguments and environment
MOST_TYPED = 1 << 16  # bytes for its standard input, which nobody waits to be read


@functools.cache
def forge(pid: int) -> Forge:
    """One for each process of tests; it ends with it."""
    return Forge()


class Forge:
    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = os.environ | {"PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'src'}"}
        command = [sys.executable, "-W", "error", "-m", "tests.cli.forge", str(theirs.fileno())]
        self._process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()

    def run(
        self, arguments: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with `capture_output`."""
        (typed, type_in), pipes, (told, tell) = os.pipe(), (os.pipe(), os.pipe()), socket.socketpair()
        asked = json.dumps({"arguments": list(arguments), "env": dict(env), "cwd": os.getcwd()}).encode()
        theirs = [typed, pipes[0][1], pipes[1][1], tell.fileno()]
        socket.send_fds(self._line, [asked], theirs)
        for end in theirs[:3]:
            os.close(end)
        tell.close()
        assert len(stdin.encode()) < MOST_TYPED
        with contextlib.suppress(BrokenPipeError), os.fdopen(type_in, "wb") as typing:
            typing.write(stdin.encode())
        with told:
            said = _read_all([pipe[0] for pipe in pipes], told, time.monotonic() + timeout, timeout)
            code = int(told.recv(32))
        return subprocess.CompletedProcess([COMMAND, *arguments], code, *said)


def _read_all(pipes: list[int], told: socket.socket, until: float, timeout: float) -> list[str]:
    """To the end of both; who has written nothing more by then is killed."""
    pid, said = int(told.recv(32)), dict.fromkeys(pipes, b"")
    with selectors.DefaultSelector() as ready:
        for pipe in pipes:
            ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map() and time.monotonic() < until:
            for key, _ in ready.select(max(0.0, until - time.monotonic())):
                piece = os.read(key.fd, 1 << 16)
                said[key.fd] += piece
                if not piece:
                    ready.unregister(key.fd)
        is_late = bool(ready.get_map())
    for pipe in pipes:
        os.close(pipe)
    if is_late:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired([COMMAND], timeout, *said.values())
    return [text.decode().replace("\r\n", "\n") for text in said.values()]


# --- in the process that has the libraries ------------------------------------------------------------------------


def serve(line: socket.socket) -> None:
    __import__(COMMAND)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("gpuyard", "tests")]:
        del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who watch
    while True:
        asked, ends, _, _ = socket.recv_fds(line, MOST_ASKED, 4)
        if not asked:
            return
        if os.fork() == 0:
            line.close()
            _watch(json.loads(asked), ends)
        for end in ends:
            os.close(end)


def _watch(asked: Mapping[str, object], ends: Sequence[int]) -> NoReturn:
    """Tells who it is that works, and then how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    teller = socket.socket(fileno=ends[3])
    pid = os.fork()
    if pid == 0:
        teller.close()
        _become(asked, ends[:3])
    for end in ends[:3]:
        os.close(end)
    teller.send(str(pid).ljust(32).encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    teller.send(str(code).ljust(32).encode())
    os._exit(0)


def _become(asked: Mapping[str, object], ends: Sequence[int]) -> None:
    """What Python does at its start, and then the command, as `python -m` runs it."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    os.environ.update(dict(asked["env"]))  # type: ignore[call-overload]
    time.tzset()
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    sys.argv[1:] = list(asked["arguments"])  # type: ignore[call-overload]
    try:
        runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
