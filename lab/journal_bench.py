"""What it costs to write down every decision, and whether all of them can be made once more, to the last bit.

Real control and a real store on disk, virtual machines, a clock moved by hand: the same days twice, with a journal and
without one. A decision is a placement, an eviction, or a reason told to one that waits.
"""

from __future__ import annotations

import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from gpuyard.control.job_keys import JobKeys
from gpuyard.control.loop import Control
from gpuyard.domain.people import Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import State, StoryEvent, Workload
from gpuyard.engines.simulated import SimulatedEngine, virtual_nodes
from gpuyard.journal.events import Event
from gpuyard.journal.folder import Bounds, segments
from gpuyard.journal.recorder import Recorder
from gpuyard.journal.replay import Asked, Report, read_segment, replay
from gpuyard.settings import ControlSettings
from gpuyard.store import people as people_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from lab.lines import Line, percentile
from lab.stage import a_job

CARDS = 8
GROUPS = ("vision", "speech", "robots", "theory")
EVENTS = 100_000
TURN = 20  # passes with a journal, beside as many without one
BOUNDS = Bounds(bytes=1 << 40, days=0, segment_bytes=2 << 20, segment_seconds=1e12)
SHAPES = ((1, 1),) * 8 + ((2, 1),) * 4 + ((4, 1),) * 3 + ((8, 1),) * 2 + ((1, 4), (8, 4))  # cards, replicas
SETTINGS = ControlSettings(full_pass_seconds=30.0, sweep_seconds=600.0, audit_seconds=600.0)


