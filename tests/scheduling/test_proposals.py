"""Who waits for cards that are free, only not together."""

from __future__ import annotations

from dataclasses import replace

from tests.draw import a_job, a_node, running
from tests.scheduling.test_defragment import MOVE, NOW, policy, small, waiting

from gpuyard.domain.cluster import NodeState
from gpuyard.domain.policy import Defragment, Defragmenting
from gpuyard.domain.workload import Where, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.proposals import fragments
from gpuyard.scheduling.snapshot import Snapshot

NODES = (a_node("a", 4), a_node("b", 4), a_node("c", 4))
PROPOSE = Defragment(Defragmenting.PROPOSE)


def firm(id: str, node: str, *cards: int) -> Workload:
    return running(a_job(id, cards=len(cards), cpu=1, memory_gib=1, at=100.0), (node, cards))


def pinned(job: Workload, *nodes: str) -> Workload:
    roles = tuple(replace(role, where=Where(nodes=nodes)) for role in job.spec.roles)
    return replace(job, spec=replace(job.spec, roles=roles))


def told(job: Workload, *holding: Workload, rule: Defragment = PROPOSE) -> list[tuple[str, int]]:
    """Who waits apart, and by how many moves it could start."""
    books = Books.of(Snapshot(NOW, NODES, (job,), holding, policy=policy(rule)))
    found = fragments(Inquiry(books, NOW)).waiting
    return [(one.workload.id, 0 if one.moves is None else len(one.moves.moves)) for one in found]


# Three cards are free on a and on c, none on b, and nothing may be moved.
FIRM = (firm("firm000001", "a", 0), firm("firm000002", "b", 0, 1, 2, 3), firm("firm000003", "c", 0))


def test_one_waits_apart_where_cards_enough_are_free_in_places_it_may_go_to() -> None:
    assert told(waiting(4), *FIRM) == [("waits00001", 0)]
    assert told(pinned(waiting(4), "a", "c"), *FIRM) == [("waits00001", 0)]
    assert told(waiting(7), *FIRM) == []


def test_one_that_may_use_none_of_the_free_cards_does_not_wait_for_them_to_come_together() -> None:
    for rule in (PROPOSE, MOVE, Defragment(Defragmenting.NEVER)):
        assert told(pinned(waiting(4), "b"), *FIRM, rule=rule) == []


def test_machines_with_cards_that_take_no_new_work_are_counted_and_not_listed() -> None:
    closed = (replace(NODES[0], state=NodeState.CORDONED), replace(NODES[1], state=NodeState.LOST))
    bare = a_node("d", 0, state=NodeState.CORDONED)
    books = Books.of(Snapshot(NOW, (*closed, NODES[2], bare), (), (), policy=policy(PROPOSE)))
    found = fragments(Inquiry(books, NOW))
    assert ([node.node for node in found.nodes], found.closed) == (["c"], 2)


def test_one_that_moves_would_start_is_told_even_where_too_few_are_free_for_it_as_they_are() -> None:
    movable = small("small00001", 1, "b", 0)
    assert told(pinned(waiting(4), "b"), FIRM[0], movable, FIRM[2]) == [("waits00001", 1)]
