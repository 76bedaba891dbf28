"""One pass over the queue. Everyone is either given a place or a reason.

An earlier workload that waits keeps back what it could use of the free rest, on the nodes where it is closest to
starting, and of the quota it waits for. So a later one may use what nobody before it can use, and never takes what an
earlier one waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Spec, Workload
from gpuyard.scheduling import explain
from gpuyard.scheduling.fit import Allotments, give_back, place_gang
from gpuyard.scheduling.order import in_order, turn
from gpuyard.scheduling.quota import Amounts, Purse, amounts_of
from gpuyard.scheduling.room import Room, Rooms, rooms_if_empty, rooms_now
from gpuyard.scheduling.snapshot import Placement, Plan, Preview, Snapshot

Shape = tuple[tuple[Resources, int], ...]  # what a workload asks of the cluster, whoever it is


def plan(snapshot: Snapshot) -> Plan:
    """Decide for the whole queue."""
    return _Pass(snapshot).run(in_order(snapshot.queue))


def preview(snapshot: Snapshot, workload: Workload) -> Preview:
    """What would happen if it were submitted now, behind everyone who already waits with the same priority."""
    outcome = plan(replace(snapshot, queue=(*snapshot.queue, workload)))
    ahead = [w.id for w in in_order(snapshot.queue) if turn(w) < turn(workload)]
    still_waiting = [id for id in ahead if id in outcome.waiting]
    placement = next((p for p in outcome.placements if p.workload == workload.id), None)
    if placement is not None:
        nodes = tuple(sorted({allotment.node for allotment in placement.allotments.values()}))
        return Preview(True, None, nodes, len(still_waiting), tuple(still_waiting[:20]))
    return Preview(False, outcome.waiting[workload.id], (), len(still_waiting), tuple(still_waiting[:20]))


class _Pass:
    """The books of one pass."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.rooms = rooms_now(snapshot.nodes, snapshot.holding)
        self.purse = Purse(snapshot.quotas, snapshot.holding)
        self.placements: list[Placement] = []
        self.waiting: dict[str, Reason] = {}
        self._never: dict[Shape, Reason | None] = {}
        self._no_room: dict[Shape, Reason] = {}  # shapes that found no room in this pass: room only shrinks

    @cached_property
    def _empty(self) -> Rooms:
        return rooms_if_empty(self.snapshot.nodes)

    def run(self, queue: Sequence[Workload]) -> Plan:
        for workload in queue:
            reason = self._decide(workload)
            if reason is not None:
                self.waiting[workload.id] = reason
        return Plan(tuple(self.placements), self.waiting)

    def _decide(self, workload: Workload) -> Reason | None:
        """Place it and return None, or return why it waits."""
        if workload.not_before > self.snapshot.now:
            cause = workload.reason.facts.get("cause")
            return because(Code.BACK_OFF, until=workload.not_before, cause=cause)
        shape = shape_of(workload.spec)
        over_quota = self.purse.refusal(workload, least_amounts(workload.spec))
        if over_quota is None and shape not in self._no_room:
            allotments = place_gang(workload.spec, self.rooms)
            if allotments is not None:
                return self._take(workload, allotments)
        # It waits. One that could never start says so first, and keeps nothing from others.
        reason = self._can_never(workload.spec, shape)
        if reason is not None:
            return reason
        if over_quota is not None:
            return self._wait_for_quota(workload, least_amounts(workload.spec), over_quota)
        return self._no_room.get(shape) or self._wait_for_room(workload, shape)

    def _can_never(self, spec: Spec, shape: Shape) -> Reason | None:
        if shape not in self._never:
            self._never[shape] = explain.never(spec, self.snapshot.nodes)
        return self._never[shape]

    def _take(self, workload: Workload, allotments: Allotments) -> Reason | None:
        """The amounts left open are settled only now that the nodes are known, so the quota is asked once more."""
        amounts = amounts_of(allotments.values())
        reason = self.purse.refusal(workload, amounts)
        if reason is not None:
            give_back(allotments, self.rooms)
            return self._wait_for_quota(workload, amounts, reason)
        self.purse.spend(workload, amounts)
        self.placements.append(Placement(workload.id, allotments))
        return None

    def _wait_for_quota(self, workload: Workload, amounts: Amounts, reason: Reason) -> Reason:
        """Only one that can start some day keeps the rest of its quota for itself."""
        if reason.code is not Code.QUOTA_NEVER:
            self.purse.keep_for(workload, amounts)
        return reason

    def _wait_for_room(self, workload: Workload, shape: Shape) -> Reason:
        ahead = self._kept_from(workload)
        if ahead is not None:
            reason = because(Code.ORDER, ahead=ahead.id, ahead_name=ahead.spec.name)
        else:
            reason = explain.not_yet(workload, self.rooms, self.snapshot.holding)
        self._keep_room(workload)
        self._no_room[shape] = because(Code.ORDER, ahead=workload.id, ahead_name=workload.spec.name)
        return reason

    def _kept_from(self, workload: Workload) -> Workload | None:
        """The earlier workload whose kept room is all that stands in the way, if that is so."""
        allotments = place_gang(workload.spec, self.rooms, past_kept=True)
        if allotments is None:
            return None
        give_back(allotments, self.rooms)
        holders = [
            self.rooms.by_name[a.node].kept_for for a in allotments.values() if self.rooms.by_name[a.node].kept_for
        ]
        by_id = {w.id: w for w in self.snapshot.queue}
        return by_id.get(holders[0]) if holders else None

    def _keep_room(self, workload: Workload) -> None:
        """Keep the free rest on the nodes where it will start soonest: those with the most free of what it asks."""
        for role in workload.spec.roles:
            fitting = [r for r in self.rooms if self._empty.by_name[r.node.name].offer(role.resources) is not None]
            fitting.sort(key=lambda room: _prospects(role.resources, room))
            for room, _ in zip(fitting, range(role.replicas), strict=False):
                room.keep_for(workload.id, role.resources)


def _prospects(asked: Resources, room: Room) -> tuple[int, int, str]:
    """Smaller is better: most free cards, then most free cores."""
    cards = room.free_whole(asked.cards.device) if asked.cards else 0
    return (-cards, -room.cpu, room.node.name)


def shape_of(spec: Spec) -> Shape:
    return tuple((role.resources, role.replicas) for role in spec.roles)


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
