"""Laws that hold in whatever order things happen: versions guard, a model agrees, followers miss nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.draw import a_job
from tests.store.lines import submitted

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, State, StoryEvent, Wanted, Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database
from gpuyard.store.feed import FeedTooOld, changes_since, newest_change, prune

_rounds = itertools.count()
JOBS = 4

ACTIONS = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, JOBS - 1), st.just(0)),
    st.tuples(st.just("save"), st.integers(0, JOBS - 1), st.sampled_from(range(len(State)))),
    st.tuples(st.just("save stale"), st.integers(0, JOBS - 1), st.sampled_from(range(len(State)))),
    st.tuples(st.just("save many"), st.just(0), st.sampled_from(range(len(State)))),
    st.tuples(st.just("want"), st.integers(0, JOBS - 1), st.sampled_from(range(len(Wanted)))),
    st.tuples(st.just("fail"), st.integers(0, JOBS - 1), st.sampled_from(range(len(State)))),
    st.tuples(st.just("follow"), st.just(0), st.integers(1, 3)),
    st.tuples(st.just("prune"), st.just(0), st.integers(0, 5)),
)


class _Undo(Exception):
    """Ends a transaction that is not to be."""


class Yard:
    """The database, the plainest model of it, and a follower that only hears of it through the feed."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.prefix = f"r{next(_rounds):06d}x"
        self.model: dict[str, Workload] = {}
        self.old: dict[str, Workload] = {}
        self.lines: dict[str, int] = {}
        self.clock = 0.0
        self.position = database.feed.position()
        self.followed: dict[str, Workload] = {}

    def id(self, number: int) -> str:
        return f"{self.prefix}{number:02d}"

    def act(self, action: str, number: int, extra: int) -> None:
        self.clock += 1
        id = self.id(number)
        if action == "submit" and id not in self.model:
            self.submit(id)
        elif action == "follow":
            self.follow(extra)
        elif action == "prune":
            with self.database.write() as conn:
                prune(conn, self.clock * 1000, kept_seconds=1.0, kept_changes=extra)
        elif action == "save many":
            self.save_many(list(State)[extra])
        elif id in self.model and action == "want":
            self.want(id, list(Wanted)[extra])
        elif id in self.model and action != "submit":
            self.save(action, id, list(State)[extra])

    def submit(self, id: str) -> None:
        job = a_job(id, at=self.clock)
        with self.database.write() as conn:
            workloads.insert(conn, job, submitted(job), idempotency_key=id, request_digest="d")
        self.model[id], self.lines[id] = job, 1

    def save(self, action: str, id: str, state: State) -> None:
        before = self.old.get(id, self.model[id]) if action == "save stale" else self.model[id]
        after = moved(before, state)
        try:
            with self.database.write() as conn:
                saved = workloads.save(conn, before, after, [line(after)])
                if action == "fail":
                    raise _Undo
        except _Undo:
            return
        assert saved is (before.version == self.model[id].version)
        if saved:
            self.learn(after)

    def save_many(self, state: State) -> None:
        """Everything at once, each second one from an old view."""
        befores = [self.old.get(id, job) if at % 2 else job for at, (id, job) in enumerate(self.model.items())]
        steps = [(before, moved(before, state), [line(before)]) for before in befores]
        with self.database.write() as conn:
            results = workloads.save_many(conn, steps)
        assert results == [before.version == self.model[before.id].version for before in befores]
        for (_, after, _), saved in zip(steps, results, strict=True):
            if saved:
                self.learn(after)

    def want(self, id: str, wanted: Wanted) -> None:
        with self.database.write() as conn:
            done = workloads.want(conn, id, wanted, "bob", self.clock)
        job = self.model[id]
        assert done is (job.state not in ENDED)
        if done and job.wanted is not wanted:
            self.old[id] = job
            self.model[id] = replace(job, wanted=wanted, wanted_by="bob", version=job.version + 1)

    def learn(self, after: Workload) -> None:
        self.old[after.id] = self.model[after.id]
        self.model[after.id] = after
        self.lines[after.id] += 1

    def follow(self, limit: int) -> None:
        """One part of the way, or a new start when it slept too long."""
        with self.database.read() as conn:
            try:
                some = changes_since(conn, self.position, limit)
            except FeedTooOld:
                self.position = newest_change(conn)
                self.followed = {job.id: job for job in workloads.get_many(conn, list(self.model))}
                return
            for job in workloads.get_many(conn, [change.id for change in some]):
                self.followed[job.id] = job
            self.position = some[-1].seq if some else self.position

    def check(self) -> None:
        for _ in range(1000):
            if self.position == self.database.feed.position():
                break
            self.follow(2)
        assert self.followed == self.model
        with self.database.read() as conn:
            assert {job.id: job for job in workloads.get_many(conn, list(self.model))} == self.model
            live = [job for job in workloads.live(conn) if job.id.startswith(self.prefix)]
            told = {id: len(workloads.story(conn, id)) for id in self.model}
        expected = [job for job in self.model.values() if job.state not in ENDED]
        assert live == sorted(expected, key=lambda job: (job.submitted_at, job.id))
        assert told == self.lines


def moved(job: Workload, state: State) -> Workload:
    return replace(job, state=state, version=job.version + 1, ended_at=5.0 if state in ENDED else None)


def line(job: Workload) -> StoryEvent:
    return StoryEvent(1.0, because(Code.ADOPTED, attempt=0), job.state)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, min_size=10, max_size=60))
def test_the_store_is_what_the_model_says_and_a_follower_misses_nothing(
    database: Database, actions: list[tuple[str, int, int]]
) -> None:
    yard = Yard(database)
    for action in actions:
        yard.act(*action)
    yard.check()
