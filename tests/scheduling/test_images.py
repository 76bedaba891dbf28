"""Of places that are equally good, the one that holds the image is taken; and an image decides nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.draw import a_job, a_node, running
from tests.scheduling import rules
from tests.scheduling.worlds import worlds

from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.resources import GIB, Cards
from gpuyard.domain.workload import Together, Where, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide, plan
from gpuyard.scheduling.snapshot import Placement, Snapshot

IMAGE = "docker.io/pytorch/pytorch:2.4"
OTHER_MODEL = replace(a_node("b", 8), cards=tuple(replace(card, model="H100") for card in a_node("b", 8).cards))


def holding(node: Node, *images: str) -> Node:
    return replace(node, images=images or (IMAGE,))


def in_image(job: Workload, image: str | None = "pytorch/pytorch:2.4") -> Workload:
    roles = tuple(replace(role, image=image) for role in job.spec.roles)
    return replace(job, spec=replace(job.spec, roles=roles))


def placement(
    job: Workload, *nodes: Node, busy: Sequence[Workload] = (), placing: Placing = Placing.BEST_FIT
) -> Placement:
    (found,) = plan(Snapshot(1000.0, nodes, (job,), tuple(busy), policy=Policy(placing=placing))).placements
    return found


def place(job: Workload, *nodes: Node, busy: Sequence[Workload] = (), placing: Placing = Placing.BEST_FIT) -> list[str]:
    return sorted(
        allotment.node for allotment in placement(job, *nodes, busy=busy, placing=placing).allotments.values()
    )


@pytest.mark.parametrize("placing", [Placing.BEST_FIT, Placing.SPREAD])
@pytest.mark.parametrize("cards", [0, 0.5, 1, 8])
def test_of_nodes_that_are_alike_the_one_that_holds_the_image_is_taken(cards: float, placing: Placing) -> None:
    nodes = (a_node("a", 8), holding(a_node("b", 8)), a_node("c", 8))
    assert place(in_image(a_job(cards=cards)), *nodes, placing=placing) == ["b"]
    assert place(a_job(cards=cards), *nodes, placing=placing) == ["a"]


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ("python:3.12", "docker.io/library/python:3.12"),
        ("python", "docker.io/library/python:latest"),
        ("ours:1", "localhost/ours:1"),
        ("reg.example:5000/a/b", "reg.example:5000/a/b:latest"),
        ("python@sha256:" + "0" * 64, "docker.io/library/python@sha256:" + "0" * 64),
    ],
)
def test_an_image_is_known_by_the_name_people_write(asked: str, held: str) -> None:
    nodes = (a_node("a", 8), holding(a_node("b", 8), "docker.io/library/other:1", held))
    assert place(in_image(a_job(cards=1), asked), *nodes) == ["b"]
    assert place(in_image(a_job(cards=1), "python:3.11"), *nodes) == ["a"]


def test_an_image_is_not_worth_breaking_into_an_empty_node() -> None:
    used = running(a_job("used000001", cards=1), ("b", (0,)))
    assert place(in_image(a_job(cards=1)), holding(a_node("a", 8)), a_node("b", 8), busy=[used]) == ["b"]


def test_an_image_is_not_worth_opening_a_card_where_half_of_another_is_left() -> None:
    half = running(a_job("used000001", cards=0.5), ("b", (0,)))
    assert place(in_image(a_job(cards=0.5)), holding(a_node("a", 8)), a_node("b", 8), busy=[half]) == ["b"]


def test_an_image_is_not_worth_leaving_smaller_parts_of_cards() -> None:
    """As much is left of the cards of both, but on the first a part of the very size."""
    parts = [("a", 0, 0.7), ("a", 1, 0.3), ("b", 0, 0.5), ("b", 1, 0.5)]
    used = [running(a_job(f"used{node}{card}", cards=part), (node, (card,))) for node, card, part in parts]
    assert place(in_image(a_job(cards=0.3)), a_node("a", 8), holding(a_node("b", 8)), busy=used) == ["a"]


def test_a_half_goes_beside_the_half_where_the_image_is() -> None:
    halves = [running(a_job(f"used00000{node}", cards=0.5), (node, (0,))) for node in "abc"]
    nodes = (a_node("a", 8), holding(a_node("b", 8)), a_node("c", 8))
    assert place(in_image(a_job(cards=0.5)), *nodes, busy=halves) == ["b"]


@pytest.mark.parametrize(("cpu_milli", "memory"), [(8_100, 0), (40_000, 0), (0, 65 * GIB)])
def test_an_image_is_not_worth_cores_and_memory_that_other_cards_will_need(cpu_milli: int, memory: int) -> None:
    """Both have eight cards free, but the one with the image more than a card's worth of the others besides."""
    crowd = running(a_job("crowd00001"), ("a", ()), cpu_milli=cpu_milli, memory=memory)
    assert place(in_image(a_job(cards=1)), a_node("a", 8), holding(a_node("b", 8)), busy=[crowd]) == ["a"]


