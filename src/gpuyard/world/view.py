"""The picture as the api uses it: caught up on each question, locked around, never written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Policy
from gpuyard.domain.workload import State, Workload
from gpuyard.forecast.estimate import Stage, in_turn, staged
from gpuyard.forecast.runtimes import RunTimes
from gpuyard.scheduling.before import Answer, Past, before
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.order import raised
from gpuyard.scheduling.plan import preview_in
from gpuyard.scheduling.proposals import Fragments, fragments
from gpuyard.scheduling.snapshot import Preview, Snapshot, Why
from gpuyard.scheduling.strands import kinds, strands
from gpuyard.scheduling.why import asked, offers
from gpuyard.store.database import Database
from gpuyard.store.feed import newest_change
from gpuyard.world.compare import Comparison, compare
from gpuyard.world.picture import Picture

OPEN_SECONDS = 10.0  # so long a pass serves further questions, as long as nothing changes
# With many in the line a pass takes a while; where much happens, an answer may then be this old.
MANY_WAIT, OLD_SECONDS = 2000, 2.0
SLOW_SECONDS = 0.1
DEAR = 10.0  # what is fragmented is told to everybody for so many times as long as it took to find out


class View:
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._picture = Picture(database)
        self._clock = clock
        self._lock = threading.Lock()
        self._comparing = threading.Lock()  # it takes the processor for a while: one after the other
        self._inquiry: Inquiry | None = None  # a pass kept open; the books are not touched meanwhile
        self._fragments: tuple[float, Fragments] | None = None  # until when by the monotonic clock, and what was found

    def preview(self, workload: Workload, groups: Sequence[str] | None = None) -> Preview:
        """What would happen if this were submitted now. With `groups` also what would start it, perhaps in those."""
        with self._lock:
            self._close()
            self._follow()
            now = self._clock()
            outlook = preview_in(self._picture.books, workload, now)
            if groups is not None and not outlook.starts:
                outlook = replace(outlook, remedies=offers(self._picture.books, workload, now, groups))
            known = self._picture.nodes
        nodes = [node for node in known if node.name in outlook.nodes] if outlook.starts else known
        return replace(outlook, notes=tuple(strands(workload.spec, kinds(nodes))))

    def why(self, id: str, remedies: bool, groups: Sequence[str]) -> Why | None:
        """The proof that it waits, and what would start it; None when it does not wait, or is about to start."""
        with self._lock:
            return asked(self._open(id), id, remedies=remedies, groups=groups)

    def before(self, one: Past, two: Past) -> Answer:
        """Which of two came first, and by which rule."""
        with self._lock:
            inquiry = self._open(one.workload.id, two.workload.id)
            rule = self._picture.policy.order
            return before(one, two, inquiry.ranked, lambda w, at: raised(w.spec.priority, w.submitted_at, at, rule))

    def compare(self, policy: Policy) -> Comparison:
        """What this policy would change now, were it in force."""
        snapshot = self._snapshot()
        with self._comparing:
            return compare(snapshot, policy)

    def holding(self) -> list[Workload]:
        """The workloads that have cards or cores now."""
        with self._lock:
            self._follow()
            return [w for w in self._picture.live.values() if w.holds_resources]

    def held(self, ids: Iterable[str]) -> Mapping[str, Workload]:
        """Those of these workloads that have cards or cores now."""
        with self._lock:
            self._follow()
            found = (self._picture.live.get(id) for id in ids)
            return {workload.id: workload for workload in found if workload is not None and workload.holds_resources}

    def nodes(self) -> Sequence[Node]:
        """Every machine, by name."""
        with self._lock:
            self._follow()
            return self._picture.nodes

    def line(self) -> list[Workload]:
        """Those that wait, in the order in which they are asked. What can never start is not among them."""
        with self._lock:
            inquiry = self._open()
            waiting = inquiry.books.line.workloads
            return [waiting[id] for id in inquiry.queue.in_order() if id in waiting]

    def stage(self, times: RunTimes, extra: Workload | None = None) -> Stage:
        """All a look ahead needs, as it is now; `extra` as if it had been submitted."""
        with self._lock:
            self._follow()
            self._close()
            books, now = self._picture.books, self._clock()
            if extra is not None:
                books.put(extra)
            try:
                return staged(books, in_turn(books, now), times, now)
            finally:
                if extra is not None:
                    books.remove(extra.id)

    def waiting(self) -> list[Workload]:
        """Those that wait, in no order."""
        with self._lock:
            self._follow()
            return self._picture.in_state(State.QUEUED)

    def fragments(self) -> Fragments:
        """What is fragmented, for whom, and which moves would help."""
        with self._lock:
            begun, kept = time.monotonic(), self._fragments
            if kept is not None and begun < kept[0]:
                return kept[1]
            found = fragments(self._open())
            done = time.monotonic()
            self._fragments = (done + DEAR * (done - begun), found) if done - begun >= SLOW_SECONDS else None
            return found

    def _snapshot(self) -> Snapshot:
        with self._lock:
            self._follow()
            return self._picture.snapshot(self._clock())

    def _open(self, *ids: str) -> Inquiry:
        """A pass over the line as it is now, or was a moment ago, in which these stand if they wait."""
        now = self._clock()
        if self._inquiry is not None and 0 <= now - self._inquiry.now < OLD_SECONDS:
            line = self._inquiry.books.line.workloads
            if len(line) > MANY_WAIT and all(id in line for id in ids):
                return self._inquiry
        self._follow()
        if self._inquiry is not None and not 0 <= now - self._inquiry.now < OPEN_SECONDS:
            self._close()
        if self._inquiry is None:
            self._inquiry = Inquiry(self._picture.books, now)
        return self._inquiry

    def _follow(self) -> None:
        if self._inquiry is not None:
            with self._database.read() as conn:
                if newest_change(conn) == self._picture.position:
                    return
            self._close()
        self._picture.follow()

    def _close(self) -> None:
        if self._inquiry is not None:
            self._inquiry.close()
            self._inquiry = None
