"""Writes the journal. Control adds what happens and hands it over; a thread of its own spells, packs and writes it.

Nothing here ever holds control up. When the thread cannot keep up, or the disk takes nothing more, what happens
meanwhile is lost to the journal, and a new segment begins with everything as it is then; it says how many cycles are
missing before it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from gpuyard.journal import folder as place
from gpuyard.journal.events import Anew, Event
from gpuyard.journal.folder import Bounds
from gpuyard.journal.frames import SegmentWriter
from gpuyard.journal.plain import to_plain
from gpuyard.journal.reading import Header
from gpuyard.journal.spelling import ATTEMPT_FIELDS, WORKLOAD_FIELDS, Speller

log = logging.getLogger(__name__)

FORMAT = 1
MOST_EVENTS = 200_000  # handed over and not yet written
TRY_AGAIN_SECONDS = 30.0  # after a write failed
LOOK_SECONDS = 1.0
CLOSE_SECONDS = 5.0


class Batch(NamedTuple):
    """What happened in one cycle, and how many cycles were dropped before it."""

    now: float
    events: list[Event]
    dropped: int


class Recorder:
    """`add`, `wants_all` and `hand_over` belong to control's thread, `run` and what it calls to the writer's. Every
    number is changed by one of them only."""

    def __init__(self, folder: Path, version: str, bounds: Bounds, *, try_again: float = TRY_AGAIN_SECONDS) -> None:
        self._folder = folder
        self._version = version
        self._bounds = bounds
        self._try_again = try_again
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self.problem = ""  # why nothing is written now
        # Control's.
        self._pending: list[Event] = []
        self.add: Callable[[Event], None] = self._pending.append
        self._deaf = True  # until everything is told anew
        self._dropped = self._handed = self._granted = 0
        # The writer's.
        self._wishes = self._done = self._unwritten = 0
        self._asked = False
        self._failed_at: float | None = None  # by the monotonic clock
        self._segment: SegmentWriter | None = None
        self._speller = Speller()
        self._begun = 0.0
        self._thread: threading.Thread | None = None

    # --- control's side -------------------------------------------------------------------------------------------

    @property
    def wants_all(self) -> bool:
        wanted = self._deaf or self._granted != self._wishes
        return wanted and self.behind < MOST_EVENTS // 2

    @property
    def behind(self) -> int:
        """Events that were handed over and are not written yet."""
        return self._handed - self._done

    def hand_over(self, now: float) -> None:
        """What was added since the last time, as one cycle."""
        if not self._pending:
            return
        events = self._pending.copy()
        self._pending.clear()
        if self._deaf or self._granted != self._wishes:
            beginning = _beginning(events)
            if beginning is not None:
                events = events[beginning:] if self._deaf else events
                self._granted, self._deaf = self._wishes, False
            elif self._deaf:
                self._dropped += 1
                return
        if self.behind > MOST_EVENTS:
            log.warning("the journal cannot keep up; what happens meanwhile is not in it")
            self._deaf = True
            self._dropped += 1
            return
        self._handed += len(events)
        self._queue.put(Batch(now, events, self._dropped))
        self._dropped = 0

    # --- the writer's side ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until `end` is called. What was handed over before that is still written."""
        while True:
            try:
                batch = self._queue.get(timeout=LOOK_SECONDS)
            except Empty:
                self._try_again_in_time()
                continue
            if batch is None:
                break
            self._take(batch)
            self._done += len(batch.events)
            self._try_again_in_time()
        try:
            self._finish()
        except OSError as problem:
            log.error("the journal was not ended in good order: %s", problem)

    def end(self) -> None:
        self._queue.put(None)

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, name="journal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """What was handed over is written, as far as that can be done soon."""
        self.end()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _ask_for_all(self) -> None:
        if not self._asked:
            self._asked = True
            self._wishes += 1

    def _try_again_in_time(self) -> None:
        if self._failed_at is not None and time.monotonic() - self._failed_at >= self._try_again:
            self._failed_at = None
            self._ask_for_all()

    def _take(self, batch: Batch) -> None:
        self._unwritten += batch.dropped
        try:
            self._write(batch.now, batch.events)
        except OSError as problem:
            self._fail(problem.strerror or str(problem))
        except Exception as problem:  # a fault of ours must cost the journal, never the platform
            log.exception("the journal cannot put into words what happened")
            self._fail(f"{type(problem).__name__}: {problem}")

    def _write(self, now: float, events: list[Event]) -> None:
        beginning = _beginning(events)
        if beginning is not None:
            if beginning:
                self._append(now, events[:beginning])
            self._begin(now)
            events = events[beginning:]
        self._append(now, events)
        segment = self._segment
        if segment is not None and (
            segment.size >= self._bounds.segment_bytes or now - self._begun >= self._bounds.segment_seconds
        ):
            self._ask_for_all()

    def _append(self, now: float, events: list[Event]) -> None:
        if self._segment is not None:
            self._segment.append([now, self._speller.spell(events)])
        else:
            self._unwritten += 1

    def _begin(self, now: float) -> None:
        self._asked = False
        self._finish()
        path = place.next_path(self._folder, now)
        place.require_room(self._folder, self._bounds)
        self._segment = segment = SegmentWriter(path)
        self._speller, self._begun = Speller(), now
        header = Header(FORMAT, self._version, now, self._unwritten, WORKLOAD_FIELDS, ATTEMPT_FIELDS)
        segment.append(to_plain(header))
        self._unwritten, self._failed_at = 0, None
        place.keep_bounds(self._folder, self._bounds, now)
        if self.problem:
            log.info("the journal is written again")
            self.problem = ""

    def _fail(self, problem: str) -> None:
        if self._segment is not None:
            self._segment.abandon()
            self._segment = None
        self._failed_at = time.monotonic()
        self._unwritten += 1
        if not self.problem:
            log.error("the journal is not written: %s; work goes on without it", problem)
        self.problem = problem

    def _finish(self) -> None:
        if self._segment is not None:
            segment, self._segment = self._segment, None
            segment.end()


def _beginning(events: list[Event]) -> int | None:
    """Where everything is told anew; the last time if more than once."""
    found = None
    for at, event in enumerate(events):
        if type(event) is Anew:
            found = at
    return found
