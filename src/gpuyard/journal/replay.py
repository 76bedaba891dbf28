"""Decide once more what was decided, from what a journal tells, and compare to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any

from gpuyard.domain.policy import Policy
from gpuyard.journal.events import Decided, Event
from gpuyard.journal.folder import Segment, segments
from gpuyard.journal.frames import Damaged, read_frames
from gpuyard.journal.plain import to_plain
from gpuyard.journal.reading import Header, Reading, read_header
from gpuyard.journal.recorder import FORMAT
from gpuyard.journal.stage import Stage
from gpuyard.scheduling.snapshot import Plan

MOST_DIFFERENCES = 100  # are told; all are counted
MOST_OF_A_JOB = 1000

_spell = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Frame:
    """What happened in one cycle. The first of a segment comes with what that says of itself."""

    now: float
    events: Sequence[Event]
    header: Header | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Where a segment cannot be read further. Torn: its writer was killed, or writes it just now."""

    segment: str
    at: int
    torn: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What was decided then and would be decided now, as plain data; None: nothing."""

    at: float
    what: str  # placement, eviction, waiting, order or the name of what else a plan holds
    workload: str
    then: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Moment:
    """What one decision said of one job. `what` is placed, evicted, makes_room or waits."""

    at: float
    what: str
    facts: Any


@dataclass
class Report:
    """Where one job was asked for, all is counted of that job only: how often it was placed, preempted, told why."""

    cycles: int = 0
    placements: int = 0
    evictions: int = 0
    reasons: int = 0
    first: float | None = None
    last: float | None = None
    lost_cycles: int = 0  # that were never written down
    versions: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)
    differing: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # segments, to their end or as far as they could be
    moments: list[Moment] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        return not self.differing and all(one.torn for one in self.unreadable)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which decisions. Those before them in the same segments are made as well, and not told."""

    since: float | None = None
    until: float | None = None
    last: int | None = None  # of those that tell of the job, if there is one
    job: str | None = None
    policy: Policy | None = None  # decide by this one instead

    def has(self, then: Decided) -> bool:
        if (self.since is not None and then.now < self.since) or (self.until is not None and then.now > self.until):
            return False
        return self.job is None or any(True for _ in _moments_of(self.job, then))


# --- reading ------------------------------------------------------------------------------------------------------


def chosen(found: Sequence[Segment], since: float | None, until: float | None) -> list[Segment]:
    """Segments that may hold something of that time. One ends where the next begins; if that is before its own
    beginning the clock was set back, and it may hold anything."""
    ends = [*(following.begun for following in found[1:]), inf][: len(found)]  # where there are none, none
    return [
        segment
        for segment, end in zip(found, ends, strict=True)
        if end < segment.begun or ((since is None or end + 1 >= since) and (until is None or segment.begun <= until))
    ]


def read_segment(path: Path, unreadable: list[Unreadable]) -> Iterator[Frame]:
    """Whole cycles in order, up to where it can be read."""
    frames = read_frames(path)
    count = 0
    try:
        data = next(frames, None)
        if data is None:
            return  # killed before the first word, or about to write it
        header = read_header(data)
        if header.format != FORMAT:
            unreadable.append(Unreadable(path.name, 0, False, f"format {header.format}"))
            return
        reading = Reading(header)
        for now, said in frames:
            count += 1
            yield Frame(now, list(reading.events(said)), header if count == 1 else None)
    except Damaged as damage:
        unreadable.append(Unreadable(path.name, damage.at, damage.torn))
    except FileNotFoundError:
        return  # the oldest one, removed meanwhile
    except OSError as problem:
        unreadable.append(Unreadable(path.name, count, False, problem.strerror or str(problem)))
    except (ValueError, TypeError, LookupError, AttributeError) as problem:  # whole, and yet not to be understood
        unreadable.append(Unreadable(path.name, count, False, f"{type(problem).__name__}: {problem}"))


# --- replaying ----------------------------------------------------------------------------------------------------

Progress = Callable[[int, int], None]


def replay(folder: Path, asked: Asked, progress: Progress = lambda done, all: None) -> Report:
    """Segment by segment: each begins with everything."""
    found = chosen(segments(folder), asked.since, asked.until)
    if asked.last is None:
        return _replay(found, asked, progress)
    first = len(found)
    cycles = 0
    while first > 0 and cycles < asked.last:
        first -= 1
        cycles += _count(found[first], asked)
    return _replay(found[first:], asked, progress, max(0, cycles - asked.last))


def _count(segment: Segment, asked: Asked) -> int:
    frames = read_segment(segment.path, [])
    return sum(asked.has(event) for frame in frames for event in frame.events if isinstance(event, Decided))


