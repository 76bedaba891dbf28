"""The proof that something waits: its class, the facts that show it, who is before it, and what would start it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job, a_node, running

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import Ordering, Policy
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Together, Where, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Snapshot, Sort, Why
from gpuyard.scheduling.why import ranked, why

NOW = 10_000.0
NODES = (a_node("a", 8), a_node("b", 8))


def a_world(
    *queue: Workload,
    holding: tuple[Workload, ...] = (),
    nodes: tuple[Node, ...] = NODES,
    groups: tuple[Group, ...] = (),
    **more: object,
) -> Snapshot:
    return Snapshot(NOW, nodes, queue, holding, {group.name: group for group in groups}, **more)  # type: ignore[arg-type]


def proof(world: Snapshot, id: str, groups: tuple[str, ...] = ()) -> Why:
    books = Books.of(world)
    before = plan(world)
    found = why(books, id, NOW, groups=groups)
    assert found is not None
    assert plan(world) == before
    for remedy in found.remedies:
        assert remedy.nodes
    return found


def full(node: str, id: str, cards: int = 8, **more: object) -> Workload:
    return running(a_job(id, cards=cards, **more), (node, tuple(range(cards))), cpu_milli=8000 * cards)  # type: ignore[arg-type]


def changes(found: Why) -> list[dict[str, str]]:
    return [dict(remedy.changes) for remedy in found.remedies]


# --- facts --------------------------------------------------------------------------------------------------------


def test_who_waits_is_told_of_the_one_that_was_placed_just_now() -> None:
    world = a_world(a_job("second", cards=8, at=1.0), a_job("third", cards=8, at=2.0), nodes=NODES[:1])
    told = plan(world).waiting["third"]
    assert (told.code, told.facts["jobs"]) == (Code.BUSY, ["second"])


def test_nodes_that_lack_the_same_are_told_once_with_their_number() -> None:
    nodes = tuple(a_node(f"n{i}", 8) for i in range(5))
    holding = tuple(full(f"n{i}", f"h{i}", 8 if i else 6) for i in range(5))
    found = proof(a_world(a_job("waits", cards=4), nodes=nodes, holding=holding), "waits")
    assert found.sort is Sort.BUSY
    assert [(f.facts["node"], f.facts["nodes"], f.facts["free"]) for f in found.facts if f.code is Code.NODE_FACT] == [
        ("n0", 1, 2000),
        ("n1", 4, 0),
    ]


def test_the_job_that_is_in_the_way_is_told_with_its_end_when_that_is_known() -> None:
    job = full("a", "short")
    bounded = replace(job, spec=replace(job.spec, max_seconds=600.0))
    found = proof(a_world(a_job("waits", cards=8), nodes=NODES[:1], holding=(bounded,)), "waits")
    [fact] = [fact for fact in found.facts if fact.code is Code.JOB_FACT]
    assert fact.facts["job"] == "short"
    assert fact.facts["ends_by"] == NOW  # it should have ended long ago, so it ends any moment


def test_the_job_in_the_way_is_called_by_its_name() -> None:
    job = full("a", "h")
    named = replace(job, spec=replace(job.spec, name="long-training"))
    found = proof(a_world(a_job("waits", cards=8), nodes=NODES[:1], holding=(named,)), "waits")
    [fact] = [fact for fact in found.facts if fact.code is Code.JOB_FACT]
    assert (fact.facts["job"], fact.facts["job_name"]) == ("h", "long-training")


def test_an_end_that_was_only_learned_is_no_latest_end() -> None:
    job = full("a", "h")
    world = a_world(a_job("waits", cards=8), nodes=NODES[:1], holding=(job,))
    learned = replace(world, run_times={(job.owner, job.spec.name): (60.0, 60.0, 60.0)})
    [fact] = [fact for fact in proof(learned, "waits").facts if fact.code is Code.JOB_FACT]
    assert "ends_by" not in fact.facts


def test_a_gang_is_told_how_many_of_its_replicas_have_room() -> None:
    found = proof(a_world(a_job("gang", cards=4, replicas=4), holding=(full("a", "h"),)), "gang")
    assert found.facts[0].facts == {"replicas": 4, "fit": 2}
    assert {"replicas": "2"} in changes(found)


def test_a_node_that_is_away_and_would_do_is_named() -> None:
    nodes = (a_node("a", 8), a_node("gone", 8, state=NodeState.LOST))
    found = proof(a_world(a_job("waits", cards=8), nodes=nodes, holding=(full("a", "h"),)), "waits")
    assert found.sort is Sort.TROUBLE
    assert found.reason.code is Code.NO_NODES
    assert found.facts[0].facts == {"node": "gone", "nodes": 1, "trouble": "lost"}


def test_what_is_kept_for_another_is_told_with_the_other() -> None:
    world = a_world(a_job("large", cards=8, at=1.0), a_job("small", cards=4, at=2.0), holding=(full("a", "h", 4),))
    found = proof(replace(world, nodes=NODES[:1]), "small")
    assert found.sort is Sort.ORDER
    assert found.facts[0].facts["kept_for"] == "large"
    assert (found.position, [ahead.workload for ahead in found.ahead]) == (1, ["large"])


def test_one_that_is_about_to_start_has_nothing_to_prove() -> None:
    assert why(Books.of(a_world(a_job("starts", cards=1))), "starts", NOW) is None


# --- remedies -----------------------------------------------------------------------------------------------------


def test_without_pins_it_would_start() -> None:
    job = a_job("pinned", cards=2)
    role = replace(job.spec.roles[0], where=Where(nodes=("a",)))
    job = replace(job, spec=replace(job.spec, roles=(role,)))
    found = proof(a_world(job, holding=(full("a", "h"),)), "pinned")
    assert changes(found)[0] == {"where": ""}


def test_any_model_would_start() -> None:
    job = a_job("picky", cards=2)
    asked = job.spec.roles[0].resources
    assert asked.cards is not None
    role = replace(job.spec.roles[0], resources=replace(asked, cards=replace(asked.cards, models=("H100",))))
    found = proof(a_world(replace(job, spec=replace(job.spec, roles=(role,)))), "picky")
    assert (found.sort, found.reason.code) == (Sort.NEVER, Code.NO_SUCH_MODEL)
    assert changes(found)[0] == {"models": ""}


def test_another_device_would_start() -> None:
    nodes = (*NODES, a_node("npu", 8, device="ascend"))
    found = proof(a_world(a_job("waits", cards=8), nodes=nodes, holding=(full("a", "h1"), full("b", "h2"))), "waits")
    assert {"device": "ascend"} in changes(found)


def test_replicas_that_need_not_be_together_would_start() -> None:
    job = a_job("gang", cards=4, replicas=2)
    job = replace(job, spec=replace(job.spec, together=Together.ONE_NODE))
    found = proof(a_world(job, holding=(full("a", "h1", 4), full("b", "h2", 4))), "gang")
    assert changes(found)[0] == {"together": "any"}


def test_another_group_of_the_owner_would_start_it() -> None:
    groups = (Group("vision", (Quota("vision", "nvidia", 2000),)), Group("speech"))
    world = a_world(a_job("waits", cards=4), groups=groups)
    assert changes(proof(world, "waits", groups=("vision", "speech")))[0] == {"group": "speech"}
    assert {"group": "speech"} not in changes(proof(world, "waits"))


def test_work_that_may_be_interrupted_may_borrow() -> None:
    groups = (Group("vision"), Group("speech", (Quota("speech", "nvidia", guaranteed=12_000),)))
    world = a_world(a_job("waits", cards=4), groups=groups, holding=(full("a", "h", 4),))
    found = proof(world, "waits")
    assert (found.sort, found.reason.code) == (Sort.QUOTA, Code.BORROW)
    assert changes(found)[0] == {"preemptible": "true"}


def test_what_only_interruptible_work_may_borrow_can_never_start_as_it_is() -> None:
    groups = (Group("vision"), Group("speech", (Quota("speech", "nvidia", guaranteed=16_000),)))
    found = proof(a_world(a_job("waits", cards=4), groups=groups), "waits")
    assert (found.sort, found.reason.code) == (Sort.NEVER, Code.BORROW_NEVER)
    assert dict(found.reason.facts) | {"resource": "nvidia", "guaranteed": 0, "common": 0} == found.reason.facts
    assert changes(found)[0] == {"preemptible": "true"}


def test_a_promise_to_be_over_soon_lets_it_pass() -> None:
    ends = running(a_job("ends", cards=4, at=NOW), ("a", (0, 1, 2, 3)), cpu_milli=1000)
    ends = replace(ends, spec=replace(ends.spec, max_seconds=7200.0))
    world = a_world(
        a_job("large", cards=8, cpu=1, memory_gib=1, at=1.0), a_job("small", cards=4, at=2.0), holding=(ends,)
    )
    found = proof(replace(world, nodes=NODES[:1]), "small")
    assert changes(found)[0] == {"max_time": "90m"}


def test_as_much_memory_is_offered_as_there_is() -> None:
    holding = (running(a_job("h", cards=2), ("a", (0, 1)), cpu_milli=1000, memory=412 << 30),)
    found = proof(a_world(a_job("waits", cards=4, memory_gib=256), nodes=NODES[:1], holding=holding), "waits")
    assert changes(found)[0] == {"memory": "96G"}


def test_when_no_single_change_helps_several_together_are_tried() -> None:
    holding = (running(a_job("h", cards=4), ("a", (0, 1, 2, 3)), cpu_milli=1000, memory=380 << 30),)
    world = a_world(a_job("waits", cards=8, cpu=8, memory_gib=256), nodes=NODES[:1], holding=holding)
    assert changes(proof(world, "waits"))[0] == {"cards": "4", "cpu": "4", "memory": "128G"}


def test_no_change_helps_in_a_group_that_waits_for_its_first() -> None:
    groups = (Group("vision", fifo=True),)
    world = a_world(
        a_job("first", cards=8, replicas=2, at=1.0),
        a_job("next", cards=1, at=2.0),
        holding=(full("a", "h"),),
        groups=groups,
    )
    found = proof(world, "next")
    assert (found.sort, found.reason.code, found.remedies) == (Sort.ORDER, Code.FIFO, ())


# --- rules --------------------------------------------------------------------------------------------------------

BUSY = (full("a", "h1", owner="x", group="other"), full("b", "h2", owner="x", group="other"))
GUARANTEED = (Group("vision"), Group("speech", (Quota("speech", "nvidia", guaranteed=8000),)))


@pytest.mark.parametrize(
    ("first", "world", "code"),
    [
        (a_job("first", cards=8, group="speech"), {"groups": GUARANTEED}, Code.RULE_GUARANTEE),
        (a_job("first", cards=8, owner="eve"), {"policy": Policy(order=Ordering(people=("eve",)))}, Code.RULE_PEOPLE),
        (a_job("first", cards=8, priority=501), {}, Code.RULE_PRIORITY),
        (
            a_job("first", cards=8, group="speech"),
            {"past": {("vision", None): PastUse(1e6, NOW)}},
            Code.RULE_SHARE,
        ),
        (a_job("first", cards=8, owner="eve"), {"past": {("vision", "ann"): PastUse(1e6, NOW)}}, Code.RULE_USER_SHARE),
        (a_job("first", cards=8, at=99.0), {}, Code.RULE_AGE),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Code) else "",
)
def test_the_rule_that_puts_one_before_the_other_is_the_one_that_decides(
    first: Workload, world: dict[str, object], code: Code
) -> None:
    if first.submitted_at == 100.0:
        first = replace(first, submitted_at=200.0)  # it came later, so age does not speak for it
    snapshot = a_world(a_job("other", cards=8), first, holding=BUSY, **world)  # type: ignore[arg-type]
    found = ranked(Books.of(snapshot), "other", "first", NOW)
    assert found is not None
    assert (found.workload, found.rule.code) == ("first", code)
    assert [ahead.rule.code for ahead in proof(snapshot, "other").ahead] == [code]
    assert next(iter(plan(snapshot).waiting)) == "first"


def test_waiting_long_enough_tells_how_many_points_it_brought() -> None:
    aged = replace(a_job("aged", cards=8), submitted_at=NOW - 13 * 3600)
    snapshot = a_world(a_job("other", cards=8, priority=520), aged, holding=BUSY)
    found = ranked(Books.of(snapshot), "aged", "other", NOW)
    assert found is not None
    assert found.rule.facts == {"mine": 520, "theirs": 550, "waited": 13 * 3600.0, "points": 50}


def test_the_place_in_the_queue_is_the_order_in_which_the_pass_asks() -> None:
    jobs = [
        a_job(
            f"j{i}",
            cards=8,
            memory_gib=i + 1,
            owner=f"u{i % 3}",
            group=f"g{i % 2}",
            priority=500 + 100 * (i % 5 == 0),
            at=float(i),
        )
        for i in range(24)
    ]
    snapshot = a_world(*jobs, holding=BUSY)
    order = list(plan(snapshot).waiting)
    for place, id in enumerate(order):
        found = proof(snapshot, id)
        assert found.position == place
        assert [ahead.workload for ahead in found.ahead] == order[max(0, place - 20) : place][::-1]
