"""Whose running work makes room for whom, at the lowest price.

Only preemptible work, and only for the entitled: a group that takes back what is guaranteed to it, or a higher priority
in the same group or against groups beyond their guarantee. The price of a victim is the work it loses since it was last
saved, times its cards. Nobody can win back in this way what was just taken, so two never push each other out in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.workload import Verdict, Workload
from gpuyard.scheduling.fit import Allotments, give_back, place_gang
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.room import Standing
from gpuyard.scheduling.snapshot import Eviction, Rule

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

PRUNED_AT_MOST = 64


class Victim(NamedTuple):
    price: float
    id: str
    rule: Rule
    lost_seconds: float


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

    def __init__(self, books: Books, now: float) -> None:
        self._books = books
        self._now = now
        self._gone: dict[str, str] = {}  # victims of this pass, and for whom

    def clearing_for(self, claimant: str) -> list[str]:
        """The work that is ending to make room for it."""
        ending = [id for id, workload in self._books.stopping.items() if _makes_room_for(workload) == claimant]
        return sorted(ending + [id for id, by in self._gone.items() if by == claimant])

    @cached_property
    def _evictable(self) -> list[Workload]:
        """Preemptible work that has run long enough."""
        latest = self._now - self._books.policy.preempt.min_run
        return [w for w in self._books.preemptible.values() if _begun(w, self._now) <= latest]

    def has_victims_for(self, batch: Batch) -> bool:
        return any(self._right(batch, victim) is not None for victim in self._evictable if victim.id not in self._gone)

    def fits_once_stopped(self, batch: Batch, standing: Standing) -> Allotments | None:
        """Where it would go once everything that is stopping anyway is gone; None when that is not enough."""
        ids = [*self._books.stopping, *self._gone]
        return self._try_without(ids, batch, standing) if ids else None

    def victims_for(self, batch: Batch, claimant: str, standing: Standing) -> list[Eviction]:
        """The cheapest work whose end would start the claimant; empty when there is none."""
        candidates = sorted(self._candidates(batch))
        base = [*self._books.stopping, *self._gone]
        chosen = self._enough(base, candidates, batch, standing)
        if chosen is None:
            return []
        chosen = self._spare(base, chosen, batch, standing)
        self._gone.update((victim.id, claimant) for victim in chosen)
        return [Eviction(victim.id, claimant, victim.rule, victim.lost_seconds) for victim in chosen]

    def _candidates(self, batch: Batch) -> list[Victim]:
        found = []
        for workload in self._evictable:
            rule = self._right(batch, workload) if workload.id not in self._gone else None
            if rule is not None:
                lost = lost_seconds(workload, self._now)
                found.append(Victim(lost * self._books.held[workload.id].rate, workload.id, rule, lost))
        return found

    def _right(self, batch: Batch, victim: Workload) -> Rule | None:
        """By which right the batch may push this work out; None when it has none."""
        purse = self._books.purse
        contested = [resource for resource, amount in batch.amounts.items() if amount and resource in purse.common]
        other = victim.group != batch.group
        if contested and other and purse.is_within_guarantee(batch.group, batch.amounts):
            mine = self._books.held[victim.id].amounts
            shared = [resource for resource in contested if mine.get(resource)]
            if shared and purse.is_beyond_guarantee(victim.group, shared):
                return Rule.GUARANTEE
        if not self._books.policy.preempt.for_priority or batch.priority <= victim.spec.priority:
            return None
        if not other:
            return Rule.PRIORITY
        promised = [resource for resource in self._books.held[victim.id].amounts if resource in purse.common]
        if promised and not purse.is_beyond_guarantee(victim.group, promised):
            return None
        return Rule.PRIORITY

    def _enough(
        self, base: list[str], candidates: list[Victim], batch: Batch, standing: Standing
    ) -> list[Victim] | None:
        """The cheapest first, as many as needed. More victims never make it worse, so the number is found by halves."""
        if not candidates or not self._works(base, candidates, batch, standing):
            return None
        low, high = 1, len(candidates)
        while low < high:
            middle = (low + high) // 2
            if self._works(base, candidates[:middle], batch, standing):
                high = middle
            else:
                low = middle + 1
        return candidates[:low]

    def _spare(self, base: list[str], chosen: list[Victim], batch: Batch, standing: Standing) -> list[Victim]:
        """Let go those that are not needed after all, the dearest first."""
        for victim in list(reversed(chosen))[:PRUNED_AT_MOST]:
            rest = [one for one in chosen if one is not victim]
            if rest and self._works(base, rest, batch, standing):
                chosen = rest
        return chosen

    def _works(self, base: list[str], victims: Sequence[Victim], batch: Batch, standing: Standing) -> bool:
        return self._try_without([*base, *(victim.id for victim in victims)], batch, standing) is not None

    def _try_without(self, ids: Sequence[str], batch: Batch, standing: Standing) -> Allotments | None:
        """Could it start if these were gone? The books are left as they were."""
        books = self._books
        gone = [books.held[id] for id in dict.fromkeys(ids) if id in books.held]
        for held in gone:
            books.purse.refund(held.payer, held.amounts)
            for allotment in held.allotments:
                books.rooms.give_back(allotment)
        taken = None
        if books.purse.refusal(batch.payer, batch.amounts, standing) is None:
            taken = place_gang(batch.ask, books.rooms, standing)
        if taken is not None:
            give_back(taken, books.rooms)
            if books.purse.refusal(batch.payer, amounts_of(taken.values()), standing) is not None:
                taken = None
        for held in reversed(gone):
            books.purse.spend(held.payer, held.amounts)
            for allotment in held.allotments:
                books.rooms.take(allotment)
        return taken


def _makes_room_for(workload: Workload) -> str:
    ending = workload.attempt.ending if workload.attempt else None
    return str(ending.reason.facts.get("by", "")) if ending and ending.verdict is Verdict.PREEMPTED else ""