def _replay(found: Sequence[Segment], asked: Asked, progress: Progress, untold: int = 0) -> Report:
    """The first ones are left untold; what is written meanwhile is told as well. None is kept in memory."""
    report = Report()
    for number, segment in enumerate(found):
        for cycle in _cycles(segment, asked, report):
            if untold > 0:
                untold -= 1
            else:
                _tell(report, cycle, asked)
        progress(number + 1, len(found))
    return report


@dataclass(frozen=True, slots=True)
class _Cycle:
    then: Decided
    now: Plan
    version: str


def _cycles(segment: Segment, asked: Asked, report: Report) -> Iterator[_Cycle]:
    stage, version = Stage(asked.policy), ""
    report.read.append(segment.path.name)
    for frame in read_segment(segment.path, report.unreadable):
        if frame.header is not None:
            version = frame.header.version
            report.lost_cycles += frame.header.lost_cycles
        for event in frame.events:
            now = stage.take(event)
            if now is not None and isinstance(event, Decided) and asked.has(event):
                yield _Cycle(event, now, version)


def _tell(report: Report, cycle: _Cycle, asked: Asked) -> None:
    then = cycle.then.plan
    if asked.job is not None:
        report.moments = (report.moments + list(_moments_of(asked.job, cycle.then)))[-MOST_OF_A_JOB:]
    report.cycles += 1
    report.placements += sum(asked.job in (None, one.workload) for one in then.placements)
    report.evictions += sum(asked.job in (None, one.workload) for one in then.evictions)
    report.reasons += sum(asked.job in (None, id) for id in then.waiting)
    report.versions.add(cycle.version)
    report.first = cycle.then.now if report.first is None else report.first
    report.last = cycle.then.now
    if exact(then) != exact(cycle.now):
        found = list(differences(cycle.then.now, then, cycle.now))
        report.differing += len(found)
        report.differences += found[: MOST_DIFFERENCES - len(report.differences)]


# --- comparing ----------------------------------------------------------------------------------------------------


def exact(plan: Plan) -> str:
    """All of a plan in one spelling: two that are spelled alike are alike to the last bit, order included."""
    return _spell(
        [
            [_placement(one) for one in plan.placements],
            [[id, reason.to_json()] for id, reason in plan.waiting.items()],
            [to_plain(getattr(plan, name)) for name in _REST],
        ]
    )


_REST = tuple(one.name for one in fields(Plan) if one.name not in ("placements", "waiting"))


def _placement(one: Any) -> list[Any]:
    rest = [to_plain(getattr(one, name.name)) for name in fields(one) if name.name != "allotments"]
    return [*rest, [[*key, to_plain(allotment)] for key, allotment in one.allotments.items()]]


def differences(at: float, then: Plan, now: Plan) -> Iterator[Difference]:
    """Where two plans differ; at least one, if they do."""
    said = False
    for what, old, new in (
        ("placement", _by_job(then.placements, _placement), _by_job(now.placements, _placement)),
        ("eviction", _by_job(then.evictions, to_plain), _by_job(now.evictions, to_plain)),
        ("waiting", _reasons(then), _reasons(now)),
    ):
        for id in dict.fromkeys([*old, *new]):
            if _spell(old.get(id)) != _spell(new.get(id)):
                said = True
                yield Difference(at, what, id, old.get(id), new.get(id))
    for name in _REST:
        old, new = to_plain(getattr(then, name)), to_plain(getattr(now, name))
        if name != "evictions" and _spell(old) != _spell(new):
            said = True
            yield Difference(at, name, "", old, new)
    if not said:
        yield Difference(at, "order", "", *(_order(plan) for plan in (then, now)))


def _by_job(items: Sequence[Any], plain: Callable[[Any], Any]) -> dict[str, Any]:
    return {one.workload: plain(one) for one in items}


def _reasons(plan: Plan) -> dict[str, Any]:
    return {id: reason.to_json() for id, reason in plan.waiting.items()}


def _order(plan: Plan) -> list[list[str]]:
    return [[one.workload for one in plan.placements], [one.workload for one in plan.evictions], list(plan.waiting)]


# --- one job ------------------------------------------------------------------------------------------------------


def _moments_of(job: str, then: Decided) -> Iterator[Moment]:
    plan = then.plan
    for placement in plan.placements:
        if placement.workload == job:
            nodes = sorted({allotment.node for allotment in placement.allotments.values()})
            turn = to_plain(placement.turn) if placement.turn is not None else None
            yield Moment(then.now, "placed", {"nodes": nodes, "turn": turn, "passed": list(placement.passed)})
    for eviction in plan.evictions:
        if job in (eviction.workload, eviction.by):
            what = "evicted" if eviction.workload == job else "makes_room"
            yield Moment(then.now, what, to_plain(eviction))
    if job in plan.waiting:
        yield Moment(then.now, "waits", plan.waiting[job].to_json())
