"""Limits and guarantees as people write them, and as they stand beside what is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpuyard.api import models, views
from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import BadInput
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import DEVICE_TYPES, WHOLE_CARD, parse_bytes, parse_cards, parse_cpu
from gpuyard.domain.workload import Workload
from gpuyard.store import nodes, people
from gpuyard.store.database import Connection

Amounts = Mapping[str, int | None]
Used = Mapping[tuple[str, str | None, str], int]


# --- as people write them -----------------------------------------------------------------------------------------


def read_amounts(given: models.Limits, at: str = "quota") -> dict[str, int | None]:
    """{"nvidia": 8, "cpu": "64", "memory": "256G"} in the units of Quota; null means: none."""
    amounts: dict[str, int | None] = {}
    problems = []
    for resource, written in given.items():
        try:
            amounts[resource] = None if written is None else _read_amount(resource, str(written).strip())
        except ValueError:
            problem = {"memory": Problem.BYTES, "cpu": Problem.CPU}.get(resource, Problem.CARDS)
            facts = {"problem": problem.value, "value": str(written)[:40]}
            problems.append(because(Code.BAD_VALUE, at=f"{at}.{resource}", **facts))
    if problems:
        raise BadInput(*problems)
    return amounts


def _read_amount(resource: str, text: str) -> int:
    if text in ("0", "0.0"):
        return 0
    if resource == "memory":
        return parse_bytes(text)
    return parse_cpu(text) if resource == "cpu" else parse_cards(text)


def changed(group: Group, user: str | None, limits: Amounts, guarantees: Amounts) -> dict[str, Quota]:
    """The lines that change, by resource. Refused: a guarantee above its limit, or for a user, or not of cards."""
    lines = {quota.resource: quota for quota in group.quotas if quota.user == user}
    problems = []
    after = {}
    for resource in dict.fromkeys([*limits, *guarantees]):
        line = lines.get(resource) or Quota(group.name, resource, None, user)
        if resource in limits:
            line = replace(line, limit=limits[resource])
        if resource in guarantees:
            line = replace(line, guaranteed=guarantees[resource] or 0)
        if problem := _contradiction(line):
            problems.append(problem)
        after[resource] = line
    if problems:
        raise BadInput(*problems)
    return after


def _contradiction(line: Quota) -> Reason | None:
    at = f"guarantees.{line.resource}"
    if line.guaranteed and line.user is not None:
        return because(Code.BAD_VALUE, at=at, problem=Problem.USER_GUARANTEE.value)
    if line.guaranteed and line.resource not in DEVICE_TYPES:
        wrong = {"problem": Problem.ONE_OF.value, "value": line.resource, "allowed": list(DEVICE_TYPES)}
        return because(Code.BAD_VALUE, at="guarantees", **wrong)
    if line.limit is not None and line.guaranteed > line.limit:
        facts = {"resource": line.resource, "guaranteed": line.guaranteed, "limit": line.limit}
        return because(Code.BAD_VALUE, at=at, problem=Problem.GUARANTEE_LIMIT.value, **facts)
    return None


def over_guaranteed(conn: Connection, resources: Iterable[str]) -> list[Reason]:
    """A note for each of these of which more is guaranteed than the machines have."""
    wanted = list(resources)
    if not wanted:
        return []
    there, promised = capacity(nodes.all(conn)), guaranteed_in_all(people.all_groups(conn))
    return [
        because(Code.OVER_GUARANTEED, resource=one, guaranteed=promised[one], there=there.get(one, 0))
        for one in wanted
        if promised.get(one, 0) > there.get(one, 0)
    ]


def below_use(holding: Iterable[Workload], group: str, user: str | None, limits: Amounts) -> list[Reason]:
    """A note for each new limit that is below what is in use."""
    used = views.use_by_quota(workload for workload in holding if workload.group == group)
    return [
        because(Code.BELOW_USE, resource=resource, used=used[group, user, resource], limit=limit)
        for resource, limit in limits.items()
        if limit is not None and used.get((group, user, resource), 0) > limit
    ]


def capacity(machines: Iterable[Node]) -> dict[str, int]:
    """All there is of each kind of card, in thousandths; also what is just now not available."""
    there: dict[str, int] = {}
    for card in (card for node in machines for card in node.cards):
        there[card.device] = there.get(card.device, 0) + WHOLE_CARD
    return there


def guaranteed_in_all(groups: Iterable[Group]) -> dict[str, int]:
    promised: dict[str, int] = {}
    for quota in (quota for group in groups for quota in group.quotas if quota.user is None and quota.guaranteed):
        promised[quota.resource] = promised.get(quota.resource, 0) + quota.guaranteed
    return promised


# --- beside what is used ------------------------------------------------------------------------------------------


class Ledger:
    """Who may use, can count on, uses, has borrowed and has lent how much."""

    def __init__(self, groups: Sequence[Group] = (), used: Used | None = None, there: Mapping[str, int] | None = None):
        self.groups = groups
        self._used = used or {}
        self._promised = {
            (group.name, quota.resource): quota.guaranteed
            for group in groups
            for quota in group.quotas
            if quota.user is None and quota.guaranteed
        }
        self._lending = {
            resource: self._lending_of(resource, max(0, (there or {}).get(resource, 0) - promised))
            for resource, promised in guaranteed_in_all(groups).items()
        }

    def lines(self, group: Group) -> list[models.QuotaOut]:
        """Every quota of the group, and a line for what it uses of cards that are guaranteed to others."""
        known = {quota.resource for quota in group.quotas if quota.user is None}
        others = [one for one in self._lending if self._uses(group.name, one) and one not in known]
        return [self._line(quota) for quota in (*group.quotas, *(Quota(group.name, one) for one in others))]

    def _line(self, quota: Quota) -> models.QuotaOut:
        resource, is_group = quota.resource, quota.user is None
        shown = {
            "used": self._used.get((quota.group, quota.user, resource), 0),
            "guaranteed": quota.guaranteed,
            "borrowed": self._beyond(quota.group, resource) if is_group and resource in self._lending else 0,
            "lent": self._lending.get(resource, {}).get(quota.group, 0) if is_group else 0,
        }
        return models.QuotaOut(
            group=quota.group,
            user=quota.user,
            resource=resource,
            limit=None if quota.limit is None else views.amount(resource, quota.limit),
            **{name: views.amount(resource, value) for name, value in shown.items()},
        )

    def used_by(self, group: str) -> dict[str, models.Number]:
        """What the whole group uses, also of what nobody limits."""
        mine = {resource: used for (name, user, resource), used in self._used.items() if name == group and user is None}
        return {resource: views.amount(resource, used) for resource, used in sorted(mine.items())}

    def _uses(self, group: str, resource: str) -> int:
        return self._used.get((group, None, resource), 0)

    def _beyond(self, group: str, resource: str) -> int:
        return max(0, self._uses(group, resource) - self._promised.get((group, resource), 0))

    def _lending_of(self, resource: str, common: int) -> dict[str, int]:
        """By group: its part of what others use beyond their guarantees and beyond the part that is nobody's.

        Who lent to whom is not written anywhere: each lends in proportion to what it leaves idle.
        """
        names = [group.name for group in self.groups]
        idle = {one: max(0, self._promised.get((one, resource), 0) - self._uses(one, resource)) for one in names}
        lent = min(sum(idle.values()), max(0, sum(self._beyond(one, resource) for one in names) - common))
        return {one: lent * left // sum(idle.values()) for one, left in idle.items() if left}


def ledger(conn: Connection, holding: Iterable[Workload]) -> Ledger:
    return Ledger(people.all_groups(conn), views.use_by_quota(holding), capacity(nodes.all(conn)))
