"""A yard in fast motion: a clock, machines, and jobs that end when they really end. Pure: no time passes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf

from tests.scheduling.worlds import ending, held_by, started

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import State, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide, plan
from gpuyard.scheduling.share import charged, rate_of
from gpuyard.scheduling.snapshot import Eviction, Person, Plan, Snapshot


@dataclass
class Job:
    """A workload and how it really behaves."""

    workload: Workload
    lasts: float  # seconds of work, if nobody stops it
    launches_in: float = 0.0  # from its place to its start
    stops_in: float = 0.0  # from the signal to its end
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.lasts


@dataclass(frozen=True)
class Begun:
    at: float
    id: str
    allotments: Mapping[tuple[str, int], Allotment]


class Yard:
    def __init__(
        self,
        nodes: Iterable[Node],
        groups: Mapping[str, Group] | None = None,
        policy: Policy = Policy(),  # noqa: B008
        *,
        now: float = 0.0,
        past: Mapping[Person, PastUse] | None = None,
        every: float = inf,
    ) -> None:
        """`every`: a look at the queue at least this often, as control does."""
        self.now = now
        self.every = every
        self.past = dict(past or {})
        self.books = Books(nodes, groups or {}, policy, self.past, {})
        self.jobs: dict[str, Job] = {}
        self.live: dict[str, Workload] = {}
        self.begun: list[Begun] = []
        self.ended: dict[str, float] = {}
        self.evictions: list[tuple[float, Eviction]] = []
        self.waiting: Mapping[str, Reason] = {}
        self.card_seconds: dict[Person, float] = {}
        self.watch: Callable[[Plan], None] = lambda outcome: None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    # --- what is asked of it ----------------------------------------------------------------------------------------

    def submit(self, job: Job, at: float | None = None) -> None:
        """The job comes at this moment; its workload's own time is set to it."""
        moment = self.now if at is None else at
        job.workload = replace(job.workload, submitted_at=moment)
        self.jobs[job.workload.id] = job
        self._at(moment, lambda: self._put(job.workload))

    def run(self, until: float, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass: after everything that happens, and now and then, the queue is looked at."""
        while self.now < until and not stop():
            moment = min(self._events[0][0] if self._events else inf, self.now + self.every, until)
            self.now = moment
            while self._events and self._events[0][0] <= moment:
                heappop(self._events)[2]()
            self._decide()

    def start_of(self, id: str) -> float | None:
        return next((one.at for one in self.begun if one.id == id), None)

    def snapshot(self) -> Snapshot:
        waits = tuple(w for w in self.live.values() if w.state is State.QUEUED)
        holds = tuple(w for w in self.live.values() if w.holds_resources)
        return Snapshot(self.now, self.books.nodes, waits, holds, self.books.groups, self.books.policy, dict(self.past))

    def check_books(self) -> None:
        """The kept books decide as new ones would."""
        kept, new = decide(self.books, self.now), plan(self.snapshot())
        assert {p.workload: p.allotments for p in kept.placements} == {p.workload: p.allotments for p in new.placements}
        assert (set(kept.evictions), dict(kept.waiting)) == (set(new.evictions), dict(new.waiting))

    # --- what happens -----------------------------------------------------------------------------------------------

    def _at(self, moment: float, happens: Callable[[], None]) -> None:
        heappush(self._events, (moment, next(self._number), happens))

    def _put(self, workload: Workload) -> None:
        self.live[workload.id] = workload
        self.books.put(workload)

    def _decide(self) -> None:
        outcome = decide(self.books, self.now)
        self.watch(outcome)
        self.waiting = outcome.waiting
        for placement in outcome.placements:
            self._place(placement.workload, placement.allotments)
        for eviction in outcome.evictions:
            self.evictions.append((self.now, eviction))
            self._evict(eviction)

    def _place(self, id: str, allotments: Mapping[tuple[str, int], Allotment]) -> None:
        self.begun.append(Begun(self.now, id, allotments))
        job, placed = self.jobs[id], held_by(self.live[id], allotments, self.now)
        self._put(placed)
        attempt = placed.attempts_made
        self._at(self.now + job.launches_in, lambda: self._start(id, attempt))

    def _start(self, id: str, attempt: int) -> None:
        workload = self.live.get(id)
        if workload is None or workload.attempts_made != attempt or workload.state is not State.PLACED:
            return
        self._put(started(workload, self.now))
        job = self.jobs[id]
        longest = workload.spec.max_seconds
        self._at(
            self.now + (job.left if longest is None else min(job.left, longest)), lambda: self._finish(id, attempt)
        )

    def _finish(self, id: str, attempt: int) -> None:
        workload = self.live.get(id)
        if workload is None or workload.attempts_made != attempt or workload.state is not State.RUNNING:
            return
        self._charge(workload)
        del self.live[id]
        self.books.remove(id)
        self.ended[id] = self.now

    def _evict(self, eviction: Eviction) -> None:
        workload, job = self.live[eviction.workload], self.jobs[eviction.workload]
        attempt = workload.attempts_made
        self._put(ending(workload, eviction.by))
        self._at(self.now + min(job.stops_in, workload.spec.grace_seconds), lambda: self._back(workload.id, attempt))

    def _back(self, id: str, attempt: int) -> None:
        """Its last replica is gone: it stands in its old place again, and begins anew what was not saved."""
        workload = self.live.get(id)
        if workload is None or workload.attempts_made != attempt or workload.attempt is None:
            return
        self._charge(workload)
        ended = replace(workload.attempt, ended_at=self.now)
        self._put(replace(workload, state=State.QUEUED, attempt=ended))

    def _charge(self, workload: Workload) -> None:
        assert workload.attempt is not None
        rule = self.books.policy.order
        given = [replica.allotment for replica in workload.attempt.replicas]
        rate, begun = rate_of(given, rule.cores_per_card), workload.attempt.created_at
        for person in ((workload.group, None), (workload.group, workload.owner)):
            self.past[person] = charged(self.past.get(person), rate, begun, self.now, rule.half_life)
            self.card_seconds[person] = self.card_seconds.get(person, 0.0) + rate * (self.now - begun)