def test_a_few_cores_less_than_a_card_comes_with_do_not_matter() -> None:
    crowd = running(a_job("crowd00001"), ("a", ()), cpu_milli=200)
    other = running(a_job("crowd00002"), ("b", ()), cpu_milli=100)
    assert place(in_image(a_job(cards=1)), a_node("a", 8), holding(a_node("b", 8)), busy=[crowd, other]) == ["b"]


@pytest.mark.parametrize("other", [a_node("b", 8, cpu=128), a_node("b", 8, memory_gib=1024), OTHER_MODEL])
def test_a_machine_of_another_build_is_not_as_good(other: Node) -> None:
    assert place(in_image(a_job(cards=1)), a_node("a", 8), holding(other)) == ["a"]


def test_no_image_is_worth_a_refusal() -> None:
    """Its share of the memory is a little larger where the image is: too large for what its group may use."""
    groups = {"vision": Group("vision", (Quota("vision", "memory", 128 * GIB - 50),))}
    large, small = a_node("c", 8), a_node("b", 8)
    large = replace(large, memory=large.memory + 80_000)
    tight = replace(a_node("a", 8), memory=small.memory - 800)
    gang = in_image(a_job(cards=1, replicas=2))
    gang = replace(gang, spec=replace(gang.spec, together=Together.SPREAD))
    world = Snapshot(1000.0, (tight, small, holding(large)), (gang,), (), groups)
    (found,) = plan(world).placements
    assert sorted(allotment.node for allotment in found.allotments.values()) == ["a", "b"]


def test_a_machine_is_not_as_good_whose_other_cards_are_free_as_well() -> None:
    models = tuple(Card(index, "nvidia", "A100" if index < 2 else "V100") for index in range(4))
    one, other = replace(a_node("a"), cards=models), replace(a_node("b"), cards=models)
    used = running(a_job("used000001", cards=2), ("a", (2, 3)), cpu_milli=0, memory=0)
    job = in_image(a_job(cards=1))
    asked = replace(job.spec.roles[0].resources, cards=Cards("nvidia", 1000, ("A100",)))
    job = replace(job, spec=replace(job.spec, roles=(replace(job.spec.roles[0], resources=asked),)))
    assert place(job, one, holding(other), busy=[used]) == ["a"]


def test_roles_do_not_stand_in_each_others_way_for_an_image() -> None:
    """The first would go to the node that hundreds of the second are pinned to."""
    gang = in_image(a_job(cards=8, cpu=64))
    pinned = replace(a_job(cpu=0.1, replicas=201).spec.roles[0], name="ps", where=Where(nodes=("b",)))
    gang = replace(gang, spec=replace(gang.spec, roles=(*gang.spec.roles, pinned)))
    assert place(gang, a_node("a", 8), holding(a_node("b", 8))) == ["a"] + 201 * ["b"]


def test_images_come_and_go() -> None:
    nodes = (a_node("a", 8), a_node("b", 8), a_node("c", 8))
    books = Books.of(Snapshot(1000.0, nodes, (in_image(a_job(cards=1)),)))
    for holder in "cba":
        books.renew_images([holding(node) if node.name == holder else node for node in nodes])
        (found,) = decide(books, 1000.0).placements
        assert [allotment.node for allotment in found.allotments.values()] == [holder]


