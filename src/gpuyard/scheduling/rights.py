"""Who may push out whom.

Only the entitled: a group that takes back what is guaranteed to it, a higher priority in the same group or against
groups beyond their guarantee, or, where the policy goes by rank, an earlier rank there at no lower a priority. A group
that is beyond its guarantee loses no more than it takes to be within; and a victim must not stand before the one it
made room for, back in its old place in the queue. So nobody wins back what was just taken, and two never push each
other out in turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.workload import Workload
from gpuyard.scheduling.line import Batch
from gpuyard.scheduling.order import Stand, Turns, inside_head
from gpuyard.scheduling.snapshot import Rule

if TYPE_CHECKING:
    from gpuyard.scheduling.books import Books

ByGroup = dict[tuple[str, str], int]  # (group, resource) -> amount


class Right(NamedTuple):
    rule: Rule
    bound: tuple[str, ...] = ()  # the victim's group must be beyond its guarantee of one of these; empty: no bound


class Victim(NamedTuple):
    price: float
    later: float  # of the same price the one whose turn is latest goes first
    id: str
    right: Right
    lost_seconds: float


class Rights:
    """Of one that waits, once everything that is leaving anyway is gone."""

    def __init__(
        self, books: Books, turns: Turns, batch: Batch, stands: tuple[Stand, Stand], leaving: Iterable[str]
    ) -> None:
        self._books = books
        self._turns = turns
        self._batch = batch
        self._alone, self._stands = stands  # its place by itself, and as it is: no sooner than its group's first
        self._taken_back = turns.taken_back(batch) if self._stands[0][0] == 0 else []
        self._beyond: ByGroup = {}
        self._leaving: ByGroup = {}
        for id in leaving:
            self._add(self._leaving, id)

    @property
    def key(self) -> tuple[object, ...]:
        """Those with the same key have the same rights; those with a later rank have no others than these."""
        heads = (self._alone[0], self._stands[0])
        return (self._batch.group, self._batch.priority, *heads, *self._taken_back)

    @property
    def rank(self) -> tuple[float, float, float]:
        return self._batch.rank, self._stands[1], self._alone[1]

    def of(self, victim: Workload) -> Right | None:
        """By which right it may push this work out; None when it has none."""
        held, group = self._books.held[victim.id].amounts, victim.group
        other = group != self._batch.group
        shared = tuple(one for one in self._taken_back if held.get(one)) if other else ()
        by_place = self._by_place(victim, other)
        if self._is_beyond(group, shared):
            return Right(Rule.GUARANTEE, by_place.bound if by_place is not None else shared)
        return by_place

    def _by_place(self, victim: Workload, other: bool) -> Right | None:
        """By priority, or by rank at no lower a priority."""
        books, group = self._books, victim.group
        rule = self._rule_over(victim)
        if rule is None:
            return None
        common = books.purse.common
        promised = tuple(one for one, amount in books.held[victim.id].amounts.items() if amount and one in common)
        is_beyond = self._is_beyond(group, promised)
        if other and promised and not is_beyond:
            return None
        known = books.groups.get(group)
        if not other and known is not None and known.fifo:
            return None  # strictly first in, first out: the victim would come first again
        its = self._turns.stand_if_queued(victim, guaranteed=bool(promised) and not is_beyond)
        if rule is Rule.PRIORITY:
            behind = self._stands[0] < its[0] if other else inside_head(self._alone[0]) < inside_head(its[0])
        else:
            behind = self._stands < its if other else _inside(self._alone) < _inside(its)
        return Right(rule, promised if other else ()) if behind else None

    def _rule_over(self, victim: Workload) -> Rule | None:
        """Which rule could put it before this one, if their places agree."""
        preempt, mine, its = self._books.policy.preempt, self._batch.priority, victim.spec.priority
        if mine > its and preempt.for_priority:
            return Rule.PRIORITY
        if mine >= its and preempt.for_turn and self._turns.by_rank:
            return Rule.TURN if self._batch.rank < self._turns.rank_now(victim) else None
        return None

    def _is_beyond(self, group: str, resources: Iterable[str], freed: ByGroup | None = None) -> bool:
        for resource in resources:
            key = (group, resource)
            beyond = self._beyond.get(key)
            if beyond is None:
                purse = self._books.purse
                beyond = purse.used(group, None, resource) - purse.guaranteed.get(key, 0)
                beyond = self._beyond[key] = beyond - self._leaving.get(key, 0)
            if beyond > (freed.get(key, 0) if freed is not None else 0):
                return True
        return False

    def may_all_go(self, victims: Iterable[Victim]) -> bool:
        """Is there a right to each of them, one after the other, the smallest first?"""
        held, freed = self._books.held, ByGroup()
        for victim in sorted(victims, key=lambda one: (held[one.id].rate, one.id)):
            if not self._may_go(victim, freed):
                return False
            self._add(freed, victim.id)
        return True

    def rightful(self, victims: Iterable[Victim]) -> list[Victim]:
        """Those to whom there is still a right when the earlier ones are gone."""
        found: list[Victim] = []
        freed: ByGroup = {}
        for victim in victims:
            if self._may_go(victim, freed):
                found.append(victim)
                self._add(freed, victim.id)
        return found

    def _may_go(self, victim: Victim, freed: ByGroup) -> bool:
        bound = victim.right.bound
        return not bound or self._is_beyond(self._books.held[victim.id].payer.group, bound, freed)

    def _add(self, freed: ByGroup, id: str) -> None:
        held = self._books.held.get(id)
        if held is not None:
            for resource, amount in held.amounts.items():
                key = (held.payer.group, resource)
                freed[key] = freed.get(key, 0) + amount


def _inside(stand: Stand) -> Stand:
    return inside_head(stand[0]), stand[1]
