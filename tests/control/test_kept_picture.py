"""A picture that is kept current piece by piece, with its books, is the same as one made anew: after anything."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.dialects.policy import to_text
from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Placing, Policy, Pool, Preempting
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, State, Wanted, Workload
from gpuyard.scheduling.plan import decide
from gpuyard.store import nodes as node_rows
from gpuyard.store import sharing as sharing_rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture

IMAGES = ("docker.io/library/python:3.12", "localhost/ours:latest")
POLICIES = (
    Policy(),
    Policy(preempt=Preempting(min_run=1.0)),
    Policy(placing=Placing.SPREAD, backfill=False),
    Policy(pools={"left": Pool(nodes=("a",))}, group_pools={"speech": ("left",)}),
)


class KeptPicture(RuleBasedStateMachine):
    """Jobs come, run, are preempted, paused, stopped and forgotten; nodes, images, quotas and the policy change."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = Database.open(f"sqlite:///{Path(self.folder.name) / 'yard.db'}")
        self.yard = Yard(self.database, [a_node("a", 4), a_node("b", 4)])
        self.onlooker = Picture(self.database)  # one that never writes
        self.jobs: list[str] = []
        self.submitted = 0

    def teardown(self) -> None:
        if hasattr(self, "yard"):
            self.yard.close()
            self.database.close()
            self.folder.cleanup()

    @rule(
        cards=st.sampled_from([0, 0.5, 1, 2, 4, 5]),
        replicas=st.integers(1, 3),
        group=st.sampled_from(["vision", "speech"]),
        owner=st.sampled_from(["ann", "bob"]),
        priority=st.sampled_from([100, 500, 900]),
        preemptible=st.booleans(),
        max_seconds=st.sampled_from([None, 5.0, 500.0]),
        exit_code=st.sampled_from([0, 0, 1]),
        image=st.sampled_from([None, *IMAGES]),
    )
    def submit(
        self,
        cards: float,
        replicas: int,
        group: str,
        owner: str,
        priority: int,
        preemptible: bool,
        max_seconds: float | None,
        exit_code: int,
        image: str | None,
    ) -> None:
        env = (("YARD_SIM_SECONDS", "20"), ("YARD_SIM_EXIT", str(exit_code)))
        self.submitted += 1
        id = f"job{self.submitted:07d}"
        job = a_job(id, cards=cards, replicas=replicas, priority=priority, env=env, group=group, owner=owner)
        roles = tuple(replace(role, image=image) for role in job.spec.roles)
        spec = replace(job.spec, roles=roles, preemptible=preemptible, max_seconds=max_seconds)
        self.jobs.append(self.yard.submit(replace(job, spec=spec)))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), wanted=st.sampled_from(list(Wanted)))
    def wish(self, data: st.DataObject, wanted: Wanted) -> None:
        self.yard.want(data.draw(st.sampled_from(self.jobs)), wanted)

    @rule(seconds=st.sampled_from([0.0, 1.0, 6.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.yard.pass_time(seconds, steps=1)

    @rule(node=st.sampled_from(["a", "b"]))
    def a_node_goes_or_comes_back(self, node: str) -> None:
        self.yard.engine.faults.lost_nodes ^= {node}

    @rule(node=st.sampled_from(["a", "b"]), images=st.sets(st.sampled_from(IMAGES)))
    def images_come_and_go(self, node: str, images: set[str]) -> None:
        self.yard.engine.hold_images(node, *images)

    @rule(node=st.sampled_from(["a", "b"]), cordoned=st.booleans())
    def cordon(self, node: str, cordoned: bool) -> None:
        with self.database.write() as conn:
            node_rows.set_cordoned(conn, node, cordoned)

    @rule(
        group=st.sampled_from(["vision", "speech"]),
        limit=st.sampled_from([None, 2000, 8000]),
        guaranteed=st.sampled_from([0, 2000]),
    )
    def set_quota(self, group: str, limit: int | None, guaranteed: int) -> None:
        self.yard.set_quota(Quota(group, "nvidia", limit, guaranteed=guaranteed))

    @rule(policy=st.sampled_from(POLICIES))
    def set_policy(self, policy: Policy) -> None:
        with self.database.write() as conn:
            sharing_rows.set_policy_text(conn, to_text(policy))

    @rule()
    def forget_what_has_ended(self) -> None:
        with self.database.write() as conn:
            gone = workload_rows.delete_ended_before(conn, self.yard.time, 10)
        self.jobs = [id for id in self.jobs if id not in gone]

    @rule()
    def crash(self) -> None:
        self.yard.crash()

    @invariant()
    def the_kept_pictures_are_as_if_made_anew(self) -> None:
        if not hasattr(self, "yard"):
            return
        anew = Picture(self.database)
        anew.follow()
        for kept in (self.yard.control.picture, self.onlooker):
            kept.follow()
            assert _without_reasons(kept) == _without_reasons(anew)
            for state in State:
                found = {workload.id for workload in kept.in_state(state)}
                assert found == {id for id, workload in anew.live.items() if workload.state is state}
                assert not (state in ENDED and found)
            assert (kept.past, kept.run_times) == (anew.past, anew.run_times)
            assert (kept.nodes, kept.groups, kept.policy) == (anew.nodes, anew.groups, anew.policy)
            assert decide(kept.books, self.yard.time) == decide(anew.books, self.yard.time)


def _without_reasons(picture: Picture) -> dict[str, Workload]:
    """Why one waits is written without a word to the feed: an onlooker may know an older reason."""
    nothing = because(Code.NEW)
    return {id: replace(w, reason=nothing) if w.state is State.QUEUED else w for id, w in picture.live.items()}


KeptPicture.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestKeptPicture = KeptPicture.TestCase
