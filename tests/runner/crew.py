"""The workers of a run: begun, given files one after the other, heard, and ended."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.runner import apart
from tests.runner.bundles import Bundle, Line
from tests.runner.runs import Run

ENDING_SECONDS = 120.0  # to tear down what many files shared
LISTENING_SECONDS = 5.0
MOST_SAID = 2000  # of what a lost worker wrote

Work = Callable[[Connection, int, Path], int]
"""What a worker does: with the line to us, the open file for what it prints, and a folder for all else."""


@dataclass(frozen=True)
class Begun:
    test: int


@dataclass(frozen=True)
class Reported:
    report: Any


@dataclass(frozen=True)
class Done:
    """With a whole bundle."""

    seconds: float
    cpu: float
    bundle: Bundle | None = None


@dataclass(frozen=True)
class Lost:
    """A worker ended by itself, at this test."""

    test: int
    why: str


@dataclass(frozen=True)
class Busy:
    """Nothing new; this is what workers are at."""

    bundles: tuple[Bundle, ...]


Heard = Begun | Reported | Done | Lost | Busy


@dataclass
class Worker:
    pid: int
    line: Connection
    said: Path
    outside: bool
    bundle: Bundle | None = None
    begun: list[int] = field(default_factory=list)
    is_ending: bool = False

    def give(self, bundle: Bundle | None) -> None:
        """Without a bundle it tears down what its files shared, and ends."""
        self.bundle, self.is_ending = bundle, bundle is None
        self.line.send(bundle.tests if bundle else None)

    def heard(self, heard: Heard) -> Heard:
        if isinstance(heard, Begun):
            self.begun.append(heard.test)
        elif isinstance(heard, Done):
            heard, self.bundle = replace(heard, bundle=self.bundle), None
        return heard

    def ended(self) -> int:
        self.line.close()
        return apart.code_of(os.waitpid(self.pid, 0)[1])


class Crew:
    def __init__(self, run: Run, work: Work, keep: tuple[Path, ...]) -> None:
        self._run, self._work, self._keep = run, work, keep
        self._numbers = itertools.count(1)
        self.is_apart = apart.is_possible(self._place())

    def do(self, bundles: Sequence[Bundle], count: int) -> Iterator[Heard]:
        """All of them, by at most so many workers. Whoever stops listening has ended them."""
        line, workers = Line(bundles), list[Worker]()
        try:
            while len(workers) < min(count, len(bundles)):
                workers.append(self._begin(outside=not workers and any(bundle.outside for bundle in bundles)))
            while workers:
                self._feed(line, workers)
                yield from self._listen(line, workers)
        finally:
            _stop(workers)

    def _place(self, *, outside: bool = False) -> apart.Place:
        folder = self._run.folder / str(next(self._numbers))
        folder.mkdir(mode=0o711)
        return apart.Place(folder, self._run.name, self._keep, outside)

    def _begin(self, *, outside: bool) -> Worker:
        place, (ours, theirs) = self._place(outside=outside), Pipe()
        said = place.folder.with_suffix(".log")
        folder = Path("/tmp") if self.is_apart else place.folder  # there it is its own
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        pid = apart.start(partial(self._work, theirs, file, folder), place if self.is_apart else None)
        os.close(file)
        theirs.close()
        return Worker(pid, ours, said, outside or not self.is_apart)

    def _feed(self, line: Line, workers: list[Worker]) -> None:
        for worker in workers:
            if worker.bundle is None and not worker.is_ending:
                worker.give(line.next(outside=worker.outside))

    def _listen(self, line: Line, workers: list[Worker]) -> Iterator[Heard]:
        ready = wait([worker.line for worker in workers], timeout=LISTENING_SECONDS)
        for worker in [worker for worker in workers if worker.line in ready]:
            try:
                heard = worker.line.recv()
            except (EOFError, ConnectionResetError):
                workers.remove(worker)
                code = worker.ended()
                if not worker.is_ending or code != 0:
                    yield self._lose(worker, code, line, workers)
                continue
            yield worker.heard(heard)
        yield Busy(tuple(worker.bundle for worker in workers if worker.bundle))

    def _lose(self, worker: Worker, code: int, line: Line, workers: list[Worker]) -> Lost:
        """What it had not begun is for another."""
        written = worker.said.read_text(errors="replace")[-MOST_SAID:] if worker.said.exists() else ""
        why = f"the worker that ran it ended with {code}\n{written}"
        if not worker.begun:
            raise RuntimeError(f"a worker could not begin: {why}")
        if worker.bundle is not None:
            left = tuple(test for test in worker.bundle.tests if test not in worker.begun)
            if left:
                line.back(replace(worker.bundle, tests=left))
        if len(line):
            workers.append(self._begin(outside=worker.outside and self.is_apart))
        return Lost(worker.begun[-1], why)


def _stop(workers: Sequence[Worker]) -> None:
    """They may tear down what they made; whoever takes too long ends at once, with all it started."""
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
    deadline = time.monotonic() + ENDING_SECONDS
    for worker in workers:
        worker.line.close()
        while os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(worker.pid, signal.SIGKILL)
            time.sleep(0.05)
