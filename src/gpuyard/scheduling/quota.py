"""What groups and people may still use: limits, guarantees, and what is left for all.

A limit is never passed. What is guaranteed to a group comes before everything else; while it is idle others may borrow
it, with work that can be taken back. Work that cannot be taken back (not preemptible) goes beyond a guarantee only as
far as the common part reaches: what the cluster has beyond all guarantees.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment, Node, NodeState
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Spec
from gpuyard.scheduling.room import Standing

Amounts = dict[str, int]  # resource -> amount, in the units of Quota


def amounts_of(allotments: Iterable[Allotment]) -> Amounts:
    total: Amounts = {"cpu": 0, "memory": 0}
    for allotment in allotments:
        total["cpu"] += allotment.cpu_milli
        total["memory"] += allotment.memory
        if allotment.cards:
            total[allotment.device] = total.get(allotment.device, 0) + allotment.cards_milli
    return total


def least_amounts(spec: Spec) -> Amounts:
    """What it will use at least, before its nodes are known: what it names, and its cards."""
    total: Amounts = {}
    for role in spec.roles:
        asked = role.resources
        named = {"cpu": asked.cpu_milli or 0, "memory": asked.memory or 0}
        if asked.cards is not None:
            named[asked.cards.device] = asked.cards.milli
        for resource, amount in named.items():
            total[resource] = total.get(resource, 0) + amount * role.replicas
    return total


def capacity_of(nodes: Iterable[Node], *, with_lost: bool = False) -> Amounts:
    total: Amounts = {"cpu": 0, "memory": 0}
    for node in nodes:
        if node.state is NodeState.LOST and not with_lost:
            continue
        total["cpu"] += node.cpu_milli
        total["memory"] += node.memory
        for card in node.cards:
            total[card.device] = total.get(card.device, 0) + WHOLE_CARD
    return total


def _beyond(promised: Mapping[str, int], capacity: Mapping[str, int]) -> Amounts:
    """What is guaranteed to nobody, of that which is guaranteed to somebody."""
    return {resource: max(0, capacity.get(resource, 0) - sum) for resource, sum in promised.items()}


class Payer(NamedTuple):
    """On whose account work runs, and whether it can be taken back."""

    group: str
    owner: str
    preemptible: bool


class _Kept(NamedTuple):
    """What workloads that wait keep of a quota: this one and those before it, together."""

    seq: int
    upto: int
    firm: int  # of that, what is kept from jobs too, while nobody knows when one of them can start
    workload: str
    name: str


class _Keeps:
    """What those who wait keep of one quota, in the order of the pass, apart by when they will start at the latest."""

    def __init__(self) -> None:
        self._by_start: dict[float, list[_Kept]] = {}

    def add(self, seq: int, amount: int, firm: int, workload: str, name: str, starts_at: float) -> None:
        alike = self._by_start.setdefault(starts_at, [])
        upto, firm_upto = (alike[-1].upto, alike[-1].firm) if alike else (0, 0)
        alike.append(_Kept(seq, amount + upto, firm + firm_upto, workload, name))

    def kept_from(self, standing: Standing) -> tuple[int, _Kept | None]:
        """How much is not for this one, and who was the first to keep of it."""
        total, first = 0, None
        for starts_at, alike in self._by_start.items():
            place = bisect_left(alike, (standing.seq,)) if standing.ends_by > starts_at else 0
            if place:
                total += alike[place - 1].firm if standing.goes_on else alike[place - 1].upto
                first = alike[0] if first is None else min(first, alike[0])
        return total, first


class Purse:
    """Use, limits and guarantees of every group and person."""

    def __init__(self, groups: Mapping[str, Group], nodes: Iterable[Node]) -> None:
        self._limits: dict[tuple[str, str | None], list[Quota]] = {}
        self.guaranteed: dict[tuple[str, str], int] = {}
        promised: Amounts = {}
        for quota in (quota for group in groups.values() for quota in group.quotas):
            if quota.limit is not None:
                self._limits.setdefault((quota.group, quota.user), []).append(quota)
            if quota.guaranteed and quota.user is None:
                self.guaranteed[quota.group, quota.resource] = quota.guaranteed
                promised[quota.resource] = promised.get(quota.resource, 0) + quota.guaranteed
        nodes = list(nodes)
        self.common = _beyond(promised, capacity_of(nodes))
        self._common_with_lost = _beyond(promised, capacity_of(nodes, with_lost=True))  # they may come back
        self._used: dict[tuple[str, str | None, str], int] = {}
        self._firm: dict[tuple[str, str], int] = {}  # use that cannot be taken back
        self._firm_beyond = dict.fromkeys(promised, 0)  # of it, what goes beyond guarantees, all groups together
        self._kept: dict[tuple[str, str | None, str], _Keeps] = {}  # the common part is nobody's: ("", None, resource)

    # --- use -----------------------------------------------------------------------------------------------------

    def spend(self, payer: Payer, amounts: Mapping[str, int], sign: int = 1) -> None:
        for resource, amount in amounts.items():
            if not amount:
                continue
            for user in (None, payer.owner):
                key = (payer.group, user, resource)
                self._used[key] = self._used.get(key, 0) + sign * amount
            if resource in self.common and not payer.preemptible:
                self._spend_firmly(payer.group, resource, sign * amount)

    def refund(self, payer: Payer, amounts: Mapping[str, int]) -> None:
        self.spend(payer, amounts, -1)

    def _spend_firmly(self, group: str, resource: str, amount: int) -> None:
        before = self._firm.get((group, resource), 0)
        guaranteed = self.guaranteed.get((group, resource), 0)
        self._firm[group, resource] = before + amount
        self._firm_beyond[resource] += max(0, before + amount - guaranteed) - max(0, before - guaranteed)

    def used(self, group: str, user: str | None, resource: str) -> int:
        return self._used.get((group, user, resource), 0)

    def limit(self, group: str, user: str | None, resource: str) -> int | None:
        """The most of this that the group, or this user in it, may have in use; None: no limit."""
        quotas = self._limits.get((group, user), ())
        return next((quota.limit for quota in quotas if quota.resource == resource), None)

    # --- guarantees ----------------------------------------------------------------------------------------------

    def is_within_guarantee(self, group: str, amounts: Mapping[str, int]) -> bool:
        """Would the group stay within what is guaranteed to it? True as well when nobody is guaranteed any of this."""
        for resource in self.common:
            amount = amounts.get(resource)
            if amount and self.used(group, None, resource) + amount > self.guaranteed.get((group, resource), 0):
                return False
        return True

    def is_promised(self, amounts: Mapping[str, int]) -> bool:
        """Is any of this guaranteed to anybody?"""
        return any(map(amounts.get, self.common))  # asked for everyone who waits, again and again

    def is_beyond_guarantee(self, group: str, resources: Iterable[str]) -> bool:
        """Does the group use more than is guaranteed to it, of any of these?"""
        return any(self.used(group, None, one) > self.guaranteed.get((group, one), 0) for one in resources)

    def left_in_common(self) -> Amounts:
        """What work that stays may still use of that which is guaranteed to nobody."""
        return {resource: common - self._firm_beyond[resource] for resource, common in self.common.items()}

    def firmly_used(self, group: str, resource: str) -> int:
        """By the group's work that cannot be taken back; of what is guaranteed to anybody."""
        return self._firm.get((group, resource), 0)

    def _borrow_refusal(self, payer: Payer, amounts: Mapping[str, int]) -> Reason | None:
        for resource, beyond, added in self._firmly_beyond(payer, amounts):
            common, there = self.common[resource], self._firm_beyond[resource]
            if beyond and there + added > common:
                used = self.used(payer.group, None, resource)
                guaranteed = self.guaranteed.get((payer.group, resource), 0)
                facts = {"guaranteed": guaranteed, "used": used, "asked": amounts[resource]}
                left = {"common": max(0, common - there), "needs": added}
                return because(Code.BORROW, group=payer.group, resource=resource, **facts, **left)
        return None

    def _firmly_beyond(self, payer: Payer, amounts: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
        """Of work that cannot be taken back: how far the group would be beyond its guarantee, and what this adds."""
        if payer.preemptible:
            return
        for resource in self.common:
            asked = amounts.get(resource, 0)
            if asked:
                firm = self._firm.get((payer.group, resource), 0)
                guaranteed = self.guaranteed.get((payer.group, resource), 0)
                beyond = max(0, firm + asked - guaranteed)
                yield resource, beyond, beyond - max(0, firm - guaranteed)

    def _borrows_too_much(self, payer: Payer, amounts: Mapping[str, int], commons: Amounts) -> Reason | None:
        """More than the guarantee and the common part together: only as preemptible work will it ever start."""
        for resource, common in commons.items() if not payer.preemptible else ():
            asked, guaranteed = amounts.get(resource, 0), self.guaranteed.get((payer.group, resource), 0)
            if asked > common + guaranteed:
                facts = {"guaranteed": guaranteed, "common": common, "asked": asked}
                return because(Code.BORROW_NEVER, group=payer.group, resource=resource, **facts)
        return None

    # --- may it start? -------------------------------------------------------------------------------------------

    def never(self, payer: Payer, amounts: Mapping[str, int]) -> Reason | None:
        """A limit below what is asked for, or too much guaranteed to others: no waiting will help."""
        for quota, limit in self._quotas_of(payer):
            asked = amounts.get(quota.resource, 0)
            if asked > limit:
                return _over(Code.QUOTA_NEVER, quota, asked, limit=limit)
        return self._borrows_too_much(payer, amounts, self._common_with_lost)

    def left_to_leave_open(self, payer: Payer) -> Amounts:
        """What limits leave of that which a request may leave open; empty when there are no such limits."""
        left: Amounts = {}
        for quota, limit in self._quotas_of(payer):
            if quota.resource in ("cpu", "memory"):
                rest = limit - self.used(quota.group, quota.user, quota.resource)
                left[quota.resource] = min(rest, left.get(quota.resource, rest))
        return left

    def refusal(self, payer: Payer, amounts: Mapping[str, int], standing: Standing) -> Reason | None:
        """None when it may start. Limits come first, then what earlier ones of the same quota wait for."""
        kept_from: Reason | None = None
        for quota, limit in self._quotas_of(payer):
            asked = amounts.get(quota.resource, 0)
            if not asked:
                continue
            used = self.used(quota.group, quota.user, quota.resource)
            if used + asked > limit:
                code = Code.QUOTA_NEVER if asked > limit else Code.OVER_QUOTA
                return _over(code, quota, asked, used=used, limit=limit)
            key = (quota.group, quota.user, quota.resource)
            kept_from = kept_from or self._kept_from(key, limit - used - asked, standing)
        never = self._borrows_too_much(payer, amounts, self._common_with_lost)
        borrowing = never or self._borrow_refusal(payer, amounts)
        return borrowing or kept_from or self._kept_common(payer, amounts, standing)

    def _kept_from(self, key: tuple[str, str | None, str], rest: int, standing: Standing) -> Reason | None:
        keeps = self._kept.get(key)
        kept, first = keeps.kept_from(standing) if keeps is not None else (0, None)
        if first is None or kept <= rest:
            return None
        return because(Code.ORDER, ahead=first.workload, ahead_name=first.name, quota=key[2])

    def _kept_common(self, payer: Payer, amounts: Mapping[str, int], standing: Standing) -> Reason | None:
        """Earlier ones wait for the common part: others may not use it up bit by bit."""
        for resource, _, added in self._firmly_beyond(payer, amounts):
            rest = self.common[resource] - self._firm_beyond[resource] - added
            reason = self._kept_from(("", None, resource), rest, standing) if added else None
            if reason is not None:
                return reason
        return None

    def keep_for(
        self,
        seq: int,
        workload: str,
        name: str,
        payer: Payer,
        amounts: Mapping[str, int],
        starts_at: float = -inf,
        *,
        lends: bool = False,
    ) -> None:
        """It waits: keep what it asks of its quotas, so that no later one of the same quota delays it.

        One that its quotas can never hold, or not while machines are lost, keeps nothing. One that waits for its
        owner's own quota keeps nothing of the group's: the others of the group are not to wait for one person's work
        to end. `lends`: half of the cores and memory is open to jobs.
        """
        if not (self._limits or self.common):
            return
        if self.never(payer, amounts) or self._borrows_too_much(payer, amounts, self.common):
            return
        quotas = [(quota, limit) for quota, limit in self._quotas_of(payer) if amounts.get(quota.resource)]
        own = [(quota, limit) for quota, limit in quotas if quota.user is not None]
        waits_for_own = any(self._is_used_up(quota, limit, amounts[quota.resource], seq) for quota, limit in own)
        for quota, _ in own if waits_for_own else quotas:
            key, amount = (quota.group, quota.user, quota.resource), amounts[quota.resource]
            firm = _firm(quota.resource, amount, lends)
            self._kept.setdefault(key, _Keeps()).add(seq, amount, firm, workload, name, starts_at)
        for resource, _, added in () if waits_for_own else self._firmly_beyond(payer, amounts):
            if added:
                keeps, firm = self._kept.setdefault(("", None, resource), _Keeps()), _firm(resource, added, lends)
                keeps.add(seq, added, firm, workload, name, starts_at)

    def _is_used_up(self, quota: Quota, limit: int, asked: int, seq: int) -> bool:
        key = (quota.group, quota.user, quota.resource)
        rest = limit - self.used(*key) - asked
        return rest < 0 or self._kept_from(key, rest, Standing(seq)) is not None

    def keep_nothing(self) -> None:
        self._kept.clear()

    def _quotas_of(self, payer: Payer) -> list[tuple[Quota, int]]:
        if not self._limits:
            return []
        quotas = [*self._limits.get((payer.group, None), ()), *self._limits.get((payer.group, payer.owner), ())]
        return [(quota, quota.limit) for quota in quotas if quota.limit is not None]


def _firm(resource: str, amount: int, lends: bool) -> int:
    """Cards are never lent."""
    return (amount + 1) // 2 if lends and resource in ("cpu", "memory") else amount


def _over(code: Code, quota: Quota, asked: int, **facts: int) -> Reason:
    scope, who = ("user", quota.user) if quota.user else ("group", quota.group)
    return because(code, scope=scope, who=who, group=quota.group, resource=quota.resource, asked=asked, **facts)
