"""Whose running work makes room for whom, at the lowest price.

Only preemptible work, and only for the entitled: a group that takes back what is guaranteed to it, or a higher priority
in the same group or against groups beyond their guarantee; a group that is beyond its guarantee loses no more than it
takes to be within. The price of a victim is the work it loses since it was last saved, times its cards. Nobody can win
back in this way what was just taken, so two never push each other out in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.workload import Verdict, Workload
from gpuyard.scheduling.cheapest import cheapest, spared
from gpuyard.scheduling.fit import Allotments, RoleAsk, give_back
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.order import Head, Turns, inside_head
from gpuyard.scheduling.room import Stack, Standing
from gpuyard.scheduling.snapshot import Eviction, Rule

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

SPARED_AT_MOST = 64
RIPENING_AT_MOST = 8  # so many that wait are told from when on others may be interrupted for them
ByGroup = dict[tuple[str, str], int]  # (group, resource) -> amount


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

    def __init__(self, books: Books, turns: Turns, now: float) -> None:
        self._books = books
        self._turns = turns
        self.stands: tuple[Head, Head] = (
            (1, 0, 0),
            (1, 0, 0),
        )  # where the one that asks stands: by itself, and as it is
        self._now = now
        self._gone: dict[str, str] = {}  # victims of this pass, and for whom
        self._fruitless: set[tuple[object, ...]] = set()
        self._ripe: dict[tuple[object, ...], float | None] = {}

    # --- what is under way ------------------------------------------------------------------------------------------

    def clearing_for(self, claimant: str) -> list[str]:
        """The work that is ending to make room for it."""
        ending = [id for id, workload in self._books.stopping.items() if _makes_room_for(workload) == claimant]
        return sorted(ending + [id for id, by in self._gone.items() if by == claimant])

    @property
    def _leaving(self) -> list[str]:
        return [*self._books.stopping, *self._gone]

    def fits_once_stopped(self, batch: Batch, standing: Standing) -> Allotments | None:
        """Where it would go once everything that is stopping anyway is gone; None when that is not enough."""
        ids = self._leaving
        return self._try_without(ids, batch, standing) if ids else None

    # --- who may push out whom --------------------------------------------------------------------------------------

    @cached_property
    def _evictable(self) -> list[Workload]:
        """Preemptible work that has run long enough."""
        latest = self._now - self._books.policy.preempt.min_run
        return [w for w in self._books.preemptible.values() if _begun(w, self._now) <= latest]

    def has_victims_for(self, batch: Batch) -> bool:
        """Found out once for all that have the same rights."""
        rights = (batch.group, batch.priority, self.stands, *self._turns.taken_back(batch))
        if rights in self._fruitless:
            return False
        freed = self._freed(self._leaving)
        found = any(self._right(batch, v, freed) is not None for v in self._evictable if v.id not in self._gone)
        if not found:
            self._fruitless.add(rights)
        return found

    def ripe_at(self, batch: Batch) -> float | None:
        """When the first work that may be interrupted for it, but has not run long enough, has done so."""
        rule = self._books.policy.preempt
        if not rule.enabled:
            return None
        rights = (batch.group, batch.priority, self.stands, *self._turns.taken_back(batch))
        if rights not in self._ripe and len(self._ripe) < RIPENING_AT_MOST:
            freed = self._freed(self._leaving)
            begun = (at for at, id in self._oldest_first if self._right(batch, self._books.holding[id], freed))
            ripe = next(begun, inf) + rule.min_run
            self._ripe[rights] = ripe if self._now < ripe < inf else None
        return self._ripe.get(rights)

    @cached_property
    def _oldest_first(self) -> list[tuple[float, str]]:
        return sorted((_begun(workload, self._now), id) for id, workload in self._books.preemptible.items())

    def _right(self, batch: Batch, victim: Workload, freed: ByGroup) -> Rule | None:
        """By which right the batch may push this work out, once what is in `freed` is gone; None when it has none."""
        held, group = self._books.held[victim.id].amounts, victim.group
        other = group != batch.group
        shared = [resource for resource in self._turns.taken_back(batch) if held.get(resource)] if other else []
        if self.stands[1][0] == 0 and self._is_beyond(group, shared, freed):
            return Rule.GUARANTEE
        if not self._books.policy.preempt.for_priority or batch.priority <= victim.spec.priority:
            return None
        known = self._books.groups.get(group)
        if not other and known is not None and known.fifo:
            return None  # strictly first in, first out: the victim would come first again
        promised = [resource for resource, amount in held.items() if amount and resource in self._books.purse.common]
        is_beyond = self._is_beyond(group, promised, freed)
        if other and promised and not is_beyond:
            return None
        # Put back into the queue it must stand behind, or it would take its place again at once.
        its = self._turns.head_if_queued(victim, guaranteed=bool(promised) and not is_beyond)
        behind = self.stands[1] < its if other else inside_head(self.stands[0]) < inside_head(its)
        return Rule.PRIORITY if behind else None

    def _is_beyond(self, group: str, resources: Iterable[str], freed: ByGroup) -> bool:
        purse = self._books.purse
        return any(
            purse.used(group, None, one) - freed.get((group, one), 0) > purse.guaranteed.get((group, one), 0)
            for one in resources
        )

    def _freed(self, ids: Iterable[str]) -> ByGroup:
        freed: ByGroup = {}
        for held in (self._books.held[id] for id in ids if id in self._books.held):
            for resource, amount in held.amounts.items():
                key = (held.payer.group, resource)
                freed[key] = freed.get(key, 0) + amount
        return freed

    def _may_all_go(self, batch: Batch, victims: Sequence[Victim]) -> bool:
        """Is there a right to each of them, one after the other, the smallest first?"""
        freed = self._freed(self._leaving)
        for victim in sorted(victims, key=lambda one: (self._books.held[one.id].rate, one.id)):
            if self._right(batch, self._books.holding[victim.id], freed) is None:
                return False
            self._add(freed, victim)
        return True

    def _add(self, freed: ByGroup, victim: Victim) -> None:
        for key, amount in self._freed([victim.id]).items():
            freed[key] = freed.get(key, 0) + amount

    # --- the cheapest -----------------------------------------------------------------------------------------------

    def victims_for(self, batch: Batch, claimant: str, standing: Standing) -> list[Eviction]:
        """The cheapest work whose end would start the claimant; empty when there is none."""
        candidates = sorted(self._candidates(batch))
        chosen = self._on_one_node(candidates, batch, standing) if batch.ask.replicas == 1 else None
        if chosen is None:
            chosen = self._anywhere(candidates, batch, standing)
        self._gone.update((victim.id, claimant) for victim in chosen)
        return [Eviction(victim.id, claimant, victim.rule, victim.lost_seconds) for victim in chosen]

    def _candidates(self, batch: Batch) -> list[Victim]:
        found, freed = [], self._freed(self._leaving)
        for workload in self._evictable:
            rule = self._right(batch, workload, freed) if workload.id not in self._gone else None
            if rule is not None:
                lost = lost_seconds(workload, self._now)
                found.append(Victim(lost * self._books.held[workload.id].rate, workload.id, rule, lost))
        return found

    def _on_one_node(self, candidates: Sequence[Victim], batch: Batch, standing: Standing) -> list[Victim] | None:
        """For a single replica: the cheapest set of all nodes. None when none is found, or a quota is in the way."""
        role, best, price = batch.ask.roles[0], None, inf
        here = self._by_node(candidates)
        with self._without(self._leaving):
            stacks = [s for s in self._books.rooms.shelf(role.sieve) if s.room.node.name in here]
            stacks.sort(key=lambda stack: (here[stack.room.node.name][0].price, stack.room.rank, stack.serial))
            for stack in stacks:
                offers = here[stack.room.node.name]
                if offers[0].price >= price and best is not None:
                    break
                found = self._cheapest_on(stack, role, offers, batch, standing, price)
                if found is not None:
                    best, price = found, sum(victim.price for victim in found)
        return best if best is not None and self._works(best, batch, standing) else None

    def _cheapest_on(
        self, stack: Stack, role: RoleAsk, offers: Sequence[Victim], batch: Batch, standing: Standing, below: float
    ) -> list[Victim] | None:
        room, held = stack.room, self._books.held

        def fits(victims: Sequence[Victim]) -> bool:
            gone = [one for v in victims for one in held[v.id].allotments if one.node == room.node.name]
            for allotment in gone:
                room.take(allotment, -1)
            offer = stack.offer(role.resources, standing)
            for allotment in gone:
                room.take(allotment)
            return offer is not None

        return cheapest(offers, fits, lambda victims: self._may_all_go(batch, victims), below)

    def _by_node(self, candidates: Iterable[Victim]) -> dict[str, list[Victim]]:
        """Whoever holds anything on a node, the cheapest first."""
        found: dict[str, list[Victim]] = {}
        for victim in candidates:
            for node in {allotment.node for allotment in self._books.held[victim.id].allotments}:
                found.setdefault(node, []).append(victim)
        return found

    def _anywhere(self, candidates: Sequence[Victim], batch: Batch, standing: Standing) -> list[Victim]:
        """The cheapest first, as many as needed; if rights are used up on the wrong nodes by that, node by node."""
        by_node = sorted(self._by_node(candidates).values(), key=lambda here: sum(one.price for one in here))
        node_by_node = dict.fromkeys(victim for here in by_node for victim in here)
        for ordered in (candidates, list(node_by_node)):
            rightful = self._rightful(ordered, batch)
            chosen = self._enough(rightful, batch, standing)
            if chosen:
                few = len(chosen) <= SPARED_AT_MOST
                return spared(chosen, lambda victims: self._works(victims, batch, standing)) if few else chosen
            if len(rightful) == len(candidates):
                break
        return []

    def _rightful(self, candidates: Iterable[Victim], batch: Batch) -> list[Victim]:
        """Those to whom there is still a right when the earlier ones are gone."""
        found, freed = [], self._freed(self._leaving)
        for victim in candidates:
            if self._right(batch, self._books.holding[victim.id], freed) is not None:
                found.append(victim)
                self._add(freed, victim)
        return found

    def _enough(self, candidates: Sequence[Victim], batch: Batch, standing: Standing) -> list[Victim]:
        """The first ones, as many as needed. More never make it worse, so the number is found by halves."""
        if not candidates or not self._works(candidates, batch, standing):
            return []
        low, high = 1, len(candidates)
        while low < high:
            middle = (low + high) // 2
            if self._works(candidates[:middle], batch, standing):
                high = middle
            else:
                low = middle + 1
        return list(candidates[:low])

    # --- trying -----------------------------------------------------------------------------------------------------

    def _works(self, victims: Sequence[Victim], batch: Batch, standing: Standing) -> bool:
        ids = [*self._leaving, *(victim.id for victim in victims)]
        return self._try_without(ids, batch, standing) is not None

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
