"""A board that is brought up to date is the one that would be made anew: after anything."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, running

from gpuyard.api.board import Board, Changed, make_board, renewed
from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.workload import State, Workload

MACHINES = st.sampled_from(["a", "b", "c"])
PLACES = st.lists(st.tuples(MACHINES, st.sampled_from([(), (0,), (0, 1), (1,)])), min_size=1, max_size=3)
Works = dict[str, tuple[list[tuple[str, tuple[int, ...]]], State]]
Cluster = dict[str, NodeState]
WORKS = st.dictionaries(
    st.sampled_from(["job0000001", "job0000002", "job0000003"]),
    st.tuples(PLACES, st.sampled_from([State.PLACED, State.RUNNING, State.STOPPING])),
)
CLUSTERS = st.dictionaries(MACHINES, st.sampled_from([NodeState.READY, NodeState.CORDONED, NodeState.LOST]))
WORLDS = st.tuples(CLUSTERS, WORKS)


def nodes_of(cluster: Cluster) -> list[Node]:
    return [a_node(name, 2, state=state) for name, state in sorted(cluster.items())]


def works_of(works: Works) -> dict[str, Workload]:
    return {id: replace(running(a_job(id), *places), state=state) for id, (places, state) in works.items()}


def different(before: Board, after: Board) -> list[str]:
    return sorted(n for n in {*before.rows, *after.rows} if before.rows.get(n) != after.rows.get(n))


@settings(deadline=None)
@given(st.lists(WORLDS, min_size=2, max_size=4))
def test_a_board_brought_up_to_date_is_as_one_made_anew_and_names_the_rows_that_differ(
    worlds: list[tuple[Cluster, Works]],
) -> None:
    board, known, there = make_board((), ()), dict[str, Workload](), dict[str, Node]()
    for cluster, works in worlds:
        nodes, held = nodes_of(cluster), works_of(works)
        named = {node.name: node for node in nodes}
        machines = [name for name in {*there, *named} if there.get(name) != named.get(name)]
        ids = [id for id in {*known, *held} if known.get(id) != held.get(id)]
        changed = Changed(machines, ids, {id: held[id] for id in ids if id in held})
        after, names = renewed(board, nodes, changed)
        anew = make_board(nodes, list(held.values()))
        assert after == anew
        assert names == different(board, anew)
        board, known, there = after, held, named


def test_a_change_that_is_told_twice_changes_nothing_the_second_time() -> None:
    nodes, job = [a_node("a", 2), a_node("b", 2)], running(a_job(), ("a", (0,)))
    board = make_board(nodes, [job])
    after, names = renewed(board, nodes, Changed(["a", "b"], [job.id], {job.id: job}))
    assert names == []
    assert after == board


def test_work_that_waits_touches_no_machine() -> None:
    nodes = [a_node("a", 2)]
    board = make_board(nodes, ())
    assert renewed(board, nodes, Changed((), ["job0000009"], {})) == (board, [])
