"""Live workloads, sorted by what can happen to them next: by state, and by the moment at which something is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from gpuyard.domain.workload import ENDED, State, Workload

_SPARE_MOMENTS = 1000  # this many moments of work that has gone are carried along before they are cleared away


class Shelves:
    """Whoever loops over a state pays for that state only, never for all that lives."""

    def __init__(self, workloads: Iterable[Workload] = ()) -> None:
        self.live: dict[str, Workload] = {}
        self._by_state: dict[State, dict[str, Workload]] = {state: {} for state in State}
        self._moments: list[tuple[float, str]] = []
        for workload in workloads:
            self.put(workload)

    def put(self, workload: Workload) -> None:
        """In any state; replaces what was known of it. What has ended is not live."""
        old = self.live.get(workload.id)
        if workload.state in ENDED:
            if old is not None:
                self.remove(workload.id)
            return
        if old is not None and old.state is not workload.state:
            del self._by_state[old.state][workload.id]
        self.live[workload.id] = self._by_state[workload.state][workload.id] = workload
        moment = moment_of(workload)
        if moment is not None and (old is None or moment_of(old) != moment):
            heappush(self._moments, (moment, workload.id))

    def remove(self, id: str) -> None:
        old = self.live.pop(id, None)
        if old is not None:
            del self._by_state[old.state][id]

    def in_state(self, state: State) -> Mapping[str, Workload]:
        return self._by_state[state]

    def next_moment(self) -> float | None:
        """When something is due next. It may be the moment of work that has gone meanwhile: then nothing is."""
        return self._moments[0][0] if self._moments else None

    def due(self, now: float) -> list[str]:
        """Those whose moment has come, each once."""
        if len(self._moments) > 2 * len(self.live) + _SPARE_MOMENTS:
            self._moments = [(at, id) for at, id in self._moments if id in self.live]
            heapify(self._moments)
        found: dict[str, None] = {}
        while self._moments and self._moments[0][0] <= now:
            found[heappop(self._moments)[1]] = None
        return [id for id in found if id in self.live]


def moment_of(workload: Workload) -> float | None:
    """When its back-off or its maximum duration is over."""
    if workload.state is State.QUEUED:
        return workload.not_before or None
    if workload.state is State.RUNNING and workload.spec.max_seconds is not None and workload.attempt is not None:
        begun = workload.attempt.started_at
        return None if begun is None else begun + workload.spec.max_seconds
    return None
