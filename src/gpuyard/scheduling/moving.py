"""Moves in a pass: what was promised is honoured before anyone is asked, and new moves are decided where they help."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from gpuyard.domain.policy import Defragmenting
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.scheduling import promised
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.defragment import Defragmentation
from gpuyard.scheduling.fit import Allotments, Ask
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.promised import FIRST
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.room import Keep, Standing
from gpuyard.scheduling.snapshot import Eviction, Rule

if TYPE_CHECKING:
    from gpuyard.scheduling.plan import Pass


class Moving:
    """Of one pass. It does not hold on to it: two that hold each other stay until somebody looks for such circles."""

    def __init__(self, books: Books, now: float) -> None:
        self._search = Defragmentation(books, now)
        self._fruitless: set[tuple[Ask, int]] = set()  # those that ask the same, with the same priority, find the same

    # --- what was promised ----------------------------------------------------------------------------------------

    def honour(self, one: Pass) -> None:
        """Before anyone is asked, work that moves has the place it was promised, and so has the one it moves for."""
        books = one.books
        if not books.promised:
            return
        for room, keep in promised.keeps(books):
            one.keep(room, keep)
        promised.keep_quota(books)
        back = promised.returning(books)
        lost = [it for it in back if not _begin(one, it.id, it.batch, it.position, promised.taken_again(books, it))]
        for it in lost:
            _begin(one, it.id, it.batch, it.position, books.place(it.batch, FIRST).taken)
        for id, batch, position, some_stay in promised.awaiting(books):
            if some_stay:
                _keep_for(one, id, batch)
            else:
                _begin(one, id, batch, position, books.place(batch, FIRST).taken)

    # --- new moves ------------------------------------------------------------------------------------------------

    def bring_together(self, one: Pass, batch: Batch, position: int, standing: Standing) -> Reason | None:
        """Have preemptible work move, where cards are free but not together and the policy says so. None when it must
        simply wait: also while others are on the way out, for it or anyway, and that will do."""
        key = (batch.ask, batch.priority)
        rule, (submitted, id) = one.books.policy.defragment, batch.jobs[position]
        if rule.mode is not Defragmenting.MOVE or submitted > one.now - rule.after:
            return None
        if not one.books.preemptible or key in self._fruitless:
            return None
        leaves = one.preemption
        if leaves.clearing_for(id) or leaves.fits_once_stopped(batch, standing) is not None:
            return None
        found = self._search.moves_for(batch, Standing(standing.seq), leaves.leaving)
        if found is None:
            self._fruitless.add(key)
            return None
        for move in found.moves:
            one.evictions.append(Eviction(move.workload, id, Rule.DEFRAGMENT, move.lost_seconds, move.places))
            leaves.goes(move.workload, id)
            for place in move.places.values():
                keep = Keep(standing.seq, move.workload, place.cpu_milli, place.memory, place.cards, -inf)
                one.keep(one.books.rooms.by_name[place.node], keep)
        one.keep_place(batch, id, found.place)
        return because(Code.MOVING, jobs=leaves.clearing_for(id))


def _begin(one: Pass, id: str, batch: Batch, position: int, taken: Allotments | None) -> bool:
    if taken is None:
        return False
    one.take(batch, position, taken, amounts_of(taken.values()), FIRST)
    one.early[id] = None
    return True


def _keep_for(one: Pass, id: str, batch: Batch) -> None:
    """It starts when the last of those that move for it has left."""
    place = one.preemption.fits_once_stopped(batch, FIRST)
    if place is not None:
        one.keep_place(batch, id, place)
        one.early[id] = because(Code.MOVING, jobs=one.preemption.clearing_for(id))
