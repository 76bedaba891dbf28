"""What groups and people may still use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.people import Quota
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import Workload

Amounts = dict[str, int]  # resource -> amount, in the units of Quota


def amounts_of(allotments: Iterable[Allotment]) -> Amounts:
    total: Amounts = {"cpu": 0, "memory": 0}
    for allotment in allotments:
        total["cpu"] += allotment.cpu_milli
        total["memory"] += allotment.memory
        if allotment.cards:
            total[allotment.device] = total.get(allotment.device, 0) + allotment.cards_milli
    return total


class Purse:
    """Use and limits of every quota while a plan is made."""

    def __init__(self, quotas: Iterable[Quota], holding: Iterable[Workload]) -> None:
        self._limits: dict[tuple[str, str | None], list[Quota]] = {}
        for quota in quotas:
            self._limits.setdefault((quota.group, quota.user), []).append(quota)
        self._used: dict[tuple[str, str | None, str], int] = {}
        self._kept: dict[tuple[str, str | None, str], tuple[int, Workload]] = {}
        for workload in holding:
            if workload.attempt is not None:
                self.spend(workload, amounts_of(r.allotment for r in workload.attempt.replicas))

    def spend(self, workload: Workload, amounts: Mapping[str, int]) -> None:
        for user in (None, workload.owner):
            for resource, amount in amounts.items():
                key = (workload.group, user, resource)
                self._used[key] = self._used.get(key, 0) + amount

    def used(self, group: str, user: str | None, resource: str) -> int:
        return self._used.get((group, user, resource), 0)

    def refusal(self, workload: Workload, amounts: Mapping[str, int]) -> Reason | None:
        """None when it may start. A quota that could never hold it is told apart from one that is used up now."""
        blocked: Reason | None = None
        for quota in self._quotas_of(workload):
            asked = amounts.get(quota.resource, 0)
            if not asked:
                continue
            if asked > quota.limit:
                return _over(Code.QUOTA_NEVER, quota, asked, limit=quota.limit)
            used = self.used(quota.group, quota.user, quota.resource)
            if blocked is None and used + asked > quota.limit:
                blocked = _over(Code.OVER_QUOTA, quota, asked, used=used, limit=quota.limit)
            kept, holder = self._kept.get((quota.group, quota.user, quota.resource), (0, None))
            if blocked is None and holder is not None and used + kept + asked > quota.limit:
                blocked = because(Code.ORDER, ahead=holder.id, ahead_name=holder.spec.name, quota=quota.resource)
        return blocked

    def keep_for(self, workload: Workload, amounts: Mapping[str, int]) -> None:
        """It waits for a quota: keep the rest of that quota, so that no later one of the same quota overtakes it."""
        for quota in self._quotas_of(workload):
            key = (quota.group, quota.user, quota.resource)
            asked = amounts.get(quota.resource, 0)
            if asked and self.used(*key) + asked > quota.limit and key not in self._kept:
                self._kept[key] = (quota.limit - self.used(*key), workload)

    def _quotas_of(self, workload: Workload) -> list[Quota]:
        return self._limits.get((workload.group, None), []) + self._limits.get((workload.group, workload.owner), [])


def _over(code: Code, quota: Quota, asked: int, **facts: int) -> Reason:
    scope, who = ("user", quota.user) if quota.user else ("group", quota.group)
    return because(code, scope=scope, who=who, group=quota.group, resource=quota.resource, asked=asked, **facts)
