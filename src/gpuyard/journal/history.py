"""What really came, how long it really ran, and how the cluster changed: a journal read as arrivals for a rehearsal.

Work comes once, when it is submitted; what was at rest at the beginning, when it is wanted again. When it was paused,
it is so in the rehearsal. How long it has to run is what its attempts ran, without what an interruption cost them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from statistics import median

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import ENDED, Attempt, State, Verdict, Workload
from gpuyard.journal.events import Charged, Event, GroupsAre, NodesAre, PolicyIs, TypicalIs
from gpuyard.journal.folder import segments
from gpuyard.journal.replay import Frame, Unreadable, chosen, read_segment
from gpuyard.rehearsal import Arrival, Change, Habits, Rest, Timeline
from gpuyard.rehearsal.results import capacity_milli, cards_milli
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.snapshot import JobName, Person

MOST_SAVES = 10_000  # so many are looked at to learn how often work is saved


@dataclass
class Way:
    """From coming into the queue until being over, or at rest for good. Whatever its pauses, it is one way."""

    began: Workload  # as it came, or as it was at the beginning
    at: float
    attempts: dict[int, Attempt] = field(default_factory=dict)
    over_at: float | None = None
    rests: list[Rest] = field(default_factory=list)
    paused_at: float | None = None  # since then it is at rest

    def first_start(self) -> float | None:
        return next((a.started_at for _, a in sorted(self.attempts.items()) if a.started_at is not None), None)

    def wait(self, until: float) -> float:
        """Seconds until its first start, or so far, but for the time in which it was paused."""
        start = self.first_start()
        end = start if start is not None else self.over_at if self.over_at is not None else until
        return max(0.0, end - self.at - sum(rest.until - rest.at for rest in self.rests if rest.at < end))

    def preemptions(self) -> int:
        """Moves are among them."""
        return sum(_was_preempted(attempt) for attempt in self.attempts.values())

    def lost(self) -> float:
        """Seconds of work that were not saved when it had to make room, or went with its machine."""
        return sum(map(_lost, self.attempts.values()))

    def seconds(self, begin: float, until: float) -> float:
        """How long it ran from then on, less what interruptions cost."""
        return sum(_ran(attempt, self.over_at or until, begin) for attempt in self.attempts.values())


def _ran(attempt: Attempt, over: float, begin: float) -> float:
    if attempt.started_at is None:
        return 0.0
    end = attempt.ended_at if attempt.ended_at is not None else over
    if _was_preempted(attempt):
        end = attempt.saved_at if attempt.saved_at is not None else attempt.started_at
    return max(0.0, end - max(attempt.started_at, begin))


def _was_preempted(attempt: Attempt) -> bool:
    return attempt.ending is not None and attempt.ending.verdict is Verdict.PREEMPTED


def _lost(attempt: Attempt) -> float:
    if attempt.started_at is None or attempt.ended_at is None or attempt.ending is None:
        return 0.0
    if not _was_preempted(attempt) and attempt.ending.reason.code is not Code.NODE_LOST:
        return 0.0
    kept = attempt.saved_at if attempt.saved_at is not None else attempt.started_at
    return max(0.0, attempt.ended_at - kept)


@dataclass
class History:
    """Everything from `begin` until `until`."""

    begin: float = 0.0
    until: float = 0.0
    nodes: tuple[Node, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    past: dict[Person, PastUse] = field(default_factory=dict)
    run_times: dict[JobName, tuple[float, ...]] = field(default_factory=dict)
    typical: tuple[Typical, ...] = ()
    changes: list[Change] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)
    lost_cycles: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # segments, to their end or as far as they could be
    saves: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)  # as it was; what is true last is true until then

    def habits(self) -> Habits:
        """How often work was saved, and how long it took to start."""
        save_every = median(self.saves) if self.saves else None
        return Habits(
            keeps_work=False, save_every=save_every, start_seconds=median(self.starts) if self.starts else 0.0
        )

    def arrivals(self) -> tuple[list[Arrival], list[Arrival], int]:
        """Those that come, those that hold something at the beginning, and of how many the run time is a guess."""
        coming: list[Arrival] = []
        holding: list[Arrival] = []
        guessed = 0
        known = [way.seconds(self.begin, self.until) for way in self.ways if way.over_at is not None]
        usual = median(known) if known else 3600.0
        for number, way in enumerate(self.ways):
            # Where the clock was set back, one may be met again that was over.
            workload = replace(way.began, id=f"{way.began.id}#{number}")
            seconds = way.seconds(self.begin, self.until)
            patience = inf
            if way.over_at is None:  # it runs still: in no rehearsal does it end before now
                seconds += self.until - self.begin + 1.0
            if way.first_start() is None and not workload.holds_resources:
                guessed += way.over_at is None
                patience = inf if way.over_at is None else way.over_at - way.at
                seconds = self._guess(workload, usual)
            arrival = Arrival(workload, seconds, patience=patience, rests=tuple(way.rests))
            (holding if workload.holds_resources else coming).append(arrival)
        coming.sort(key=lambda arrival: arrival.workload.submitted_at)
        return coming, holding, guessed

    def _guess(self, workload: Workload, usual: float) -> float:
        learned = self.run_times.get((workload.owner, workload.spec.name), ())
        if learned:
            return median(learned)
        return min(usual, workload.spec.max_seconds or inf)


def read_history(folder: Path, since: float | None, until: float) -> History:
    if since is not None and since >= until:
        return History()
    reader = _Reader(History(until=until), since if since is not None else -inf)
    for segment in chosen(segments(folder), since, until):
        for frame in read_segment(segment.path, reader.history.unreadable):
            if frame.now > until:
                break
            reader.take(frame)
        else:
            reader.history.read.append(segment.path.name)
    return reader.done()


class _Reader:
    def __init__(self, history: History, since: float) -> None:
        self.history = history
        self._since = since
        self._begun = self._told = False
        self._open: dict[str, Way] = {}
        self._now: dict[str, Workload] = {}
        self._resting: set[str] = set()  # those of whom nothing else is known so far
        self._used = self._capacity = self._waiting = 0
        self._nodes: tuple[Node, ...] = ()
        self._groups: Mapping[str, Group] = {}

    def take(self, frame: Frame) -> None:
        if self._told and not self._begun and frame.now > self._since:
            self._begin(self._since)  # what happens in this cycle happens after that
        if frame.header is not None:
            self.history.lost_cycles += frame.header.lost_cycles if self._begun else 0
            self._forget_missing({event.id for event in frame.events if isinstance(event, Workload)}, frame.now)
        for event in frame.events:
            self._event(event, frame.now)
        self._told = True
        if not self._begun and frame.now >= self._since:
            self._begin(frame.now)
        elif self._begun:
            self._note(frame.now)

    def done(self) -> History:
        if not self._begun:  # nothing was written since: what lived then may live on
            self._begin(self._since)
        for way in self._open.values():
            way.over_at = way.paused_at
        self.history.ways += self._open.values()
        return self.history

    def _note(self, now: float) -> None:
        """How full the cluster was. Where the clock was set back, as at the latest moment so far."""
        timeline, there = self.history.timeline, (self._used, self._capacity, self._waiting)
        if not timeline.at:
            timeline.note(now, *there)
        elif there != (timeline.used[-1], timeline.capacity[-1], timeline.waiting[-1]):
            timeline.note(max(now, timeline.at[-1]), *there)

    def _begin(self, now: float) -> None:
        """From here on it counts. What is over is forgotten, what lives is as it is now."""
        self._begun = True
        self.history.begin = now
        self.history.ways.clear()
        self.history.changes.clear()
        for id in [id for id, way in self._open.items() if way.paused_at is not None]:
            del self._open[id], self._now[id]
            self._resting.add(id)
        for id, way in self._open.items():
            way.began = self._now[id]
            present = way.began.attempts_made if way.began.holds_resources else 0
            way.attempts = {number: one for number, one in way.attempts.items() if number == present}
            way.rests.clear()
        self._note(now)

    def _forget_missing(self, there: set[str], now: float) -> None:
        """A new segment tells of all that lives. What it does not know was over while nobody wrote."""
        for id in [id for id in self._open if id not in there]:
            self._close(id, now)

    def _event(self, event: Event, now: float) -> None:
        history, begun = self.history, self._begun
        match event:
            case Workload():
                self._put(event, now)
            case str():
                self._close(event, now)
            case Charged(past, run_times):
                if not begun:
                    history.past.update(past)
                    history.run_times.update(run_times)
            case NodesAre(nodes, renewed):
                if not begun:
                    history.nodes = nodes
                elif not renewed and nodes != self._nodes:
                    history.changes.append(Change(now, nodes=nodes))
                self._nodes, self._capacity = nodes, capacity_milli(nodes)
            case GroupsAre(groups):
                if not begun:
                    history.groups = groups
                elif groups != self._groups:
                    history.changes.append(Change(now, groups=groups))
                self._groups = groups
            case PolicyIs(policy):
                history.policy = policy
            case TypicalIs(typical):
                if not begun:
                    history.typical = typical
            case _:
                pass

    def _put(self, workload: Workload, now: float) -> None:
        id, way = workload.id, self._open.get(workload.id)
        if way is None:
            if workload.state in ENDED or workload.state is State.PAUSED:
                (self._resting.discard if workload.state in ENDED else self._resting.add)(id)
                return
            way = self._open[id] = self._new_way(workload, now)
        before = self._now.get(id)
        self._learn(before, workload)
        self._count(before, workload)
        self._now[id] = workload
        if workload.attempt is not None and self._counts(workload.attempt, way):
            way.attempts[workload.attempt.number] = workload.attempt
        if workload.state in ENDED:
            self._close(id, workload.ended_at or now)
        else:
            self._rest(way, workload, now)

    def _counts(self, attempt: Attempt, way: Way) -> bool:
        over = attempt.ended_at is not None and attempt.ended_at < self.history.begin
        return attempt.created_at >= way.at - 1e-6 and not over

    def _rest(self, way: Way, workload: Workload, now: float) -> None:
        """It comes to rest, or is wanted again. A dev environment may then ask for something else."""
        if workload.state is State.PAUSED:
            way.paused_at = now if way.paused_at is None else way.paused_at
        elif way.paused_at is not None:
            way.rests.append(Rest(way.paused_at, max(way.paused_at, now), workload.spec))
            way.paused_at = None

    def _new_way(self, workload: Workload, now: float) -> Way:
        """It came when it was submitted; one that was at rest when all this began comes now."""
        was_here = workload.id in self._resting or (workload.attempt is not None and not workload.holds_resources)
        self._resting.discard(workload.id)
        if not (was_here and self._begun):
            return Way(workload, workload.submitted_at)
        return Way(replace(workload, submitted_at=now), now)

    def _close(self, id: str, at: float) -> None:
        way = self._open.pop(id, None)
        self._count(self._now.pop(id, None), None)
        self._resting.discard(id)
        if way is not None:
            way.over_at = at if way.paused_at is None else way.paused_at
            self.history.ways.append(way)

    def _count(self, before: Workload | None, after: Workload | None) -> None:
        """Cards in use and workloads that wait."""
        for sign, workload in ((-1, before), (1, after)):
            if workload is not None:
                self._used += sign * cards_milli(workload.spec) * workload.holds_resources
                self._waiting += sign * (workload.state is State.QUEUED)

    def _learn(self, before: Workload | None, after: Workload) -> None:
        old, new = before.attempt if before else None, after.attempt
        if old is None or new is None or old.number != new.number:
            return
        if new.started_at is not None and old.started_at is None:
            self.history.starts.append(max(0.0, new.started_at - new.created_at))
        if new.saved_at is not None and new.saved_at != old.saved_at and len(self.history.saves) < MOST_SAVES:
            self.history.saves.append(max(1.0, new.saved_at - (old.saved_at or new.started_at or new.saved_at)))
