"""The laws of the lifecycle, over every way hypothesis finds through crashes, stale copies and missed observations.

`stored` is the workload as the database has it, guarded by version. The world moves on its own: replicas start, run and
end whether or not anybody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.lifecycle import (
    TABLE,
    Event,
    ImpossibleTransition,
    Launched,
    LaunchFailed,
    Observed,
    Overflowed,
    PauseAsked,
    Placed,
    Preempted,
    ResumeAsked,
    Saved,
    Step,
    StopAsked,
    TimeUp,
    advance,
)
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import (
    ENDED,
    HOLDS_RESOURCES,
    Cause,
    Life,
    Replica,
    ReplicaId,
    RoleSpec,
    Seen,
    Spec,
    State,
    Workload,
)

SHAPES = ((("worker", 1),), (("worker", 3),), (("ps", 1), ("worker", 2)))
FULL = Overflowed(because(Code.DISK_OVER, used=2, limit=1, replica="worker-0"))
allowances = st.fixed_dictionaries({cause: st.integers(0, 2) for cause in Cause})
endings = st.sampled_from([None, *Cause])

# Where each event may lead. Written down apart from the program, so that a wrong row in it is noticed.
LEADS_TO: Mapping[type[Event], set[State]] = {
    Placed: {State.PLACED},
    Launched: {State.STARTING},
    LaunchFailed: {State.STOPPING},
    StopAsked: {State.STOPPING, State.STOPPED},
    PauseAsked: {State.STOPPING, State.PAUSED},
    ResumeAsked: {State.QUEUED},
    Preempted: {State.STOPPING},
    TimeUp: {State.STOPPING},
    Overflowed: {State.STOPPING},
    Saved: {State.RUNNING, State.QUEUED},
    Observed: {
        *(State.STARTING, State.RUNNING, State.STOPPING, State.QUEUED, State.PAUSED),
        *(State.SUCCEEDED, State.FAILED, State.STOPPED),
    },
}


class LifecycleMachine(RuleBasedStateMachine):
    looks: Bundle[Observed] = Bundle("looks")

    @initialize(shape=st.sampled_from(SHAPES), retries=allowances, runs_already=st.booleans())
    def submit(self, shape: tuple[tuple[str, int], ...], retries: Mapping[Cause, int], runs_already: bool) -> None:
        roles = tuple(RoleSpec(name, ("true",), replicas) for name, replicas in shape)
        spec = Spec("train", roles, retries=retries, max_seconds=60.0)
        self.now = 100.0
        self.first = self.stored = Workload("job0000001", "ann", "vision", spec, submitted_at=self.now)
        self.copies = [self.stored]
        self.world: dict[ReplicaId, Seen] = {}
        self.resumed = self.preempted = 0
        if runs_already:
            self.place()
            self.launch(dies_before_saving=False)
            self.all_begin_to_run()
            self._apply(Observed(dict(self.world)))

    # --- the world ------------------------------------------------------------------------------------------------

    @rule(seconds=st.floats(0.1, 100.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), ending=endings)
    def a_replica_moves_on(self, data: st.DataObject, ending: Cause | None) -> None:
        alive = sorted(id for id, seen in self.world.items() if seen.life is not Life.ENDED)
        if not alive:
            return
        id = data.draw(st.sampled_from(alive))
        match self.world[id].life:
            case Life.ABSENT:
                self.world[id] = Seen(Life.STARTING)
            case Life.STARTING:
                self.world[id] = Seen(Life.RUNNING, started_at=self.now)
            case _:
                self.world[id] = self._end(id, ending)

    @precondition(lambda self: self.stored.state in (State.PLACED, State.STARTING))
    @rule()
    def all_begin_to_run(self) -> None:
        for replica in self._replicas():
            if self.world.get(replica.id, Seen()).life is Life.STARTING:
                self.world[replica.id] = Seen(Life.RUNNING, started_at=self.now)

    def _end(self, id: ReplicaId, cause: Cause | None) -> Seen:
        began = self.world[id].started_at
        if cause is None:
            return Seen(Life.ENDED, 0, started_at=began, ended_at=self.now)
        reason = because(Code.EXIT_CODE, exit_code=1, replica=id.short)
        return Seen(Life.ENDED, 1, cause, reason, began, self.now if cause is not Cause.LOST else None)

    # --- what control does ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.stored.state is State.QUEUED)
    @rule()
    def place(self) -> None:
        places = {
            (role.name, index): Allotment("node", 1000, 1, 1)
            for role in self.stored.spec.roles
            for index in range(role.replicas)
        }
        self._apply(Placed(places))

    @precondition(lambda self: self.stored.state is State.PLACED)
    @rule(dies_before_saving=st.booleans())
    def launch(self, dies_before_saving: bool) -> None:
        """The engine has started them even when control does not live to write it down."""
        for replica in self._replicas():
            self.world.setdefault(replica.id, Seen(Life.STARTING))
        if not dies_before_saving:
            self._apply(Launched({replica.id: "handle" for replica in self._replicas()}))

    @precondition(lambda self: self.stored.state is State.PLACED)
    @rule()
    def fail_to_launch(self) -> None:
        self._apply(LaunchFailed(self._replicas()[0].id, "no such image"))

    @precondition(lambda self: self.stored.state is State.STOPPING)
    @rule(slow=st.sets(st.integers(0, 2)))
    def stop_them(self, slow: set[int]) -> None:
        """Some take their time to end."""
        for index, replica in enumerate(self._replicas()):
            if self.world.get(replica.id, Seen()).life in (Life.STARTING, Life.RUNNING) and index not in slow:
                self.world[replica.id] = self._end(replica.id, Cause.EXIT)

    @precondition(lambda self: self.stored.attempt is not None)
    @rule(target=looks, missed=st.sets(st.integers(0, 2), max_size=2))
    def look(self, missed: set[int]) -> Observed:
        """What the engine tells now, some of it missed."""
        told = [replica.id for index, replica in enumerate(self._replicas()) if index not in missed]
        event = Observed({id: self.world.get(id, Seen()) for id in told})
        self._apply(event)
        return event

    @rule(look=looks)
    def look_again_at_old_news(self, look: Observed) -> None:
        """Seen before, told again. Absence is the one thing control never believes from the past."""
        self._apply(Observed({id: seen for id, seen in look.seen.items() if seen.life is not Life.ABSENT}))

    @rule(seconds_ago=st.sampled_from([-5.0, 0.0, 0.5, 100.0]))
    def save_its_work(self, seconds_ago: float) -> None:
        before = self.stored.attempt
        self._apply(Saved(self.now - seconds_ago))
        if before is not None and before.saved_at is not None:
            assert self.stored.attempt is not None
            assert self.stored.attempt.saved_at is not None
            assert before.saved_at <= self.stored.attempt.saved_at <= self.now

    # --- what people ask for --------------------------------------------------------------------------------------

    @rule(
        event=st.sampled_from([StopAsked("ann"), PauseAsked("ann"), Preempted("x"), TimeUp(), FULL]),
        meant=st.booleans(),
    )
    def ask(self, event: Event, meant: bool) -> None:
        """Seldom enough that work also lives long."""
        if meant:
            self._apply(event)

    @precondition(lambda self: self.stored.state is State.PAUSED)
    @rule()
    def resume(self) -> None:
        self._apply(ResumeAsked("ann"))

    # --- what goes wrong ------------------------------------------------------------------------------------------

    @rule(event=st.sampled_from([Placed({}), Launched({}), Observed({}), Preempted("x"), ResumeAsked("ann")]))
    def what_is_not_in_the_table_is_impossible(self, event: Event) -> None:
        if (self.stored.state, type(event)) not in TABLE:
            self._is_impossible(event)

    @rule(event=st.sampled_from([StopAsked("ann"), PauseAsked("ann"), TimeUp()]))
    def crash_before_saving(self, event: Event) -> None:
        before = self.stored
        if (before.state, type(event)) in TABLE:
            advance(before, event, self.now)
        assert self.stored is before

    @rule(data=st.data(), event=st.sampled_from([StopAsked("bob"), PauseAsked("bob"), ResumeAsked("bob"), TimeUp()]))
    def a_stale_writer_comes_too_late(self, data: st.DataObject, event: Event) -> None:
        """Whatever it makes of its old copy, its version does not fit and the store refuses it."""
        old = data.draw(st.sampled_from(self.copies))
        if (old.state, type(event)) not in TABLE:
            return
        step = advance(old, event, self.now)
        if old.version == self.stored.version:
            assert old == self.stored, "two different workloads with one version"
        elif step.workload is not old:
            assert step.workload.version == old.version + 1 <= self.stored.version, "it would overwrite newer news"

    # --- saving, and the laws of a single step --------------------------------------------------------------------

    def _apply(self, event: Event) -> None:
        before = self.stored
        self.now += 1.0
        if (before.state, type(event)) not in TABLE:
            self._is_impossible(event)
            return
        step = advance(before, event, self.now)
        assert advance(before, event, self.now) == step, "the same event on the same workload gave another result"
        if step.workload is before:
            assert step.story == ()
            return
        self._step_is_lawful(before, event, step)
        self.stored = step.workload
        self.copies.append(step.workload)
        self.resumed += isinstance(event, ResumeAsked)
        self.preempted += step.workload.reason.code is Code.REQUEUED and step.workload.state is State.QUEUED

    def _is_impossible(self, event: Event) -> None:
        try:
            advance(self.stored, event, self.now)
        except ImpossibleTransition:
            return
        raise AssertionError(f"{event} was taken in state {self.stored.state}")

    def _step_is_lawful(self, before: Workload, event: Event, step: Step) -> None:
        after = step.workload
        assert before.state not in ENDED
        assert after.version == before.version + 1
        assert after.state in LEADS_TO[type(event)]
        assert after.attempts_made - before.attempts_made == isinstance(event, Placed)
        self._story_explains(before, step)
        self._retries_are_counted(before, step)
        self._ends_stay(before, after)
        if before.holds_resources and not after.holds_resources:
            self._nothing_runs(before)

    def _story_explains(self, before: Workload, step: Step) -> None:
        if step.workload.state is not before.state:
            assert step.story, "a state changed without a line in the story"
        for line in step.story:
            if line.reason.code is Code.SAVED_IN_TIME:  # said of the attempt before, not of why it waits now
                continue
            assert (line.at, line.reason, line.state) == (self.now, step.workload.reason, step.workload.state)

    def _retries_are_counted(self, before: Workload, step: Step) -> None:
        used = sum(step.workload.retries_used.values()) - sum(before.retries_used.values())
        assert used == sum(line.reason.code is Code.RETRY for line in step.story)

    def _ends_stay(self, before: Workload, after: Workload) -> None:
        if before.attempt is None or after.attempt is None or before.attempt.number != after.attempt.number:
            return
        for old, new in zip(before.attempt.replicas, after.attempt.replicas, strict=True):
            assert old.seen.life is not Life.ENDED or new is old

    def _nothing_runs(self, before: Workload) -> None:
        """Cards are given back only when nothing uses them any more."""
        assert before.attempt is not None
        for replica in before.attempt.replicas:
            assert self.world.get(replica.id, Seen()).life in (Life.ENDED, Life.ABSENT)

    # --- the laws that always hold --------------------------------------------------------------------------------

    @invariant()
    def what_was_asked_for_and_its_place_in_the_queue_never_change(self) -> None:
        same = replace(self.first, **{name: getattr(self.stored, name) for name in CHANGING})
        assert same == self.stored

    @invariant()
    def retries_stay_within_the_allowance_of_their_cause(self) -> None:
        for cause, used in self.stored.retries_used.items():
            assert used <= self.stored.spec.retries[cause]

    @invariant()
    def every_attempt_is_accounted_for(self) -> None:
        starts = 1 + sum(self.stored.retries_used.values()) + self.resumed + self.preempted
        assert self.stored.attempts_made <= starts

    @invariant()
    def resources_are_held_exactly_while_an_attempt_lives(self) -> None:
        alive = self.stored.attempt is not None and self.stored.attempt.ended_at is None
        assert alive == self.stored.holds_resources == (self.stored.state in HOLDS_RESOURCES)

    @invariant()
    def the_end_has_its_time_and_its_result(self) -> None:
        assert (self.stored.ended_at is not None) == (self.stored.state in ENDED)
        if self.stored.state is State.SUCCEEDED:
            assert self.stored.exit_code == 0
            assert all(r.seen.life is Life.ENDED and r.seen.cause is None for r in self._replicas())

    @invariant()
    def what_is_called_running_has_started_everywhere(self) -> None:
        if self.stored.state is State.RUNNING:
            assert all(self.world[r.id].started_at is not None for r in self._replicas())

    @invariant()
    def every_state_has_its_reason(self) -> None:
        assert (self.stored.reason.code is Code.NEW) == (self.stored is self.first)

    @invariant()
    def only_a_retry_waits_for_a_time(self) -> None:
        if self.stored.not_before > 0.0 and self.stored.state is State.QUEUED:
            assert self.stored.reason.code is Code.RETRY

    def _replicas(self) -> tuple[Replica, ...]:
        assert self.stored.attempt is not None
        return self.stored.attempt.replicas


CHANGING = (
    *("state", "reason", "version", "not_before", "retries_used", "attempt", "started_at", "ended_at", "exit_code"),
)

TestLifecycleLaws = LifecycleMachine.TestCase
TestLifecycleLaws.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
