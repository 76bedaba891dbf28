"""What is fragmented, for whom, and which moves would help: asked of a pass that is kept open. Nothing is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gpuyard.domain.cluster import NodeState
from gpuyard.domain.policy import Defragmenting
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.copies import Served, served
from gpuyard.scheduling.defragment import Defragmentation, Moves, are_enough_free, are_enough_free_for_it
from gpuyard.scheduling.fragments import Typical, fragmented, typical_from
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.measure import that_fit
from gpuyard.scheduling.plan import Verdict
from gpuyard.scheduling.room import Room, Standing

LOOKED_AT = 50  # different requests that wait
NODES_NAMED = 20
TYPICAL_AT_MOST = 100  # of the typical requests, the most frequent: where no two are alike the others add little


class Fragment(NamedTuple):
    """The cards of one model on one node, in thousandths."""

    node: str
    device: str
    model: str
    cards: int
    free: int
    unusable: int  # of what is free: the mean over typical requests


class Apart(NamedTuple):
    """One that waits though cards enough for it are free, only not together; and the moves that would start it."""

    workload: Workload
    moves: Moves | None
    lacks: str  # what it has not enough of beside the cards: cpu, memory; empty when the cards are apart


class Fragments(NamedTuple):
    mode: Defragmenting
    requests: tuple[Served, ...]
    learned: bool  # what is typical, from what was submitted of late; else it is what runs or waits now
    nodes: tuple[Fragment, ...]
    closed: int  # machines with cards that take no new work, and so are not among the nodes
    waiting: tuple[Apart, ...]


def fragments(inquiry: Inquiry) -> Fragments:
    books = inquiry.books
    apart = [found for verdict in _busy(inquiry)[:LOOKED_AT] if (found := _apart(inquiry, verdict)) is not None]
    typical = that_fit(books.typical or _asked_now(books), _machines(books))[:TYPICAL_AT_MOST]
    requests, nodes = served(typical, books.rooms), tuple(_nodes(books, typical))
    mode, closed = books.policy.defragment.mode, _closed(books)
    return Fragments(mode, requests, bool(books.typical), nodes, closed, tuple(apart))


def moves_for(inquiry: Inquiry, id: str) -> Moves | None:
    """The moves that would start this one; None as well for those behind another one that asks for the same."""
    if inquiry.books.policy.defragment.mode is Defragmenting.NEVER:
        return None
    verdict = next((one for one in _busy(inquiry) if _first(one) == id), None)
    return None if verdict is None else _moves(inquiry, verdict)


def beside_cards(busy: Reason) -> str:
    """What it has not enough of where cards are free; empty when that is cards."""
    resource = busy.facts.get("resource")
    return resource if resource in ("cpu", "memory") else ""


def as_facts(inquiry: Inquiry, moves: Moves, lacks: str) -> list[Reason]:
    """For the answer to why it waits."""
    books = inquiry.books
    told = [
        because(
            Code.MOVE_FACT,
            job=move.workload,
            job_name=books.holding[move.workload].spec.name,
            source=_named(one.node for one in books.held[move.workload].allotments),
            nodes=_named(one.node for one in move.places.values()),
            lost_seconds=round(move.lost_seconds, 1),
        )
        for move in moves.moves
    ]
    nodes, mode = _named(one.node for one in moves.place.values()), books.policy.defragment.mode.value
    return [because(Code.MOVES_FACT, moves=len(moves.moves), nodes=nodes, mode=mode, lacks=lacks), *told]


def _named(nodes: Iterable[str]) -> list[str]:
    return sorted(set(nodes))[:NODES_NAMED]


# --- those that wait ------------------------------------------------------------------------------------------------


def _busy(inquiry: Inquiry) -> list[Verdict]:
    """Those that wait for running work, the first of each batch, in the order in which they were asked."""
    return [one for one in inquiry.one.verdicts if one.reason.code is Code.BUSY]


def _first(verdict: Verdict) -> str:
    return verdict.batch.jobs[verdict.position][1]


def _apart(inquiry: Inquiry, verdict: Verdict) -> Apart | None:
    books, ask = inquiry.books, verdict.batch.ask
    if not are_enough_free(ask, books.rooms):
        return None
    never = books.policy.defragment.mode is Defragmenting.NEVER
    moves = None if never else _moves(inquiry, verdict)
    if moves is None and not are_enough_free_for_it(ask, books.rooms):
        return None  # what is free is not for it, wherever it were
    return Apart(books.line.workloads[_first(verdict)], moves, beside_cards(verdict.reason))


def _moves(inquiry: Inquiry, verdict: Verdict) -> Moves | None:
    """As the pass would find them, had it the order to carry them out."""
    leaves, batch = inquiry.one.preemption, verdict.batch
    standing = Standing(verdict.seq)
    if leaves.fits_once_stopped(batch, standing) is not None:
        return None
    return Defragmentation(inquiry.books, inquiry.now).moves_for(batch, standing, leaves.leaving)


# --- cards ----------------------------------------------------------------------------------------------------------


def _nodes(books: Books, typical: tuple[Typical, ...]) -> Iterable[Fragment]:
    for room in books.rooms:
        for stack in room.stacks:
            if stack.device:
                unusable = fragmented(stack, typical)
                cards = len(stack.indices)
                yield Fragment(room.node.name, stack.device, stack.model, cards, stack.milli, unusable)


def _closed(books: Books) -> int:
    return sum(1 for node in books.nodes if node.cards and node.state is not NodeState.READY)


def _machines(books: Books) -> Iterable[Room]:
    """Those that take no new work as well: what fits only there will fit again."""
    return [Room(node, 0, books.policy, 0) for node in books.nodes]


def _asked_now(books: Books) -> tuple[Typical, ...]:
    """Until something is learned: what those ask for that run or wait now."""
    counts: Counter[Resources] = Counter()
    for workload in (*books.line.workloads.values(), *books.holding.values()):
        for role in workload.spec.roles:
            if role.resources.cards is not None:
                counts[role.resources] += role.replicas
    return typical_from(counts)


__all__ = ["Apart", "Fragment", "Fragments", "as_facts", "beside_cards", "fragments", "moves_for"]
