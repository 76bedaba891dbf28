"""The clock of a rehearsal. After each change of the world a cycle is decided, and carried out as control would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from gpuyard.domain.amending import amended
from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.lifecycle import (
    Event,
    Launched,
    Observed,
    PauseAsked,
    Placed,
    Preempted,
    ResumeAsked,
    Saved,
    StopAsked,
    TimeUp,
    advance,
)
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Kind, Life, ReplicaId, Seen, State, Verdict, Workload
from gpuyard.rehearsal.given import Arrival, Change, Habits
from gpuyard.rehearsal.looks import begun_at, end_of, lost_with
from gpuyard.rehearsal.moments import next_raise, others_move_for_it, while_it_runs
from gpuyard.rehearsal.results import Job, Outcome, Result, Timeline, capacity_milli, cards_milli
from gpuyard.scheduling.accounting import bill
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.snapshot import Eviction, JobName, Person, Placement, Plan

Watch = Callable[[Books, float, Plan], None]
Happens = Callable[[str, int], bool]  # to a workload in one of its attempts; did it change anything?
After = Callable[[Books, float], None]

TICK_SECONDS = 3600.0  # while anybody waits a cycle is decided at least this often: past use wears down, slowly
CYCLES_AT_ONCE = 100_000  # more than this at one moment, and work pushes itself out in a circle
NOBODY = Plan()
LAUNCHED = Launched({})


def rehearse(
    nodes: Iterable[Node],
    groups: Mapping[str, Group],
    policy: Policy,
    arrivals: Iterable[Arrival],
    *,
    habits: Habits = Habits(),  # noqa: B008
    holding: Iterable[Arrival] = (),
    changes: Iterable[Change] = (),
    begin: float | None = None,
    until: float = inf,
    tick: float = TICK_SECONDS,
    past: Mapping[Person, PastUse] | None = None,
    run_times: Mapping[JobName, tuple[float, ...]] | None = None,
    typical: tuple[Typical, ...] = (),
    watch: Watch | None = None,
    after: After | None = None,
    told: bool = False,
) -> Result:
    """Let everyone come, run and end. `arrivals` are taken one by one, by the time of their submission.

    `holding` holds resources at `begin` (default: the first thing that happens). Nothing happens from `until` on.
    `watch(books, now, plan)` is called after everything that happens, before the plan is carried out; the plan is empty
    when there is nothing to decide. `after(books, now)` is called when it was. `told`: plans have the reasons of all.

    `past`, `run_times` and `typical` (requests) are what was known at the beginning; past use and run times go on from
    there, typical requests stay.
    """
    run = Run(nodes, groups, policy, habits, dict(past or {}), dict(run_times or {}), typical, tick)
    run.watch, run.after, run.told = watch, after, told
    return run.through(arrivals, holding, changes, begin, until)


class Run:
    """One rehearsal."""

    def __init__(
        self,
        nodes: Iterable[Node],
        groups: Mapping[str, Group],
        policy: Policy,
        habits: Habits,
        past: dict[Person, PastUse],
        run_times: dict[JobName, tuple[float, ...]],
        typical: tuple[Typical, ...],
        tick: float,
    ) -> None:
        self.now = -inf
        self.watch: Watch | None = None
        self.after: After | None = None
        self.told = False
        self._nodes, self._groups, self._policy = tuple(nodes), groups, policy
        self._habits, self._tick = habits, tick
        self._past, self._run_times, self._typical = past, run_times, typical
        self._live: dict[str, Workload] = {}
        self._jobs: dict[str, Job] = {}  # of those that live
        self._outcomes: list[Outcome] = []
        self._timeline = Timeline()
        self._heap: list[tuple[float, int, Happens, str, int]] = []
        self._pushed = self._cycles = self._at_once = self._used = 0
        self._next_tick = inf
        self._stirred = False  # something happened since the last cycle that can change its answer
        self._make_books()

    def _make_books(self) -> None:
        self._books = Books(self._nodes, self._groups, self._policy, self._past, self._run_times, typical=self._typical)
        self._capacity = capacity_milli(self._nodes)
        for workload in self._live.values():
            self._books.put(workload)

    # --- the clock --------------------------------------------------------------------------------------------------

    def through(
        self,
        arrivals: Iterable[Arrival],
        holding: Iterable[Arrival],
        changes: Iterable[Change],
        begin: float | None,
        until: float,
    ) -> Result:
        coming, changing = iter(arrivals), iter(sorted(changes, key=lambda change: change.at))
        arrival, change = next(coming, None), next(changing, None)
        self._hold(holding, begin if begin is not None else arrival.workload.submitted_at if arrival else 0.0)
        if begin is not None:
            self.now = begin
            self._timeline.note(begin, self._used, self._capacity, 0)  # also while nobody has come yet
        began = begin
        while True:
            comes = arrival.workload.submitted_at if arrival is not None else inf
            moment = min(comes, change.at if change is not None else inf, self._next_moment())
            if moment >= until or moment == inf:
                break
            self._turn_to(moment)
            began = moment if began is None else began
            while change is not None and change.at <= self.now:
                self._change(change)
                change = next(changing, None)
            self._happen()
            while arrival is not None and arrival.workload.submitted_at <= self.now:
                self._arrive(arrival)
                arrival = next(coming, None)
            self._cycle()
        return Result(self._outcomes, self._timeline, self._cycles, began or 0.0, max(self.now, began or 0.0))

    def _turn_to(self, moment: float) -> None:
        self._at_once = self._at_once + 1 if moment <= self.now else 0
        if self._at_once > CYCLES_AT_ONCE:
            raise RuntimeError(f"nothing comes to rest at {self.now}: work pushes out work in a circle")
        self.now = max(self.now, moment)

    def _next_moment(self) -> float:
        """Of what will happen by itself; the tick only while something else can still change."""
        moment = self._heap[0][0] if self._heap else inf
        return min(moment, self._next_tick) if self._books.holding else moment

    def _happen(self) -> None:
        heap = self._heap
        self._stirred = self._stirred or self._next_tick <= self.now
        while heap and heap[0][0] <= self.now:
            _, _, happens, id, attempt = heappop(heap)
            self._stirred = happens(id, attempt) or self._stirred

    def _at(self, moment: float, happens: Happens, id: str, attempt: int = 0) -> None:
        self._pushed += 1
        heappush(self._heap, (moment, self._pushed, happens, id, attempt))

    # --- one cycle --------------------------------------------------------------------------------------------------

    def _cycle(self) -> None:
        books, plan = self._books, NOBODY
        due = bool(books.line.groups or books.line.resting) and self._is_due()
        if due:
            self._cycles += 1
            self._tell_saves()
            plan = decide(books, self.now, untold=not self.told)
            self._stirred = False
        if self.watch is not None:
            self.watch(books, self.now, plan)
        for eviction in plan.evictions:
            self._evict(eviction)
        for placement in plan.placements:
            self._place(placement)
        if due or not books.line.groups:
            self._next_tick = self.now + self._tick if books.line.groups else inf
        self._timeline.note(self.now, self._used, self._capacity, len(books.line.workloads))
        if self.after is not None:
            self.after(books, self.now)

    def _is_due(self) -> bool:
        """One more behind those that are alike and wait already changes nothing, unless others may make room."""
        books = self._books
        return self._stirred or self.told or bool(books.preemptible or books.stopping or books.promised)

    def _tell_saves(self) -> None:
        """What may be interrupted has its price: the work since it was last saved. So control asks for it."""
        if not (self._habits.saves and self._policy.preempt.enabled and self._books.preemptible):
            return
        for workload in list(self._books.preemptible.values()):
            begun = workload.attempt.started_at if workload.attempt else None
            saved_at = begun + self._habits.kept(self.now - begun) if begun is not None else None
            if saved_at is not None and workload.state is State.RUNNING:
                self._apply(workload.id, Saved(saved_at))

    def _apply(self, id: str, *events: Event) -> Workload:
        """Several at one moment: the books see only what comes of it."""
        before = workload = self._live[id]
        for event in events:
            workload = advance(workload, event, self.now).workload
        if workload is before:
            return before
        if before.holds_resources != workload.holds_resources:
            self._hand_over(before, workload)
        if workload.state is State.QUEUED or workload.holds_resources or self._will_go_on(workload):
            self._live[id] = workload
            self._books.put(workload)
        else:
            self._leave(workload)
        return workload

    def _hand_over(self, before: Workload, after: Workload) -> None:
        """Cards were given out, or came back and are paid for."""
        sign = 1 if after.holds_resources else -1
        self._used += sign * self._jobs[after.id].milli
        if sign < 0:
            made = bill([(before, after)], self._past, self._run_times, self._policy.order)
            self._past.update(made.past)
            self._run_times.update(made.run_times)

    def _leave(self, workload: Workload) -> None:
        self._books.remove(workload.id)
        del self._live[workload.id]
        outcome = self._jobs.pop(workload.id).outcome
        outcome.ended, outcome.state = self.now, workload.state

    # --- coming and going -------------------------------------------------------------------------------------------

    def _arrive(self, arrival: Arrival) -> None:
        workload = arrival.workload
        job = self._jobs[workload.id] = Job(arrival)
        self._outcomes.append(job.outcome)
        self._live[workload.id] = workload
        self._books.put(workload)
        self._stirred = self._stirred or not self._waits_behind_another(workload)
        if arrival.patience < inf:
            self._at(workload.submitted_at + arrival.patience, self._lose_patience, workload.id)
        for number, rest in enumerate(arrival.rests):
            self._at(rest.at, self._rest, workload.id, number)
            self._at(rest.until, self._go_on, workload.id, number)
        self._wait(workload)

    def _waits_behind_another(self, workload: Workload) -> bool:
        batch = self._books.line.batch_of(workload.id)
        return batch is not None and len(batch.jobs) > 1 and batch.jobs[-1][1] == workload.id

    def _hold(self, holding: Iterable[Arrival], begin: float) -> None:
        for arrival in holding:
            self.now = begin
            self._arrive(arrival)
            workload, job = arrival.workload, self._jobs[arrival.workload.id]
            if not workload.holds_resources or workload.attempt is None:
                raise ValueError(f"{workload.id} holds nothing at the beginning")
            self._used += job.milli
            if workload.state is State.STOPPING:
                self._at(begin + self._stop_seconds(workload), self._be_gone, workload.id, workload.attempts_made)
                continue
            if workload.state is State.PLACED:
                workload = self._apply(workload.id, LAUNCHED)
            if workload.state is State.STARTING:
                self._start(workload.id, workload.attempts_made)
            else:
                job.outcome.starts.append(begun_at(workload, begin))
                self._let_run(workload)

    def _wait(self, workload: Workload) -> None:
        """It stands in the queue: its back-off ends some time, and waiting raises it."""
        if workload.not_before > self.now:
            self._at(workload.not_before, self._wake, workload.id)
        moves_at = others_move_for_it(workload, self._policy)
        if moves_at is not None and moves_at > self.now:
            self._at(moves_at, self._wait_on, workload.id, workload.attempts_made)
        raised_at = next_raise(workload, self._policy, self.now)
        if raised_at is not None and workload.state is State.QUEUED:
            self._at(raised_at, self._raise, workload.id, workload.attempts_made)

    def _wake(self, id: str, attempt: int) -> bool:
        return True

    def _wait_on(self, id: str, attempt: int) -> bool:
        return self._in(id, attempt, State.QUEUED) is not None

    def _raise(self, id: str, attempt: int) -> bool:
        """Behind an older one that is alike it changes nothing: that one was raised before it."""
        workload = self._in(id, attempt, State.QUEUED)
        if workload is None:
            return False
        raised_at = next_raise(workload, self._policy, self.now)
        if raised_at is not None:
            self._at(raised_at, self._raise, id, attempt)
        batch = self._books.line.batch_of(id)
        return batch is not None and batch.jobs[0][1] == id

    def _lose_patience(self, id: str, attempt: int) -> bool:
        workload = self._in(id, 0, State.QUEUED)
        if workload is None:
            return False
        self._apply(id, StopAsked(workload.owner))
        return True

    # --- resting ----------------------------------------------------------------------------------------------------

    def _rest(self, id: str, number: int) -> bool:
        """It is to be paused. What is being stopped is so once it is gone."""
        workload = self._live.get(id)
        if workload is None:
            return False
        self._jobs[id].resting = True
        if workload.state is State.QUEUED:
            self._apply(id, PauseAsked(workload.owner))
        elif workload.state in (State.PLACED, State.STARTING, State.RUNNING):
            self._stop(workload, PauseAsked(workload.owner))
        return True

    def _go_on(self, id: str, number: int) -> bool:
        """It is wanted again, and has kept its place in the line; a dev environment asks anew."""
        workload = self._live.get(id)
        if workload is None:
            return False
        if workload.state is State.STOPPING:  # not yet paused
            self._at(self.now + self._stop_seconds(workload), self._go_on, id, number)
            return False
        job = self._jobs[id]
        rest = job.arrival.rests[number]
        job.resting, job.rests = False, job.rests - 1
        if workload.state is not State.PAUSED:
            return False
        if not job.outcome.starts:
            job.outcome.rested += self.now - rest.at
        spec = rest.spec or workload.spec
        at = self.now if spec.kind is Kind.ENV else workload.submitted_at
        job.milli = cards_milli(spec)
        self._live[id] = amended(workload, spec=spec, submitted_at=at)
        self._wait(self._apply(id, ResumeAsked(workload.owner)))
        return True

    def _will_go_on(self, workload: Workload) -> bool:
        job = self._jobs[workload.id]
        return workload.state is State.PAUSED and job.rests > 0 and job.left > 0

    # --- running ----------------------------------------------------------------------------------------------------

    def _place(self, placement: Placement) -> None:
        id = placement.workload
        workload = self._apply(id, Placed(placement.allotments), LAUNCHED)
        if self._habits.start_seconds > 0:
            self._at(self.now + self._habits.start_seconds, self._start, id, workload.attempts_made)
        else:
            self._start(id, workload.attempts_made)

    def _start(self, id: str, attempt: int) -> bool:
        workload = self._in(id, attempt, State.STARTING)
        if workload is None or workload.attempt is None:
            return False
        seen = Seen(Life.RUNNING, started_at=self.now)
        workload = self._apply(id, Observed({replica.id: seen for replica in workload.attempt.replicas}))
        self._jobs[id].outcome.starts.append(self.now)
        self._let_run(workload)
        return True

    def _let_run(self, workload: Workload) -> None:
        """It ends when its work is done, or when its time is up."""
        id, attempt, longest = workload.id, workload.attempts_made, workload.spec.max_seconds
        begun, ends = begun_at(workload, self.now), self.now + self._jobs[id].left
        if longest is not None and ends > begun + longest:
            self._at(max(self.now, begun + longest), self._run_out_of_time, id, attempt)
        else:
            self._at(ends, self._end, id, attempt)
        for moment in while_it_runs(workload, self._policy, self.now):
            self._at(moment, self._wake, id)

    def _in(self, id: str, attempt: int, *states: State) -> Workload | None:
        """The workload, if it is still in that attempt and in one of these states."""
        workload = self._live.get(id)
        found = workload is not None and workload.attempts_made == attempt and workload.state in states
        return workload if found else None

    def _end(self, id: str, attempt: int) -> bool:
        workload = self._in(id, attempt, State.RUNNING)
        if workload is None or workload.attempt is None:
            return False
        job = self._jobs[id]
        fails = job.arrival.fails
        looks = {replica.id: end_of(replica, fails, self.now) for replica in workload.attempt.replicas}
        if fails is not None:
            self._break_off(workload, looks, kept=False)
        else:
            job.left = 0.0
            self._settle(self._apply(id, Observed(looks)))
        return True

    def _run_out_of_time(self, id: str, attempt: int) -> bool:
        workload = self._in(id, attempt, State.RUNNING)
        if workload is not None:
            self._stop(workload, TimeUp())
        return workload is not None

    def _evict(self, eviction: Eviction) -> None:
        victim, by = self._live.get(eviction.workload), self._live.get(eviction.by)
        if victim is None or by is None or victim.attempt is None:
            return
        self._jobs[victim.id].outcome.preemptions += 1
        self._stop(
            victim, Preempted(by.id, rule=eviction.rule.value, lost_seconds=eviction.lost_seconds, to=eviction.to)
        )

    def _stop(self, workload: Workload, event: Event) -> None:
        workload = self._apply(workload.id, event)
        self._at(self.now + self._stop_seconds(workload), self._be_gone, workload.id, workload.attempts_made)

    def _stop_seconds(self, workload: Workload) -> float:
        return min(self._habits.stop_seconds, workload.spec.grace_seconds)

    def _be_gone(self, id: str, attempt: int) -> bool:
        """The last replica of work that was stopped is gone."""
        workload = self._in(id, attempt, State.STOPPING)
        if workload is None or workload.attempt is None:
            return False
        begun = workload.attempt.started_at
        gone = Seen(Life.ENDED, 143, None, None, begun, self.now)
        self._break_off(workload, {replica.id: gone for replica in workload.attempt.replicas}, kept=True)
        return True

    def _break_off(self, workload: Workload, looks: Mapping[ReplicaId, Seen], *, kept: bool) -> None:
        """An attempt ends before the work is done: what was not saved is to be done again, if it ever is."""
        job = self._jobs[workload.id]
        ran, saved = self._done(workload, kept=kept)
        job.left -= saved
        after = self._apply(workload.id, Observed(looks))
        if after.state is State.QUEUED:
            job.outcome.lost += ran - saved
        self._settle(after)

    def _done(self, workload: Workload, *, kept: bool) -> tuple[float, float]:
        """Seconds of work, and how many of them need not be repeated. How long work runs that is paused is counted with
        what it had done before: that is kept."""
        attempt = workload.attempt
        if attempt is None or attempt.started_at is None:
            return 0.0, 0.0
        ran = min(self.now - attempt.started_at, self._jobs[workload.id].left)
        if attempt.ending is not None and attempt.ending.verdict is Verdict.PAUSED:
            return ran, ran
        return ran, self._habits.kept(ran) if kept else 0.0

    def _settle(self, workload: Workload) -> None:
        if workload.state is not State.QUEUED:
            return
        if self._jobs[workload.id].resting:
            self._apply(workload.id, PauseAsked(workload.owner))
        else:
            self._wait(workload)

    # --- the cluster ------------------------------------------------------------------------------------------------

    def _change(self, change: Change) -> None:
        self._nodes = change.nodes if change.nodes is not None else self._nodes
        self._groups = change.groups if change.groups is not None else self._groups
        self._policy = change.policy if change.policy is not None else self._policy
        self._make_books()
        self._stirred = True
        if change.nodes is not None:
            self._lose_nodes(change.nodes)

    def _lose_nodes(self, nodes: Sequence[Node]) -> None:
        """What ran on machines that are lost or no longer there is gone with them."""
        there = {node.name for node in nodes if node.state is not NodeState.LOST}
        for id in [id for node, ids in self._books.on_node.items() if node not in there for id in ids]:
            workload = self._in(id, self._live[id].attempts_made, State.STARTING, State.RUNNING)
            if workload is None or workload.attempt is None:
                continue
            lost = [replica for replica in workload.attempt.replicas if replica.allotment.node not in there]
            looks = {replica.id: lost_with(replica, self.now) for replica in lost}
            if len(lost) == len(workload.attempt.replicas):
                self._break_off(workload, looks, kept=True)
                continue
            after = self._apply(id, Observed(looks))
            if after.state is State.STOPPING:
                self._at(self.now + self._stop_seconds(after), self._be_gone, id, after.attempts_made)
