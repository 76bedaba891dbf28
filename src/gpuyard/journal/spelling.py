"""Events as plain data, each told against what was told before: of a workload only what changed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import inf
from operator import attrgetter
from typing import Any

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.reasons import Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import ENDED, Attempt, Ending, State, Verdict, Workload
from gpuyard.journal.events import (
    Anew,
    BooksMade,
    Charged,
    Decided,
    Event,
    GroupsAre,
    NodesAre,
    PolicyIs,
    TypicalIs,
)
from gpuyard.journal.plain import to_plain
from gpuyard.journal.tables import Key, Numbers, Specs
from gpuyard.scheduling.snapshot import JobName, Person, Placement, Plan

# What a decision never looks at, or what is told in a way of its own.
_NOT_OF_WORKLOAD = {"wanted", "wanted_by", "version", "retries_used", "exit_code", "removed_at"} | {
    *("id", "spec", "reason", "attempt")
}
_NOT_OF_ATTEMPT = {"number", "replicas", "ending", "saved_step"}
WORKLOAD_FIELDS = tuple(field.name for field in fields(Workload) if field.name not in _NOT_OF_WORKLOAD)
ATTEMPT_FIELDS = tuple(field.name for field in fields(Attempt) if field.name not in _NOT_OF_ATTEMPT)
_workload_values = attrgetter(*WORKLOAD_FIELDS)
_attempt_values = attrgetter(*ATTEMPT_FIELDS)


class _Known:
    """What was last told of a workload."""

    __slots__ = ("number", "reason", "spec", "variants", "workload")

    def __init__(self, number: int, workload: Workload, spec: int) -> None:
        self.number = number
        self.workload = workload
        self.spec = spec
        self.variants = 0
        self.reason: Reason | None = None


class Speller:
    """Of one segment."""

    def __init__(self) -> None:
        self._said: list[Any] = []
        self._numbers = Numbers(self._say)
        self._specs = Specs(self._say)
        self._works: dict[str, _Known] = {}
        self._count = 0
        self._nodes: Mapping[str, Node] = {}
        self._given: dict[str, Mapping[Key, Allotment]] = {}  # by the last decision
        self._run_times: dict[JobName, tuple[float, ...]] = {}

    def _say(self, data: list[Any]) -> None:
        self._said.append(data)

    def spell(self, events: Sequence[Event]) -> list[Any]:
        self._said = []
        for event in events:
            if type(event) is Workload:
                self._put(event)
            elif type(event) is str:
                self._remove(event)
            else:
                self._other(event)
        return self._said

    def _other(self, event: Event) -> None:
        match event:
            case Decided():
                self._decided(event)
            case Charged(past, run_times, whole):
                self._charged(past, run_times, whole)
            case NodesAre(nodes, renewed):
                self._nodes_are(nodes, renewed)
            case BooksMade():
                self._say(["b"])
            case GroupsAre(groups):
                self._say(["g", [to_plain(group) for group in groups.values()]])
            case PolicyIs(policy):
                self._say(["p", to_plain(policy)])
            case TypicalIs(typical):
                self._say(["t", to_plain(typical)])
            case Anew():
                self._anew(event)

    def _anew(self, all: Anew) -> None:
        for event in (
            NodesAre(all.nodes),
            GroupsAre(all.groups),
            PolicyIs(all.policy),
            TypicalIs(all.typical),
            Charged(all.past, all.run_times, whole=True),
        ):
            self._other(event)
        for workload in all.workloads:
            self._put(workload)

    def _nodes_are(self, nodes: Sequence[Node], renewed: bool) -> None:
        now = {node.name: node for node in nodes}
        gone = [name for name in self._nodes if name not in now]
        news = [node for node in nodes if self._nodes.get(node.name) is not node and self._nodes.get(node.name) != node]
        self._nodes = now
        self._say(["m", [to_plain(node) for node in news], gone, renewed])

    def _charged(
        self, past: Mapping[Person, PastUse], run_times: Mapping[JobName, tuple[float, ...]], whole: bool
    ) -> None:
        if whole:
            self._run_times = {}
        uses = [[group, user, use.amount, use.at] for (group, user), use in past.items()]
        self._say(["c", uses, [self._runs(name, times) for name, times in run_times.items()], whole])

    def _runs(self, name: JobName, times: tuple[float, ...]) -> list[Any]:
        """Mostly there is one more, before the others."""
        known = self._run_times.get(name, ())
        self._run_times[name] = times
        if known and times[1:] == known[: len(times) - 1]:
            return [*name, len(times), times[0]]
        return [*name, 0, *times]

    # --- workloads ------------------------------------------------------------------------------------------------

    def _put(self, workload: Workload) -> None:
        known = self._works.get(workload.id)
        if known is None:
            if workload.state not in ENDED:  # of what is over and unknown nobody need be told
                self._first(workload)
            return
        before, changed = known.workload, {}
        if before is not workload:
            known.workload = workload
            was, now = _workload_values(before), _workload_values(workload)
            if was != now:
                changed = {
                    name: _value(new) for name, old, new in zip(WORKLOAD_FIELDS, was, now, strict=True) if old != new
                }
            if before.spec is not workload.spec and before.spec != workload.spec:
                changed["s"] = self._other_spec(known, workload)
        if self._has_other_reason(known, workload):
            changed["r"] = workload.reason.to_json()
        if before.attempt is not workload.attempt:
            attempt = self._attempt(before.attempt, workload)
            if attempt:
                changed["a"] = attempt
        self._say(["u", known.number, changed] if changed else ["u", known.number])
        if workload.state in ENDED:
            del self._works[workload.id]

    def _first(self, workload: Workload) -> None:
        known = _Known(self._count, workload, self._specs.number(workload.spec))
        self._count += 1
        self._works[workload.id] = known
        attempt = self._attempt(None, workload)
        reason = workload.reason.to_json() if self._has_other_reason(known, workload) else 0
        self._say(["n", workload.id, known.spec, reason, attempt or 0, *map(_value, _workload_values(workload))])

    def _other_spec(self, known: _Known, workload: Workload) -> int:
        """Another one, even if it differs only in what is not told: whoever waits with it stands in line anew."""
        number = self._specs.number(workload.spec)
        if number == known.spec:
            known.variants += 1
            number = self._specs.number(workload.spec, known.variants)
        known.spec = number
        return number

    def _has_other_reason(self, known: _Known, workload: Workload) -> bool:
        """A reason counts only for those who wait."""
        before, known.reason = known.reason, workload.reason if workload.state is State.QUEUED else None
        return known.reason is not None and known.reason is not before and known.reason != before

    def _attempt(self, before: Attempt | None, workload: Workload) -> list[Any] | None:
        """Its number and what changed. What an attempt was given never changes: it is told once."""
        after = workload.attempt
        if after is None:
            return [0] if before is not None else None
        same = before is not None and before.number == after.number
        old = _attempt_values(before) if same else (None,) * len(ATTEMPT_FIELDS)
        changed = {
            name: _value(new)
            for name, was, new in zip(ATTEMPT_FIELDS, old, _attempt_values(after), strict=True)
            if was != new
        }
        if after.ending is not None and not (same and before is not None and before.ending == after.ending):
            changed["e"] = _ending(after.ending)
        if same:
            return [after.number, changed] if changed else None
        return [after.number, changed, self._places(after, workload)]

    def _places(self, attempt: Attempt, workload: Workload) -> Any:
        given = self._given.get(workload.id)
        own = {(replica.id.role, replica.id.index): replica.allotment for replica in attempt.replicas}
        if given is not None and len(given) == len(own) and all(given.get(key) is own[key] for key in own):
            return 0  # as decided
        return self._numbers.allotments(own, workload.spec)

    def _remove(self, id: str) -> None:
        known = self._works.pop(id, None)
        if known is not None:
            self._say(["x", known.number])

    # --- decisions ------------------------------------------------------------------------------------------------

    def _decided(self, event: Decided) -> None:
        plan = event.plan
        self._given = {placement.workload: placement.allotments for placement in plan.placements}
        placements = [self._placement(placement) for placement in plan.placements]
        waiting = [[reason.to_json(), [self._told(id, reason) for id in ids]] for reason, ids in _alike(plan)]
        most = None if event.most == inf else event.most
        rest = {name: to_plain(getattr(plan, name)) for name in PLAN_REST if getattr(plan, name)}
        self._say(["d", event.now, most, event.news_only, placements, waiting, rest])

    def _placement(self, placement: Placement) -> list[Any]:
        known = self._works[placement.workload]
        rest = {name: to_plain(getattr(placement, name)) for name in PLACEMENT_FIELDS if getattr(placement, name)}
        return [known.number, self._numbers.allotments(placement.allotments, known.workload.spec), rest]

    def _told(self, id: str, reason: Reason) -> int:
        known = self._works[id]
        if known.workload.state is State.QUEUED:
            known.reason = reason
        return known.number


PLAN_REST = tuple(field.name for field in fields(Plan) if field.name not in ("placements", "waiting"))
PLACEMENT_FIELDS = tuple(field.name for field in fields(Placement) if field.name not in ("workload", "allotments"))


def _alike(plan: Plan) -> list[tuple[Reason, list[str]]]:
    """Those who wait, in order; neighbours with the same reason together."""
    found: list[tuple[Reason, list[str]]] = []
    for id, reason in plan.waiting.items():
        if found and found[-1][0] is reason:
            found[-1][1].append(id)
        else:
            found.append((reason, [id]))
    return found


def _ending(ending: Ending) -> list[Any]:
    """For whom it makes room matters; how else it came to its end does not, and may hold anything."""
    if ending.verdict is Verdict.PREEMPTED:
        return [ending.verdict.value, ending.reason.to_json()]
    return [ending.verdict.value, {"code": ending.reason.code.value, "facts": {}}]


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else to_plain(value)
