"""A platform's own history under two policies: who would have waited how long, and who would gain or lose by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from gpuyard.domain.policy import Policy
from gpuyard.journal.history import History, read_history
from gpuyard.journal.replay import Unreadable
from gpuyard.rehearsal import Outcome, Result, Timeline, rehearse

JOBS_TOLD = 10
SAME_SECONDS = 1.0  # a wait that differs by less is the same


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds until the first start; of those that never started, until the end of the time looked at. While work is
    paused it does not wait."""

    jobs: int
    mean: float
    median: float
    p90: float
    never_started: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """How it goes under one policy."""

    waits: Waits
    utilisation: float | None  # of the cards there were; None: there were none
    preemptions: int  # moves among them
    lost_seconds: float  # of work that had to be done again
    ended: int


@dataclass(frozen=True, slots=True)
class Really(Waits):
    """How it went, as the journal tells it: beside the waits what `Numbers` holds."""

    utilisation: float | None = None
    preemptions: int = 0
    lost_seconds: float = 0.0
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Party:
    """A group, or a person in it, or one job: mean wait under the present and under the other policy."""

    name: str
    jobs: int
    before: float
    after: float
    preempted_before: int
    preempted_after: int
    group: str = ""
    owner: str = ""
    id: str = ""  # of a job


@dataclass
class WhatIf:
    begin: float
    until: float
    jobs: int
    guessed: int  # of how many that never ran the run time is a guess
    lost_cycles: int
    unreadable: list[Unreadable]  # what only the rest of these tells of is missing here
    read: list[str]  # segments, to their end or as far as they could be
    really: Really
    present: Numbers
    other: Numbers
    groups: list[Party] = field(default_factory=list)
    users: list[Party] = field(default_factory=list)
    gaining: list[Party] = field(default_factory=list)  # jobs, those that gain most first
    losing: list[Party] = field(default_factory=list)
    gain_count: int = 0
    lose_count: int = 0


Progress = Callable[[int, int], None]


def what_if(
    folder: Path,
    present: Policy,
    other: Policy,
    *,
    since: float | None,
    until: float,
    progress: Progress = lambda done, all: None,
) -> WhatIf:
    """Without any job where the journal holds nothing of that time, or nothing that can be read."""
    history = read_history(folder, since, until)
    if not history.ways:
        return _nothing(history, since, until)
    progress(1, 3)
    before = _rehearsed(history, present)
    progress(2, 3)
    after = _rehearsed(history, other)
    progress(3, 3)
    found = WhatIf(
        begin=history.begin,
        until=until,
        jobs=len(before.outcomes),
        guessed=history.arrivals()[2],
        lost_cycles=history.lost_cycles,
        unreadable=history.unreadable,
        read=history.read,
        really=_really(history),
        present=_numbers(before, history),
        other=_numbers(after, history),
    )
    _compare(found, before.outcomes, after.outcomes, until)
    return found


def _nothing(history: History, since: float | None, until: float) -> WhatIf:
    """Nobody came, and nothing is different."""
    none = Numbers(_waits([], 0), None, 0, 0.0, 0)
    begin = min(since, until) if since is not None else until
    return WhatIf(
        begin,
        until,
        jobs=0,
        guessed=0,
        lost_cycles=0,
        unreadable=history.unreadable,
        read=history.read,
        really=Really(0, 0.0, 0.0, 0.0, 0),
        present=none,
        other=none,
    )


def _rehearsed(history: History, policy: Policy) -> Result:
    coming, holding, _ = history.arrivals()
    return rehearse(
        history.nodes,
        history.groups,
        policy,
        coming,
        habits=history.habits(),
        holding=holding,
        changes=history.changes,
        begin=history.begin,
        until=history.until,
        past=history.past,
        run_times=history.run_times,
        typical=history.typical,
    )


# --- numbers ------------------------------------------------------------------------------------------------------


