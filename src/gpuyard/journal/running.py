"""Replays in a process of their own: they take a whole processor for as long as they last, and the server must not
wait for them. One at a time; the newest few answers are kept for whoever asked.

The process ends with the server: it reads from us, and ends when nobody is left who could write.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.reasons import Code, because

log = logging.getLogger(__name__)

KEPT = 8  # answers
MOST_SECONDS = 3600.0
FORGOTTEN_SECONDS = 300.0  # one that nobody has asked after for so long makes way for the next
COMMAND = (sys.executable, "-m", "gpuyard.journal.main")


@dataclass
class Run:
    """`result` is there when it is done; `problem` when it could not be."""

    id: str
    by: str
    what: str
    process: subprocess.Popen[str]
    done: int = 0
    of: int = 0
    result: Any = None
    problem: str = ""
    over: bool = False
    asked_at: float = field(default_factory=time.monotonic)


class Runs:
    """Asked from several threads."""

    def __init__(self, forgotten_after: float = FORGOTTEN_SECONDS) -> None:
        self._forgotten_after = forgotten_after
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._damaged: set[str] = set()
        self._lock = threading.Lock()

    def start(self, by: str, what: str, request: Mapping[str, Any]) -> Run:
        with self._lock:
            self._end_forgotten()
            if any(not run.over for run in self._runs.values()):
                raise Conflict(because(Code.TOO_MANY_AT_ONCE, what="replays", limit=1))
            process = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            run = Run(secrets.token_hex(8), by, what, process)
            self._runs[run.id] = run
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        threading.Thread(target=self._attend, args=(run, {"what": what, **request}), daemon=True).start()
        return run

    def _end_forgotten(self) -> None:
        """Whoever asked for it was killed, or has lost its id: nobody else could call it off."""
        for run in self._runs.values():
            if not run.over and time.monotonic() - run.asked_at >= self._forgotten_after:
                log.warning("a replay that nobody asked after any more was ended")
                run.process.kill()
                run.process.wait()
                run.over = True

    def get(self, id: str) -> Run:
        run = self._runs.get(id)
        if run is None:
            raise NotFound(because(Code.NOT_FOUND, what="replay", name=id))
        run.asked_at = time.monotonic()
        return run

    def cancel(self, id: str) -> None:
        run = self.get(id)
        if not run.over:
            run.process.kill()

    def damaged(self) -> list[str]:
        """Segments that could not be read to their end when they were last read here. Nobody looks for them: to read
        a whole journal takes long."""
        with self._lock:
            return sorted(self._damaged)

    def close(self) -> None:
        for run in list(self._runs.values()):
            if not run.over:
                run.process.kill()

    def _attend(self, run: Run, request: Mapping[str, Any]) -> None:
        process = run.process
        limit = threading.Timer(MOST_SECONDS, process.kill)
        limit.daemon = True
        limit.start()
        try:
            self._listen(run, request)
        except (OSError, ValueError) as problem:
            run.problem = str(problem)
        finally:
            limit.cancel()
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was not written is lost: it was ended before it read that
                        pipe.close()
            run.over = True

    def _listen(self, run: Run, request: Mapping[str, Any]) -> None:
        process = run.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answered = False
        for line in process.stdout:
            told = json.loads(line)
            if "result" in told:
                run.result, answered = told["result"], True
                self._learn(told["read"], run.result["unreadable"])
                break
            run.done, run.of = told["done"], told["of"]
        if not answered:
            said = process.stderr.read().strip().splitlines()
            run.problem = said[-1] if said else "the replay was ended before it was done"
            log.error("a replay of the journal failed: %s", run.problem)

    def _learn(self, read: Sequence[str], unreadable: Sequence[Mapping[str, Any]]) -> None:
        with self._lock:
            self._damaged.difference_update(read)  # one may have been put right meanwhile
            self._damaged.update(one["segment"] for one in unreadable if not one["torn"])
