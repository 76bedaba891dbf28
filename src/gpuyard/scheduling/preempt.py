"""Whose running work makes room, at the lowest price: the work it loses since it was last saved, times its cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from gpuyard.domain.workload import Verdict, Workload
from gpuyard.scheduling.cheapest import spared
from gpuyard.scheduling.fit import Allotments, give_back
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.order import Stand, Turns
from gpuyard.scheduling.rights import Rights, Victim
from gpuyard.scheduling.room import Standing
from gpuyard.scheduling.service import NONE
from gpuyard.scheduling.snapshot import Eviction
from gpuyard.scheduling.victims import SPARED_AT_MOST, Search

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

_AS_THEY_ARE = nullcontext()
RIPENING_AT_MOST = 8  # so many that wait are told from when on others may be interrupted for them


def lost_seconds(workload: Workload, now: float) -> float:
    """How long ago its work was last saved; since its start if never."""
    attempt = workload.attempt
    if attempt is None:
        return 0.0
    begun = _begun(workload, now)
    return max(0.0, now - max(begun, attempt.saved_at or begun))


def _begun(workload: Workload, now: float) -> float:
    attempt = workload.attempt
    return attempt.started_at if attempt is not None and attempt.started_at is not None else now


class Preemption:
    """The search of one pass."""

    def __init__(self, books: Books, turns: Turns, now: float) -> None:
        self._books = books
        self._turns = turns
        self.stands: tuple[Stand, Stand] = (((1, 0, 0), NONE),) * 2  # where the one that asks stands: see Asking.stands
        self._now = now
        self._gone: dict[str, str] = {}  # victims of this pass, and for whom
        self._fruitless: dict[tuple[object, ...], tuple[float, ...]] = {}  # rights, and from which rank on
        self._ripe: dict[tuple[object, ...], float | None] = {}

    # --- what is under way ------------------------------------------------------------------------------------------

    def clearing_for(self, claimant: str) -> list[str]:
        """The work that is ending to make room for it."""
        ending = [id for id, workload in self._books.stopping.items() if _makes_room_for(workload) == claimant]
        return sorted(ending + [id for id, by in self._gone.items() if by == claimant])

    def goes(self, victim: str, claimant: str) -> None:
        """It leaves for this one, as was found out elsewhere."""
        self._gone[victim] = claimant

    @property
    def leaving(self) -> list[str]:
        return [*self._books.stopping, *self._gone]

    def fits_once_stopped(self, batch: Batch, standing: Standing) -> Allotments | None:
        """Where it would go once everything that is stopping anyway is gone; None when that is not enough."""
        ids = self.leaving
        return self._try_without(ids, batch, standing) if ids else None

    # --- who could go -----------------------------------------------------------------------------------------------

    def _rights(self, batch: Batch) -> Rights:
        return Rights(self._books, self._turns, batch, self.stands, self.leaving)

    @cached_property
    def _evictable(self) -> list[Workload]:
        """Preemptible work that has run long enough."""
        latest = self._now - self._books.policy.preempt.min_run
        return [w for w in self._books.preemptible.values() if _begun(w, self._now) <= latest]

    def has_victims_for(self, batch: Batch) -> bool:
        """Found out once for all that have the same rights."""
        if not self._evictable:
            return False
        rights = self._rights(batch)
        if self._is_no_better(rights, ()) or self._is_no_better(rights, (batch.ask,)):
            return False
        found = any(victim.id not in self._gone and rights.of(victim) for victim in self._evictable)
        if not found:
            self._fruitless[rights.key] = rights.rank
        return found

    def _is_no_better(self, rights: Rights, ask: tuple[object, ...]) -> bool:
        """Was it in vain for one with the same rights, and no later a rank?"""
        before = self._fruitless.get((*rights.key, *ask))
        return before is not None and all(mine >= its for mine, its in zip(rights.rank, before, strict=True))

    def ripe_at(self, batch: Batch) -> float | None:
        """When the first work that may be interrupted for it, but has not run long enough, has done so."""
        rule = self._books.policy.preempt
        if not rule.enabled or not self._books.preemptible:
            return None
        rights = self._rights(batch)
        key = (*rights.key, *rights.rank)
        if key not in self._ripe and len(self._ripe) < RIPENING_AT_MOST:
            begun = (at for at, id in self._oldest_first if rights.of(self._books.holding[id]))
            ripe = next(begun, inf) + rule.min_run
            self._ripe[key] = ripe if self._now < ripe < inf else None
        return self._ripe.get(key)

    @cached_property
    def _oldest_first(self) -> list[tuple[float, str]]:
        return sorted((_begun(workload, self._now), id) for id, workload in self._books.preemptible.items())

    # --- what is only lent ------------------------------------------------------------------------------------------

    def lent(self, batch: Batch) -> dict[str, float]:
        """Running work that it may interrupt because its turn is earlier, and from when on."""
        if not self._turns.by_rank or not self._books.policy.preempt.enabled:
            return {}
        rights, min_run = self._rights(batch), self._books.policy.preempt.min_run
        return {
            id: max(self._now, _begun(workload, self._now) + min_run)
            for id, workload in self._books.preemptible.items()
            if id not in self._gone and rights.of(workload) is not None
        }

    def without_lent(self, batch: Batch) -> AbstractContextManager[None]:
        """The books as if these were gone: so what one keeps does not depend on who has borrowed it."""
        lent = self.lent(batch)
        return self._without(lent) if lent else _AS_THEY_ARE

    def could_go(self, batch: Batch) -> Callable[[str], bool]:
        """Of running work: does it leave anyway, or has this one a right to its place, if only in a while?"""
        books, rights = self._books, self._rights(batch)

        def could(id: str) -> bool:
            workload = books.preemptible.get(id) if books.policy.preempt.enabled else None
            return id in self._gone or (workload is not None and rights.of(workload) is not None)

        return could

    # --- the cheapest -----------------------------------------------------------------------------------------------

    def victims_for(self, batch: Batch, claimant: str, standing: Standing) -> list[Eviction]:
        """The cheapest work whose end would start the claimant; empty when there is none."""
        rights = self._rights(batch)
        candidates = sorted(self._candidates(rights))

        def works(victims: Sequence[Victim]) -> bool:
            ids = [*self.leaving, *(victim.id for victim in victims)]
            return self._try_without(ids, batch, standing) is not None

        if self._turns.by_rank and not works(candidates):  # many may ask, each with a rank of its own
            self._fruitless[(*rights.key, batch.ask)] = rights.rank
            return []
        search = Search(self._books, rights, candidates, batch, standing)
        with self._without(self.leaving):
            chosen = search.node_by_node()
        if chosen is None or not works(chosen):
            chosen = search.one_by_one(works)
        elif 1 < len(chosen) <= SPARED_AT_MOST:
            chosen = spared(chosen, works)
        self._gone.update((victim.id, claimant) for victim in chosen)
        return [Eviction(victim.id, claimant, victim.right.rule, victim.lost_seconds) for victim in chosen]

    def _candidates(self, rights: Rights) -> Iterator[Victim]:
        for workload in self._evictable:
            right = rights.of(workload) if workload.id not in self._gone else None
            if right is not None:
                lost = lost_seconds(workload, self._now)
                later = -self._turns.rank_now(workload)
                yield Victim(lost * self._books.held[workload.id].rate, later, workload.id, right, lost)

    # --- trying -----------------------------------------------------------------------------------------------------

    def _try_without(self, ids: Sequence[str], batch: Batch, standing: Standing) -> Allotments | None:
        """Where it could start if these were gone. The books are left as they were."""
        books = self._books
        with self._without(ids):
            if books.purse.refusal(batch.payer, batch.amounts, standing) is not None:
                return None
            taken = books.place(batch, standing).taken
            if taken is not None:
                give_back(taken, books.rooms)
            return taken

    @contextmanager
    def _without(self, ids: Iterable[str]) -> Iterator[None]:
        """The books as if these were gone."""
        books = self._books
        gone = [books.held[id] for id in dict.fromkeys(ids) if id in books.held]
        for held in gone:
            books.purse.refund(held.payer, held.amounts)
            for allotment in held.allotments:
                books.rooms.give_back(allotment)
        try:
            yield
        finally:
            for held in reversed(gone):
                books.purse.spend(held.payer, held.amounts)
                for allotment in held.allotments:
                    books.rooms.take(allotment)


def _makes_room_for(workload: Workload) -> str:
    ending = workload.attempt.ending if workload.attempt else None
    return str(ending.reason.facts.get("by", "")) if ending and ending.verdict is Verdict.PREEMPTED else ""
