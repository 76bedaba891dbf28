"""`python -m gpuyard.gateway.main --data DATA`: the gateway of one data folder, until it is told to end.

This process only listens and watches; its workers, forked from it so that they share what is loaded, do the work. They
have sockets each on the same port, among which the kernel deals out visitors. One that hangs would keep its share of
them waiting for good, so each says now and then that it is alive, and one that no longer does is replaced.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import uvloop

from gpuyard.engines.listening import Listeners, close, listen
from gpuyard.gateway.config import GATEWAY_LOCK, GatewayConfig, read_config, read_note
from gpuyard.gateway.serving import Place, Pulse, serve

ALREADY = 3  # exit code: another one serves this folder
CANNOT_LISTEN = 4
MOST_WORKERS = 2  # two cores carry more than a network does; each costs memory
YOUNG_SECONDS = 2.0
END_SECONDS = 8.0
AGAIN_SECONDS = 0.05
LOOK_SECONDS = 1.0
SILENT_SECONDS = 20.0  # twenty times as long as a worker is silent when all is well
_log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gateway")
    parser.add_argument("--data", type=Path, required=True)
    data: Path = parser.parse_args(arguments).data.resolve()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    config = read_config(data)
    with only_gateway(config.run_folder) as lock:
        if lock is None:
            return ALREADY
        _raise_file_limit()
        try:
            listeners = listen_where_it_was(config, min(MOST_WORKERS, os.cpu_count() or 1))
        except OSError as error:
            _log.error("the gateway cannot listen on %s:%s: %s", config.host, config.port, error)
            return CANNOT_LISTEN
        return Master(config, listeners, lock).run()


@contextlib.contextmanager
def only_gateway(run: Path) -> Iterator[IO[str] | None]:
    """One for each data folder. The kernel drops the lock when the process dies, however it dies."""
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (run / GATEWAY_LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield lock


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def listen_where_it_was(config: GatewayConfig, count: int) -> list[Listeners]:
    """Pages that are open look for a gateway that was killed where it was. Its workers may take a moment to notice."""
    before = read_note(config.folder)
    if before is not None and config.port in (0, before.port):
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return listen(config.host, before.port, config.folder, count)
            time.sleep(AGAIN_SECONDS)
    return listen(config.host, config.port, config.folder, count)


class Master:
    """Starts the workers, starts again one that dies, and ends when told to, or when one ends by itself."""

    def __init__(self, config: GatewayConfig, listeners: list[Listeners], lock: IO[str]) -> None:
        self._config, self._listeners, self._lock = config, listeners, lock
        self._alive, self._end_of_life = os.pipe()
        self._workers: dict[int, tuple[int, float]] = {}  # by pid: which one, and since when
        self._pulses = [Pulse() for _ in listeners]
        self._is_told_to_end = False

    def run(self) -> int:
        gc.collect()
        gc.freeze()  # what is loaded stays, and is shared; it need not be looked through again and again
        gc.set_threshold(20_000, 20, 50)  # a request leaves no garbage behind that only this would find
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # waited for, with a look at the others in between
        for index in range(len(self._listeners)):
            self._start(index)
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                index, since = self._workers.pop(pid)
                self._bury(index, since, os.waitstatus_to_exitcode(status))
            else:
                self._replace_silent()
                signal.sigtimedwait({signal.SIGCHLD}, LOOK_SECONDS)
        return 0

    def _replace_silent(self) -> None:
        """Whoever hangs hears no SIGTERM either. That it ended is noticed as with any other."""
        for pid, (index, _) in self._workers.items():
            if self._pulses[index].silent_seconds > SILENT_SECONDS:
                _log.error("worker %s has not answered for %g s and is replaced", index, SILENT_SECONDS)
                os.kill(pid, signal.SIGKILL)

    def _told(self, number: int, frame: object) -> None:
        self._end()

    def _end(self) -> None:
        """Whoever has not ended in good time is ended."""
        if not self._is_told_to_end:
            self._is_told_to_end = True
            self._send(signal.SIGTERM)
            signal.signal(signal.SIGALRM, lambda number, frame: self._send(signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, END_SECONDS)

    def _send(self, number: int) -> None:
        for pid in list(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _bury(self, index: int, since: float, code: int) -> None:
        if code == 0:  # it had a reason, which is one for all
            self._end()
        if self._is_told_to_end:
            return
        _log.error("worker %s ended with code %s and is started again", index, code)
        if time.monotonic() - since < YOUNG_SECONDS:
            time.sleep(1.0)  # what cannot work need not be tried all the time
        if not self._is_told_to_end:
            self._start(index)

    def _start(self, index: int) -> None:
        master = os.getpid()
        self._pulses[index].beat()  # it has as long to begin
        pid = os.fork()
        if pid == 0:
            self._work(index, master)
        self._workers[pid] = (index, time.monotonic())
        if self._is_told_to_end:  # told in between
            self._send(signal.SIGTERM)

    def _work(self, index: int, master: int) -> NoReturn:
        code = 1
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.close(self._end_of_life)
            self._lock.close()  # it is the master's: with it gone, another gateway may begin
            for other in self._listeners[:index] + self._listeners[index + 1 :]:
                close(other)
            place = Place(
                self._listeners[index], self._alive, master, self._pulses[index], index == 0, len(self._listeners)
            )
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(self._config, place))
            code = 0
        except BaseException:
            _log.exception("worker %s cannot go on", index)
        finally:
            logging.shutdown()
            os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
