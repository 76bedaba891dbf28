"""Random submits, wishes, faults and crashes against control, with every law checked after each step."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.people import Quota
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import ENDED, HOLDS_RESOURCES, Cause, State, Wanted, Workload
from gpuyard.scheduling.quota import amounts_of
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture

CARDS = {"a": 4, "b": 4}
QUOTA = 6


class Storm(RuleBasedStateMachine):
    """The api's part is played by submit and want; control is stepped, cut short, replaced, and shown an old world."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = Database.open(f"sqlite:///{Path(self.folder.name) / 'yard.db'}")
        self.yard = Yard(self.database, [a_node(name, cards) for name, cards in CARDS.items()])
        self.yard.set_quota(Quota("vision", "nvidia", QUOTA * 1000))
        self.jobs: list[str] = []
        self.ended: dict[str, State] = {}

    def teardown(self) -> None:
        if hasattr(self, "yard"):
            self._calm_down()
            self.yard.close()
            self.database.close()
            self.folder.cleanup()

    @rule(
        cards=st.sampled_from([0, 0.5, 1, 2, 4]),
        replicas=st.integers(1, 2),
        seconds=st.sampled_from([1, 5, 50]),
        exit_code=st.sampled_from([0, 0, 1]),
        retries=st.integers(0, 2),
        priority=st.sampled_from([1, 500, 1000]),
        deaf=st.booleans(),
    )
    def submit(
        self, cards: float, replicas: int, seconds: int, exit_code: int, retries: int, priority: int, deaf: bool
    ) -> None:
        env = (("YARD_SIM_SECONDS", str(seconds)), ("YARD_SIM_EXIT", str(exit_code)), ("YARD_SIM_DEAF", str(int(deaf))))
        job = a_job(f"job{len(self.jobs):07d}", cards=cards, replicas=replicas, priority=priority, env=env)
        allowance = {**job.spec.retries, Cause.EXIT: retries}
        self.jobs.append(self.yard.submit(replace(job, spec=replace(job.spec, retries=allowance))))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), wanted=st.sampled_from([Wanted.STOP, Wanted.PAUSE, Wanted.RUN]))
    def wish(self, data: st.DataObject, wanted: Wanted) -> None:
        id = data.draw(st.sampled_from(self.jobs))
        if self.yard.state(id) not in ENDED and self.yard.get(id).wanted is not Wanted.STOP:
            self.yard.want(id, wanted)

    @rule(seconds=st.sampled_from([0.0, 1.0, 3.0, 12.0]))
    def time_passes_with_control(self, seconds: float) -> None:
        self.yard.pass_time(seconds, steps=1)

    @rule(seconds=st.sampled_from([1.0, 20.0]))
    def time_passes_without_control(self, seconds: float) -> None:
        self.yard.time += seconds

    @rule()
    def crash(self) -> None:
        self.yard.crash()

    @rule()
    def crash_and_look(self) -> None:
        self.yard.crash()
        self.yard.pass_time(0.0, steps=1)

    @rule()
    def control_acts_on_an_old_picture(self) -> None:
        """A pass whose picture misses the newest commits: what it writes must be refused or still right."""
        control = self.yard.control
        old = Picture(self.database)
        old.follow()
        for id in self.jobs[-2:]:
            if self.yard.state(id) not in ENDED:
                self.yard.want(id, Wanted.RUN)
        control.picture = old
        self.yard.pass_time(0.0, steps=1)

    @rule(node=st.sampled_from(sorted(CARDS)))
    def a_node_goes_or_comes_back(self, node: str) -> None:
        self.yard.engine.faults.lost_nodes ^= {node}

    @rule()
    def launches_go_wrong(self) -> None:
        self.yard.engine.faults.refuse_launches = 1
        self.yard.engine.faults.unsure_launches = 1

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def a_replica_vanishes(self, data: st.DataObject) -> None:
        attempt = self.yard.get(data.draw(st.sampled_from(self.jobs))).attempt
        if attempt is not None:
            self.yard.engine.faults.vanish.add(attempt.replicas[0].id)

    @invariant()
    def no_card_is_given_twice_and_no_quota_exceeded(self) -> None:
        if not hasattr(self, "yard"):
            return
        given: Counter[tuple[str, int]] = Counter()
        used = 0
        for workload in self._all():
            if workload.state in HOLDS_RESOURCES:
                assert workload.attempt is not None
                allotments = [r.allotment for r in workload.attempt.replicas]
                used += amounts_of(allotments).get("nvidia", 0)
                for allotment in allotments:
                    given.update({(allotment.node, share.index): share.milli for share in allotment.cards})
        assert all(amount <= 1000 for amount in given.values()), given
        assert used <= QUOTA * 1000

    @invariant()
    def ends_are_final_and_every_state_has_its_reason_and_story(self) -> None:
        if not hasattr(self, "yard"):
            return
        for workload in self._all():
            if workload.id in self.ended:
                assert workload.state is self.ended[workload.id]
            if workload.state in ENDED:
                self.ended[workload.id] = workload.state
            story = self.yard.story(workload.id)
            assert story[-1].state is workload.state
            for cause, used in workload.retries_used.items():
                assert used <= workload.spec.retries.get(cause, 0)

    def _all(self) -> list[Workload]:
        with self.database.read() as conn:
            found = workload_rows.get_many(conn, self.jobs)
        assert len(found) == len(self.jobs), "a job was lost"
        return found

    def _calm_down(self) -> None:
        """Once nothing goes wrong any more, everything comes to rest: every job ends."""
        faults = self.yard.engine.faults
        faults.lost_nodes.clear()
        faults.refuse_launches = faults.unsure_launches = 0
        for workload in self._all():
            if workload.state not in ENDED and workload.wanted is Wanted.PAUSE:
                self.yard.want(workload.id, Wanted.RUN)
        for _ in range(120):
            self.yard.pass_time(30.0, steps=3)
            for workload in self._all():
                if workload.state is State.QUEUED and workload.reason.code is Code.QUOTA_NEVER:
                    self.yard.want(workload.id, Wanted.STOP)
            if all(w.state in ENDED for w in self._all()):
                return
        waiting = [(w.id, w.state.value, w.reason) for w in self._all() if w.state not in ENDED]
        raise AssertionError(f"never came to rest: {waiting}")


Storm.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStorm = Storm.TestCase