class _AtOnce(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass(frozen=True)
class Cost:
    control: float  # seconds of the thread that decides
    all: float  # of the whole process
    steps: int


class Days:
    """Work comes by chance, always the same; now and then a machine goes away and comes back."""

    def __init__(self, folder: Path, nodes: int, jobs: int, live: int, recorder: Recorder | None) -> None:
        self._dice = random.Random(7)
        self._jobs = jobs
        self._live = live  # no more come while so many wait or run
        self._sent = 0
        self.now = 1_000_000.0
        self._database = Database.open(f"sqlite:///{folder / 'gpuyard.db'}")
        self._people(nodes * CARDS)
        self._lock = ControlLock.acquire(self._database, "lab")
        self._engine = SimulatedEngine(virtual_nodes(nodes, CARDS), lambda: self.now)
        self._control = Control(
            self._database,
            self._lock,
            self._engine,
            _AtOnce(),
            lambda: self.now,
            SETTINGS,
            lambda owner, digest: Path(digest),
            JobKeys(b"lab"),
            recorder,
        )

    @property
    def over(self) -> bool:
        return self._sent >= self._jobs and not self._control.picture.live

    def run(self, most: float = inf) -> Cost:
        """So many passes, or until everything has come to its end."""
        steps, control, begun = 0, 0.0, time.process_time()
        while steps < most and not self.over:
            self._come()
            self.now += self._dice.choice((0.5, 2.0, 5.0, 20.0))
            if self._dice.random() < 0.005:
                self._engine.faults.lost_nodes ^= {f"node-{self._dice.randrange(4):04d}"}
            before = time.thread_time()
            self._control.step()
            control += time.thread_time() - before
            steps += 1
        return Cost(control, time.process_time() - begun, steps)

    def close(self) -> None:
        self._engine.close()
        self._lock.release()
        self._database.close()

    def _come(self) -> None:
        if self._sent >= self._jobs or len(self._control.picture.live) >= self._live:
            return
        with self._database.write() as conn:
            entries = [self._entry() for _ in range(min(self._dice.choice((0, 1, 1, 3, 10)), self._jobs - self._sent))]
            if entries:
                workload_rows.insert_many(conn, entries)

    def _entry(self) -> tuple[Workload, list[StoryEvent]]:
        dice, group = self._dice, self._dice.choice(GROUPS)
        cards, replicas = dice.choice(SHAPES)
        job = a_job(
            f"j{self._sent:09d}",
            seconds=dice.choice((20, 60, 300, 1200)),
            cards=cards,
            replicas=replicas,
            group=group,
            priority=dice.choice((500, 500, 500, 700)),
            preemptible=dice.random() < 0.3,
            name=f"train-{dice.randrange(50)}",
        )
        self._sent += 1
        spec = replace(job.spec, max_seconds=3600.0 if dice.random() < 0.3 else None)
        job = replace(job, submitted_at=self.now, spec=spec, owner=f"u-{group}")
        return job, [StoryEvent(self.now, because(Code.SUBMITTED, by=job.owner), State.QUEUED)]

    def _people(self, cards: int) -> None:
        with self._database.write() as conn:
            for name in GROUPS:
                quota = Quota(name, "nvidia", guaranteed=cards * 1000 // 8)
                people_rows.create_group(conn, Group(name), 0.0)
                people_rows.set_quota(conn, quota)
                user = User(f"u-{name}", memberships=(Membership(name, Role.MEMBER),))
                people_rows.create_user(conn, user, None, 0.0)


class Timed(Recorder):
    """Tells what it costs, thread by thread: a difference of two whole runs would mostly be chance."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "lab", BOUNDS)
        self.adding = self.handing = self.writing = 0.0
        append = self.add

        def add(event: Event) -> None:
            before = time.thread_time_ns()
            append(event)
            self.adding += (time.thread_time_ns() - before) * 1e-9

        self.add = add

    def hand_over(self, now: float) -> None:
        before = time.thread_time()
        super().hand_over(now)
        self.handing += time.thread_time() - before

    def run(self) -> None:
        super().run()
        self.writing = time.thread_time()


def _days(nodes: int, jobs: int, live: int, recorder: Recorder | None) -> Cost:
    with tempfile.TemporaryDirectory(prefix="yard-days-") as folder:
        if recorder is not None:
            recorder.start()
        with closing(Days(Path(folder), nodes, jobs, live, recorder)) as days:
            cost = days.run()
        begun = time.process_time()
        if recorder is not None:
            recorder.close()
        return replace(cost, all=cost.all + time.process_time() - begun)


def recording() -> list[Line]:
    """What the thread that decides spends on it, by its own clock, and what the one that writes does beside it."""
    with tempfile.TemporaryDirectory(prefix="yard-journal-") as folder:
        journal = Path(folder) / "journal"
        recorder = Timed(journal)
        cost = _days(60, 2000, 300, recorder)
        size = sum(segment.size for segment in segments(journal))
        report = replay(journal, Asked())
    decisions, starts = _decisions(report), report.placements + report.evictions
    own, beside = recorder.adding + recorder.handing, recorder.writing / cost.control
    return [
        Line("recording: part of a cycle, in the thread that decides", 100 * own / cost.control, 3, "%"),
        Line("  beside it, in the thread that writes (for information)", 100 * beside, 10, "%"),
        Line(f"  a decision takes, of {decisions:,}", size / decisions, 1000, "bytes"),
        Line(f"  the same, if only {starts:,} starts and preemptions are counted", size / starts, 1000, "bytes"),
        Line(f"  a cycle takes, of {report.cycles:,} (for information)", size / report.cycles, 10_000, "bytes"),
        Line("  a cycle takes (for information)", 1000 * cost.control / cost.steps, 1000, "ms"),
    ]


def recording_beside() -> list[Line]:
    """The same passes with a journal and without one, by turns, so that both meet the same machine. Hooks see only what
    they are put around; this sees all but the collection of garbage."""
    with tempfile.TemporaryDirectory(prefix="yard-beside-") as folder:
        recorder = Recorder(Path(folder) / "journal", "lab", BOUNDS)
        recorder.start()
        places = [Path(folder) / name for name in ("with", "without")]
        for place in places:
            place.mkdir()
        with (
            closing(Days(places[0], 60, 2000, 300, recorder)) as written,
            closing(Days(places[1], 60, 2000, 300, None)) as unwritten,
        ):
            pairs = list(_by_turns(written, unwritten))
        recorder.close()
    more = [100 * (one / other - 1) for one, other in pairs]
    half = f"{percentile(more, 0.25):.1f} to {percentile(more, 0.75):.1f} %"
    mean = 100 * (sum(one for one, _ in pairs) / sum(other for _, other in pairs) - 1)
    return [
        Line("recording: passes beside the same without a journal, median", statistics.median(more), 3, "% more"),
        Line(f"  of {len(more)} times {TURN} passes half took {half}; all", mean, 100, "% more"),
    ]


def _by_turns(written: Days, unwritten: Days) -> Iterator[tuple[float, float]]:
    """Seconds of so many passes with and without, pass by pass; the one that begins changes every time.

    Garbage is collected in between: else whichever thread happens to be at work would pay for all of them."""
    both, steps = (written, unwritten), 0
    spent = dict.fromkeys(both, 0.0)
    gc.disable()
    try:
        while not any(days.over for days in both):
            for days in both[:: 1 if steps % 2 else -1]:
                spent[days] += days.run(1).control
            steps += 1
            if steps % TURN == 0:
                yield spent[written], spent[unwritten]
                spent = dict.fromkeys(both, 0.0)
                gc.collect()
    finally:
        gc.enable()
    if not all(days.over for days in both):
        raise RuntimeError("with a journal other passes were made than without one")


def replaying() -> list[Line]:
    """Events are what the books were told: work that was put or removed, machines, past use, new books, decisions."""
    with tempfile.TemporaryDirectory(prefix="yard-journal-") as folder:
        journal = Path(folder) / "journal"
        _days(45, 22_000, 60, Recorder(journal, "lab", BOUNDS))
        events = sum(len(frame.events) for segment in segments(journal) for frame in read_segment(segment.path, []))
        begun = time.perf_counter()
        report = replay(journal, Asked())
        seconds = time.perf_counter() - begun
    return [
        Line("events that were recorded and replayed", events, EVENTS, "events", at_most=False),
        Line(f"  decisions that differ, of {_decisions(report)}", report.differing, 0, ""),
        Line("  unreadable places", len(report.unreadable), 0, ""),
        Line("  events a second (for information)", events / seconds, 100, "1/s", at_most=False),
    ]


def _decisions(report: Report) -> int:
    return report.placements + report.evictions + report.reasons


MEASURES = (recording, recording_beside, replaying)