def _numbers(result: Result, history: History) -> Numbers:
    outcomes = result.outcomes
    return Numbers(
        waits=_waits([_wait(one, history.until) for one in outcomes], sum(not one.starts for one in outcomes)),
        utilisation=_utilisation(result.timeline, history),
        preemptions=sum(one.preemptions for one in outcomes),
        lost_seconds=sum(one.lost for one in outcomes),
        ended=sum(one.ended is not None for one in outcomes),
    )


def _really(history: History) -> Really:
    ways = history.ways
    waits = _waits([way.wait(history.until) for way in ways], sum(way.first_start() is None for way in ways))
    return Really(
        **asdict(waits),
        utilisation=_utilisation(history.timeline, history),
        preemptions=sum(way.preemptions() for way in ways),
        lost_seconds=sum(way.lost() for way in ways),
        ended=sum(way.over_at is not None for way in ways),
    )


def _utilisation(timeline: Timeline, history: History) -> float | None:
    timeline.note(history.until, 0, 0, 0)  # what is true last is true until then
    return timeline.utilisation(history.begin, history.until) if any(timeline.capacity) else None


def _wait(outcome: Outcome, until: float) -> float:
    wait = outcome.wait
    return max(0.0, wait if wait is not None else (outcome.ended or until) - outcome.submitted - outcome.rested)


def _waits(waits: Sequence[float], never: int) -> Waits:
    ordered = sorted(waits)
    return Waits(len(ordered), fmean(ordered or [0.0]), _part(ordered, 0.5), _part(ordered, 0.9), never)


def _part(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


# --- who gains ----------------------------------------------------------------------------------------------------


def _compare(found: WhatIf, before: Sequence[Outcome], after: Sequence[Outcome], until: float) -> None:
    then = {one.id: one for one in after}
    pairs = [(one, then[one.id]) for one in before if one.id in then]
    found.groups = _parties(pairs, until, lambda one: (one.group, ""))
    found.users = _parties(pairs, until, lambda one: (one.group, one.owner))
    moved = sorted(pairs, key=lambda pair: _wait(pair[1], until) - _wait(pair[0], until))
    gaining = [pair for pair in moved if _wait(pair[1], until) < _wait(pair[0], until) - SAME_SECONDS]
    losing = [pair for pair in reversed(moved) if _wait(pair[1], until) > _wait(pair[0], until) + SAME_SECONDS]
    found.gain_count, found.lose_count = len(gaining), len(losing)
    found.gaining = [_job(*pair, until) for pair in gaining[:JOBS_TOLD]]
    found.losing = [_job(*pair, until) for pair in losing[:JOBS_TOLD]]


Pair = tuple[Outcome, Outcome]


def _parties(pairs: Iterable[Pair], until: float, whose: Callable[[Outcome], tuple[str, str]]) -> list[Party]:
    """Those whose waits differ most first."""
    by: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by.setdefault(whose(pair[0]), []).append(pair)
    found = [_party(group, owner, members, until) for (group, owner), members in by.items()]
    return sorted(found, key=lambda one: (one.after - one.before, one.group, one.owner))


def _party(group: str, owner: str, pairs: Sequence[Pair], until: float) -> Party:
    return Party(
        name=owner or group,
        jobs=len(pairs),
        before=fmean(_wait(one, until) for one, _ in pairs),
        after=fmean(_wait(other, until) for _, other in pairs),
        preempted_before=sum(one.preemptions for one, _ in pairs),
        preempted_after=sum(other.preemptions for _, other in pairs),
        group=group,
        owner=owner,
    )


def _job(one: Outcome, other: Outcome, until: float) -> Party:
    return Party(
        name=one.name,
        jobs=1,
        before=_wait(one, until),
        after=_wait(other, until),
        preempted_before=one.preemptions,
        preempted_after=other.preemptions,
        group=one.group,
        owner=one.owner,
        id=one.id.partition("#")[0],
    )
