"""Plain data as the events it was made from. What was left out of a workload is at its default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Any, get_type_hints

from gpuyard.domain.amending import amended
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import (
    Attempt,
    Ending,
    Replica,
    ReplicaId,
    Spec,
    State,
    Verdict,
    Workload,
)
from gpuyard.journal.events import (
    BooksMade,
    Charged,
    Decided,
    Event,
    GroupsAre,
    NodesAre,
    PolicyIs,
    TypicalIs,
)
from gpuyard.journal.plain import decoder, from_plain
from gpuyard.journal.tables import AMOUNT, CARDS, NODE, Key, Names, read_spec
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.snapshot import JobName, Placement, Plan

_NO_REASON = Reason(Code.NEW)


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment says of itself first."""

    format: int
    version: str  # of gpuyard
    at: float
    lost_cycles: int  # before this segment that were not written down
    workload_fields: tuple[str, ...]
    attempt_fields: tuple[str, ...]


class Reading:
    """Of one segment."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._names = Names()
        self._specs: list[Spec] = []
        self._works: list[Workload] = []
        self._nodes: dict[str, Node] = {}
        self._run_times: dict[JobName, tuple[float, ...]] = {}
        self._given: dict[str, Any] = {}
        self._read_workload = _readers(Workload)
        self._read_attempt = _readers(Attempt)
        self._kinds: dict[str, Callable[..., Event | None]] = {
            "n": self._first,
            "u": self._update,
            "x": self._remove,
            "c": self._charged,
            "m": self._nodes_are,
            "g": lambda groups: GroupsAre({group["name"]: from_plain(Group, group) for group in groups}),
            "p": lambda policy: PolicyIs(from_plain(Policy, policy)),
            "t": lambda typical: TypicalIs(from_plain(tuple[Typical, ...], typical)),
            "b": BooksMade,
            "d": self._decided,
            "S": lambda data, variant: self._specs.append(read_spec(data, variant)),
            **{kind: self._learner(kind) for kind in (NODE, AMOUNT, CARDS)},
        }

    def _learner(self, kind: str) -> Callable[[Any], None]:
        return lambda data: self._names.learn(kind, data)

    def events(self, said: Sequence[Any]) -> Iterator[Event]:
        for kind, *data in said:
            event = self._kinds[kind](*data)
            if event is not None:
                yield event

    def _nodes_are(self, news: list[Any], gone: list[str], renewed: bool) -> NodesAre:
        for name in gone:
            del self._nodes[name]
        for data in news:
            node: Node = from_plain(Node, data)
            self._nodes[node.name] = node
        return NodesAre(tuple(self._nodes[name] for name in sorted(self._nodes)), renewed)

    def _charged(self, past: list[Any], runs: list[Any], whole: bool) -> Charged:
        if whole:
            self._run_times = {}
        times = {}
        for owner, name, length, *given in runs:
            known = self._run_times.get((owner, name), ())
            times[owner, name] = (given[0], *known)[:length] if length else tuple(given)
        self._run_times.update(times)
        return Charged({(group, user): PastUse(amount, at) for group, user, amount, at in past}, times, whole)

    # --- workloads ------------------------------------------------------------------------------------------------

    def _first(self, id: str, spec: int, reason: Any, attempt: Any, *values: Any) -> Workload:
        given = zip(self.header.workload_fields, values, strict=True)
        made = Workload(
            id=id,
            spec=self._specs[spec],
            reason=Reason.from_json(reason) if reason else _NO_REASON,
            **{name: self._read_workload[name](value) for name, value in given},
        )
        if attempt:
            made = amended(made, attempt=self._attempt(made, None, *attempt))
        self._works.append(made)
        return made

    def _update(self, number: int, changed: dict[str, Any] | None = None) -> Workload:
        before = self._works[number]
        after = before
        if changed:
            after = self._changed(before, dict(changed))
        if after.state is not State.QUEUED and after.reason is not _NO_REASON:
            after = amended(after, reason=_NO_REASON)
        self._works[number] = after
        return after

    def _changed(self, before: Workload, changed: dict[str, Any]) -> Workload:
        news: dict[str, Any] = {}
        if "s" in changed:
            news["spec"] = self._specs[changed.pop("s")]
        if "r" in changed:
            news["reason"] = Reason.from_json(changed.pop("r"))
        attempt = changed.pop("a", None)
        news.update((name, self._read_workload[name](value)) for name, value in changed.items())
        after = amended(before, **news)
        return amended(after, attempt=self._attempt(after, before.attempt, *attempt)) if attempt else after

    def _attempt(
        self, workload: Workload, before: Attempt | None, number: int, changed: Any = None, places: Any = None
    ) -> Attempt | None:
        if number == 0:
            return None
        news = dict(changed)
        ending = news.pop("e", None)
        values = {name: self._read_attempt[name](value) for name, value in news.items()}
        if ending is not None:
            values["ending"] = Ending(Verdict(ending[0]), Reason.from_json(ending[1]))
        if places is None:
            assert before is not None
            return amended(before, **values)
        return Attempt(number=number, replicas=self._replicas(workload, number, places), **values)

    def _replicas(self, workload: Workload, number: int, places: Any) -> tuple[Replica, ...]:
        given: dict[Key, Any] = (
            self._given[workload.id] if places == 0 else self._names.allotments(places, workload.spec)
        )
        id = workload.id
        return tuple(Replica(ReplicaId(id, number, role, index), one) for (role, index), one in given.items())

    def _remove(self, number: int) -> str:
        return self._works[number].id

    # --- decisions ------------------------------------------------------------------------------------------------

    def _decided(
        self, now: float, most: float | None, news_only: bool, placements: list[Any], waiting: list[Any], rest: Any
    ) -> Decided:
        made = tuple(self._placement(*one) for one in placements)
        self._given = {placement.workload: placement.allotments for placement in made}
        reasons: dict[str, Reason] = {}
        for data, numbers in waiting:
            reason = Reason.from_json(data)
            for number in numbers:
                workload = self._works[number]
                reasons[workload.id] = reason
                if workload.state is State.QUEUED:
                    self._works[number] = amended(workload, reason=reason)
        hints = _hints(Plan)
        plan = Plan(made, reasons, **{name: decoder(hints[name])(data) for name, data in rest.items()})
        return Decided(now, plan, inf if most is None else most, news_only)

    def _placement(self, number: int, places: Any, rest: dict[str, Any]) -> Placement:
        workload, hints = self._works[number], _hints(Placement)
        allotments = self._names.allotments(places, workload.spec)
        return Placement(workload.id, allotments, **{name: decoder(hints[name])(data) for name, data in rest.items()})


def read_header(data: Any) -> Header:
    header: Header = from_plain(Header, data)
    return header


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(kind: type) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {field.name: decoder(_hints(kind)[field.name]) for field in fields(kind)}
