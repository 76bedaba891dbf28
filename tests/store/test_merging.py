"""One group becomes part of another: nothing is lost, nothing that runs is disturbed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job, running

from gpuyard.domain.errors import BadInput, NotFound
from gpuyard.domain.lifecycle import StopAsked, advance
from gpuyard.domain.people import Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Mount, State, Workload
from gpuyard.store import merging, people, sharing, workloads
from gpuyard.store.database import Connection, Database
from gpuyard.store.feed import changes_since, newest_change

NOW, HALF_LIFE = 1000.0, 100.0


@pytest.fixture
def house(database: Database) -> Database:
    """Ann leads vision, ben leads both, cat is in both, dan is in vision, eve in speech."""
    vision = (
        Quota("vision", "nvidia", 8000, guaranteed=4000),
        Quota("vision", "cpu", 64_000),
        Quota("vision", "nvidia", 2000, "cat"),
        Quota("vision", "nvidia", 1000, "dan"),
        Quota("vision", "cpu", 4000, "cat"),
    )
    speech = (
        Quota("speech", "nvidia", 4000, guaranteed=1000),
        Quota("speech", "memory", 1 << 40),
        Quota("speech", "nvidia", 3000, "cat"),
    )
    seats = {
        "ann": (Membership("vision", Role.LEAD),),
        "ben": (Membership("speech", Role.LEAD), Membership("vision", Role.LEAD)),
        "cat": (Membership("speech", Role.MEMBER), Membership("vision", Role.MEMBER)),
        "dan": (Membership("vision", Role.MEMBER),),
        "eve": (Membership("speech", Role.MEMBER),),
    }
    with database.write() as conn:
        people.create_group(conn, Group("vision", vision, gid=70001, weight=2.0, fifo=True), 1.0)
        people.create_group(conn, Group("speech", speech, gid=70002, weight=3.0), 1.0)
        people.create_group(conn, Group("other"), 1.0)
        for name, memberships in seats.items():
            people.create_user(conn, User(name, memberships=memberships), None, 1.0)
    return database


def insert(conn: Connection, *works: Workload) -> None:
    """As it was submitted, and then as it is."""
    for work in works:
        queued = Workload(work.id, work.owner, work.group, work.spec, work.submitted_at)
        workloads.insert(conn, queued, [], idempotency_key=None, request_digest=None)
        assert work == queued or workloads.save(conn, queued, work, [])


def merged(house: Database, source: str = "vision", target: str = "speech") -> merging.Merge:
    with house.write() as conn:
        return merging.merge(conn, source, target, now=NOW, by="root", half_life=HALF_LIFE)


def test_members_move_and_leads_of_the_source_become_plain_members(house: Database) -> None:
    plan = merged(house)
    assert plan.joining == ("ann", "dan")
    assert plan.leads_no_more == ("ann",)
    with house.read() as conn:
        assert dict(people.members(conn, "speech")) == {
            "ann": Role.MEMBER,
            "ben": Role.LEAD,
            "cat": Role.MEMBER,
            "dan": Role.MEMBER,
            "eve": Role.MEMBER,
        }
        assert people.get_group(conn, "vision") is None
        ann = people.get_user(conn, "ann")
        assert ann is not None
        assert ann.groups == ("speech",)


def test_limits_and_guarantees_add_up_and_no_limit_stays_no_limit(house: Database) -> None:
    merged(house)
    with house.read() as conn:
        speech = people.get_group(conn, "speech")
    assert speech is not None
    lines = {(quota.user, quota.resource): (quota.limit, quota.guaranteed) for quota in speech.quotas}
    assert lines == {
        (None, "nvidia"): (12_000, 5000),  # cpu and memory were limited in one of them only
        ("cat", "nvidia"): (3000, 0),  # the larger
        ("dan", "nvidia"): (1000, 0),
    }  # cat's cores were limited in one of her two groups only
    assert (speech.weight, speech.fifo, speech.gid) == (3.0, False, 70002)


def test_past_use_is_added_at_its_present_worth(house: Database) -> None:
    with house.write() as conn:
        past = {
            ("vision", None): PastUse(800.0, NOW - HALF_LIFE),
            ("vision", "ann"): PastUse(40.0, NOW),
            ("speech", None): PastUse(400.0, NOW - 2 * HALF_LIFE),
            ("speech", "eve"): PastUse(7.0, NOW - 5.0),
        }
        sharing.charge(conn, past)
    merged(house)
    with house.read() as conn:
        assert sharing.past_use(conn) == {
            ("speech", None): PastUse(500.0, NOW),
            ("speech", "ann"): PastUse(40.0, NOW),
            ("speech", "eve"): PastUse(7.0, NOW - 5.0),
        }


def test_work_that_runs_goes_on_under_the_other_name(house: Database) -> None:
    waiting = a_job("job0000001", group="vision", owner="ann")
    going = running(a_job("job0000002", group="vision", owner="dan", cards=1), ("a", (0,)))
    stopped = replace(a_job("job0000003", group="vision"), state=State.STOPPED, ended_at=9.0, version=2)
    foreign = a_job("job0000004", group="other")
    with house.write() as conn:
        insert(conn, waiting, going, stopped, foreign)
        before = newest_change(conn)
    plan = merged(house)
    assert (plan.live, plan.running, plan.ended) == (2, 1, 1)
    with house.read() as conn:
        told = {change.id for change in changes_since(conn, before) if change.kind == "workload"}
        now = {work.id: work for work in workloads.get_many(conn, [waiting.id, going.id, stopped.id, foreign.id])}
        stories = {id: [line.reason.code for line in workloads.story(conn, id)] for id in now}
    assert told == {waiting.id, going.id}
    assert now[going.id] == replace(going, group="speech", version=going.version + 1)
    assert now[waiting.id].group == "speech"
    assert now[stopped.id] == replace(stopped, group="speech")
    assert now[foreign.id] == foreign
    assert stories == {waiting.id: [Code.GROUP_MERGED], going.id: [Code.GROUP_MERGED], stopped.id: [], foreign.id: []}


def test_whoever_had_it_in_mind_looks_again_before_writing(house: Database) -> None:
    going = running(a_job("job0000002", group="vision", cards=1), ("a", (0,)))
    with house.write() as conn:
        insert(conn, going)
    merged(house)
    stale = advance(going, StopAsked("dan"), NOW)
    with house.write() as conn:
        assert not workloads.save(conn, going, stale.workload, stale.story)
        fresh = workloads.get(conn, going.id)
        assert fresh is not None
        again = advance(fresh, StopAsked("dan"), NOW)
        assert workloads.save(conn, fresh, again.workload, again.story)


def test_what_work_mounts_of_the_share_is_found_where_it_was_moved_to(house: Database) -> None:
    job = a_job("job0000001", group="vision")
    mounts = (Mount("share", "/all"), Mount("share", "/data", "sets/a", True), Mount("home", "/mine", "x"))
    role = replace(job.spec.roles[0], mounts=mounts)
    with house.write() as conn:
        insert(conn, replace(job, spec=replace(job.spec, roles=(role,))))
    merged(house)
    with house.read() as conn:
        found = workloads.get(conn, job.id)
    assert found is not None
    assert found.spec.roles[0].mounts == (
        Mount("share", "/all", "vision"),
        Mount("share", "/data", "vision/sets/a", True),
        Mount("home", "/mine", "x"),
    )


def test_looking_first_changes_nothing_and_tells_the_same(house: Database) -> None:
    with house.write() as conn:
        insert(conn, a_job("job0000001", group="vision"))
    with house.read() as conn:
        seen = merging.look(conn, "vision", "speech")
        assert people.get_group(conn, "vision") is not None
    assert merged(house) == seen


def test_what_cannot_be_merged_is_refused_and_nothing_happens(house: Database) -> None:
    for source, target, error in [
        ("vision", "vision", BadInput),
        ("vision", "none", NotFound),
        ("none", "vision", NotFound),
    ]:
        with pytest.raises(error):
            merged(house, source, target)
    with house.read() as conn:
        assert [group.name for group in people.all_groups(conn)] == ["other", "speech", "vision"]
