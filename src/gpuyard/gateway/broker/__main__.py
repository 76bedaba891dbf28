"""`python -m gpuyard.gateway.broker --data DATA`: one broker for one data folder, until it is told to end."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import time

from gpuyard.engines.inside.loop import Loop
from gpuyard.gateway.broker.desk import Desk

SOCKET, LOCK = "broker.sock", "broker.lock"
ALREADY = 3  # exit code: another one serves this folder
_CREDENTIALS = struct.Struct("3i")
_CALM_SECONDS, _BUSY_SECONDS, _LOOK_SECONDS = 1.0, 0.02, 2.0
_MOST_FILES = 1 << 16


class Broker:
    def __init__(self, data: str) -> None:
        self._run = os.path.join(data, "run")
        self._loop = Loop("yard broker")
        self._desk = Desk(self._loop, data)
        self._sock: socket.socket | None = None
        self._place: tuple[int, int] | None = None
        self._look_at = self._sweep_at = 0.0
        self._is_told_to_end = False

    def serve(self) -> None:
        self._listen_to_signals()
        while not self._is_told_to_end:
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_SECONDS
                self._keep_open()
            self._loop.turn(_BUSY_SECONDS if self._desk.is_busy() else _CALM_SECONDS)
            self._sweep(time.monotonic())
        self._desk.terminals.close()

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at:
            self._sweep_at = now + _BUSY_SECONDS
            self._loop.guard(lambda: self._desk.sweep(now))

    def _listen_to_signals(self) -> None:
        bell, mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._loop.watch(bell, lambda: _empty(bell))

    def _end(self, number: int, frame: object) -> None:
        self._is_told_to_end = True

    def _keep_open(self) -> None:
        """Whoever removed the socket gets it back; with the folder itself gone there is nobody left to serve."""
        try:
            found = os.lstat(os.path.join(self._run, SOCKET))
            if self._place == (found.st_dev, found.st_ino):
                return
        except FileNotFoundError:
            if not os.path.isdir(self._run):
                self._is_told_to_end = True
                return
        self._open()

    def _open(self) -> None:
        """Under another name first: whoever finds the socket finds somebody listening."""
        if self._sock is not None:
            self._loop.forget(self._sock.fileno())
            self._sock.close()
        folder = os.open(self._run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        part = f".{SOCKET}.{os.getpid()}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        before = os.umask(0o177)
        try:
            sock.bind(f"/proc/self/fd/{folder}/{part}")  # through the descriptor, the address is short
            sock.listen(256)
            os.rename(part, SOCKET, src_dir_fd=folder, dst_dir_fd=folder)
            found = os.stat(SOCKET, dir_fd=folder, follow_symlinks=False)
        finally:
            os.umask(before)
            os.close(folder)
        self._sock, self._place = sock, (found.st_dev, found.st_ino)
        self._loop.watch(sock.fileno(), self._let_in)

    def _let_in(self) -> None:
        assert self._sock is not None
        try:
            sock, _ = self._sock.accept()
        except OSError:  # it has gone again, or there is no number left for it
            return
        _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if uid not in (0, os.geteuid()):
            sock.close()
            return
        self._desk.receive(sock)


def _empty(bell: int) -> None:
    os.read(bell, 4096)


def _take_lock(data: str) -> bool:
    """Held until the process ends; the file says which one it is."""
    os.makedirs(os.path.join(data, "run"), mode=0o700, exist_ok=True)
    fd = os.open(os.path.join(data, "run", LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    os.ftruncate(fd, 0)
    os.write(fd, str(os.getpid()).encode())
    return True


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] != "--data":
        sys.stderr.write("usage: python -m gpuyard.gateway.broker --data FOLDER\n")
        return 2
    data = os.path.realpath(arguments[1])
    if not _take_lock(data):
        return ALREADY
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    Broker(data).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