def test_where_an_admin_has_put_the_servers_in_order_that_order_holds() -> None:
    nodes = (a_node("a", 8), holding(a_node("b", 8)))
    assert place(in_image(a_job(cards=1)), *nodes, placing=Placing.IN_ORDER) == ["a"]


def test_a_gang_takes_the_nodes_with_the_image_first_and_then_others() -> None:
    nodes = (a_node("a", 8), holding(a_node("b", 8)), a_node("c", 8), holding(a_node("d", 8)))
    assert place(in_image(a_job(cards=8, replicas=2)), *nodes) == ["b", "d"]
    assert place(in_image(a_job(cards=8, replicas=3)), *nodes) == ["a", "b", "d"]


@pytest.mark.parametrize("together", [Together.ONE_NODE, Together.SPREAD])
def test_one_node_or_spread_is_kept_to(together: Together) -> None:
    gang = in_image(a_job(cards=2, replicas=2))
    gang = replace(gang, spec=replace(gang.spec, together=together))
    tight = running(a_job("used000001", cards=6), ("a", tuple(range(6))))  # has room for one of them only
    nodes = (a_node("a", 8), a_node("b", 8), holding(a_node("c", 8)))
    assert place(gang, *nodes, busy=[tight]) == (["c", "c"] if together is Together.ONE_NODE else ["a", "c"])


def test_linked_chips_are_not_torn_apart_for_an_image() -> None:
    """Four are free on both: in one ring on the first, two in each ring on the second."""
    ring = running(a_job("ring000001", cards=4, device="ascend"), ("a", (0, 1, 2, 3)))
    torn = running(a_job("torn000001", cards=4, device="ascend"), ("b", (0, 1, 4, 5)))
    one, other = a_node("a", 8, device="ascend"), a_node("b", 8, device="ascend")
    job = in_image(a_job(cards=1, device="ascend"))
    assert place(job, one, holding(other), busy=[ring, torn]) == place(job, one, other, busy=[ring, torn])
    assert place(job, holding(one), other, busy=[ring, torn]) == place(job, one, other, busy=[ring, torn])


def test_it_is_said_which_images_are_at_hand_where_that_made_a_difference() -> None:
    job = in_image(a_job(cards=8))
    assert placement(job, a_node("a", 8), holding(a_node("b", 8))).images == ("pytorch/pytorch:2.4",)
    assert placement(job, a_node("a", 8), a_node("b", 8)).images == ()
    assert placement(job, holding(a_node("a", 8)), holding(a_node("b", 8))).images == ()
    gang = in_image(a_job(cards=8, replicas=2))
    assert placement(gang, a_node("a", 8), holding(a_node("b", 8))).images == ()


def without_images(world: Snapshot) -> Snapshot:
    return replace(world, nodes=tuple(replace(node, images=()) for node in world.nodes))


@given(worlds(queue=5))
@settings(max_examples=200, deadline=None)
def test_an_image_never_decides_whether_something_starts(world: Snapshot) -> None:
    for job in world.queue:
        alone = replace(world, queue=(job,))
        some, none = plan(alone), plan(without_images(alone))
        assert len(some.placements) == len(none.placements)
        assert dict(some.waiting) == dict(none.waiting)


@given(worlds(queue=5))
@settings(max_examples=200, deadline=None)
def test_for_an_image_no_node_is_taken_that_has_more_cards_free_than_the_best_has(world: Snapshot) -> None:
    used = {(one.node, share.index) for work in world.holding for one in rules.allotments(work) for share in one.cards}

    def free(placed: Placement) -> int:
        (name,) = (one.node for one in placed.allotments.values())
        (node,) = (node for node in world.nodes if node.name == name)
        return sum((name, card.index) not in used and not card.trouble for card in node.cards)

    for job in world.queue:
        alone = replace(world, queue=(job,))
        some, none = plan(alone).placements, plan(without_images(alone)).placements
        if some and len(some[0].allotments) == 1:
            assert free(some[0]) == free(none[0])
