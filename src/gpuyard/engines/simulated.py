"""Virtual nodes and cards, for trying things out, for tests and for benchmarks. It is an engine like the others.

What a replica does is read from its environment, so that a test can write a whole scenario into a job:
YARD_SIM_SECONDS (how long it runs; `sleep N` as command works too), YARD_SIM_EXIT (its exit code), YARD_SIM_OOM=1,
YARD_SIM_DEAF=1 (ignores the stop signal until the grace time is over), YARD_SIM_START_SECONDS (slow start),
YARD_SIM_CHECKPOINT_SECONDS (it saves its work so often, and a later attempt goes on from what was saved),
YARD_SIM_CARD_PERCENT (how busy its cards are measured to be; without it they do not tell).

A handle holds everything (`started, seconds, exit`), so a new process that only kept the handle sees the same life.
Only what earlier attempts saved is kept in memory: an attempt that begins after a restart of the server begins anew.
Time comes from the clock given to it; tests move that clock by hand.
"""

from __future__ import annotations

import heapq
import json
import math
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuyard.domain.cluster import Card, Node, NodeState
from gpuyard.domain.errors import EngineError, EngineUnsure
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import GIB
from gpuyard.domain.usage import CardUse
from gpuyard.domain.workload import Cause, Life, ReplicaId, Seen
from gpuyard.engines.seam import LaunchRequest, Progress, Usage

DEFAULT_SECONDS = 1.0
STAYS_SECONDS = 10 * 365 * 86400.0  # a dev environment, unless it is stopped


@dataclass
class Faults:
    """What should go wrong next. Each number counts down as it happens."""

    refuse_launches: int = 0
    unsure_launches: int = 0  # it starts, but the answer is lost
    lost_nodes: set[str] = field(default_factory=set)
    vanish: set[ReplicaId] = field(default_factory=set)  # gone without a trace


@dataclass(frozen=True, slots=True)
class _Life:
    """The whole life of a simulated replica, decided at launch."""

    node: str
    started: float
    ready: float
    ends: float
    exit_code: int
    oom: bool
    deaf: bool
    memory: int
    saves_every: float = 0.0  # 0: never
    done_before: float = 0.0  # seconds of its work that earlier attempts have saved
    cards: Sequence[int] = ()  # that tell how busy they are
    percent: float = 0.0

    def saved_at(self, moment: float) -> float | None:
        """When it last saved, seen from a moment; None: not yet in this attempt."""
        times = (min(moment, self.ends) - self.ready) // self.saves_every if self.saves_every else 0.0
        return self.ready + times * self.saves_every if times >= 1 else None

    def card_use(self) -> tuple[CardUse, ...]:
        return tuple(CardUse(index, self.percent, 0) for index in self.cards)

    def saved_work(self, moment: float) -> float:
        saved_at = self.saved_at(moment)
        return self.done_before + (saved_at - self.ready if saved_at is not None else 0.0)


class SimulatedEngine:
    """Virtual machines. `wait` sleeps until a moment or until woken; without it nobody is told, tests ask."""

    name = "simulated"
    launches_quickly = True
    makes_rooms = True  # nobody is there to look

    def __init__(
        self,
        nodes: Sequence[Node],
        clock: Callable[[], float],
        *,
        logs: Path | None = None,
        real_time: bool = False,
    ) -> None:
        self.faults = Faults()
        self._nodes = tuple(nodes)
        self._clock = clock
        self._logs = logs
        self._lives: dict[ReplicaId, _Life] = {}
        self._stopped: dict[ReplicaId, float] = {}  # id -> when its end was or will be
        self._callbacks: list[Callable[[], None]] = []
        self._moments: list[tuple[float, ReplicaId]] = []  # when whose life will change; a heap
        self._due: set[ReplicaId] = set()  # whose moments have come and were not asked for yet
        self._faults_told: object = None
        self._wake = threading.Condition()
        self._closed = False
        if real_time:
            threading.Thread(target=self._tell, name="simulated-engine", daemon=True).start()

    def nodes(self) -> Sequence[Node]:
        lost = self.faults.lost_nodes
        return [replace(n, state=NodeState.LOST) if n.name in lost else n for n in self._nodes]

    def file_refusal(self, path: str) -> Reason | None:
        return None

    def hold_images(self, node: str, *images: str) -> None:
        """From now on this node holds these, by their full names."""
        held = tuple(sorted(images))
        self._nodes = tuple(replace(n, images=held) if n.name == node else n for n in self._nodes)

    def launch(self, request: LaunchRequest) -> str:
        if self.faults.refuse_launches > 0:
            self.faults.refuse_launches -= 1
            raise EngineError(because(Code.LAUNCH_FAILED, detail="refused by the simulation", replica=request.id.short))
        if request.id in self._stopped and request.id not in self._lives:
            return "{}"
        life = self._lives.get(request.id)
        if life is None:
            life = _decide_life(request, self._clock(), self._saved_before(request.id))
            self._lives[request.id] = life
            self._write_log(request)
            # Whoever launches looks at it once in any case: only what comes later is worth a call.
            self._expect(request.id, *(moment for moment in (life.ready, life.ends) if moment > life.started))
        if self.faults.unsure_launches > 0:
            self.faults.unsure_launches -= 1
            raise EngineUnsure(because(Code.LAUNCH_FAILED, detail="the answer was lost", replica=request.id.short))
        return _write_handle(life)

    def observe(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Seen]:
        now = self._clock()
        return {id: self._look(id, handle, now) for id, handle in replicas.items()}

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        life = self._find(id, handle)
        now = self._clock()
        ends = now + grace_seconds if life is not None and life.deaf else now
        self._stopped[id] = min(ends, self._stopped.get(id, ends))
        self._expect(id, self._stopped[id])

    def sweep(self, known: Iterable[ReplicaId]) -> Sequence[ReplicaId]:
        keep = set(known)
        now = self._clock()
        strays = [id for id in list(self._lives) if id not in keep and self._look(id, None, now).life is not Life.ENDED]
        for id in strays:
            self._stopped[id] = now
            self._expect(id, now)
        return strays

    def on_change(self, call: Callable[[], None]) -> None:
        self._callbacks.append(call)

    def changed(self) -> frozenset[ReplicaId] | None:
        faults = (frozenset(self.faults.lost_nodes), frozenset(self.faults.vanish))
        with self._wake:
            self._collect_due()
            due, self._due = self._due, set()
        if faults != self._faults_told:  # also the first time: what lived before this engine is not known to it
            self._faults_told = faults
            return None
        return frozenset(due)

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify()

    def usage(self, replicas: Iterable[ReplicaId]) -> Mapping[ReplicaId, Usage]:
        now = self._clock()
        lives = {id: self._lives[id] for id in replicas if id in self._lives}
        return {
            id: Usage(max(0.0, now - life.ready), life.memory // 2, 1, life.card_use()) for id, life in lives.items()
        }

    def progress(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Progress]:
        now = self._clock()
        found: dict[ReplicaId, Progress] = {}
        for id, handle in replicas.items():
            life = self._find(id, handle)
            saved_at = life.saved_at(self._last_moment(id, now)) if life is not None else None
            if life is not None and saved_at is not None:
                found[id] = Progress(saved_at, int(life.saved_work(saved_at)))
        return found

    def log_path(self, id: ReplicaId) -> Path:
        return (self._logs or Path("/nonexistent")) / id.workload / str(id.attempt) / f"{id.short}.log"

    def forget(self, workload: str) -> None:
        for id in [id for id in list(self._lives) if id.workload == workload]:
            del self._lives[id]
            self._stopped.pop(id, None)
        if self._logs is not None:
            shutil.rmtree(self._logs / workload, ignore_errors=True)

    def _look(self, id: ReplicaId, handle: str | None, now: float) -> Seen:
        life = self._find(id, handle)
        if life is None or id in self.faults.vanish:
            return Seen()
        if life.node in self.faults.lost_nodes:
            reason = because(Code.NODE_LOST, node=life.node, replica=id.short)
            return Seen(Life.ENDED, None, Cause.LOST, reason, life.ready, now)
        stopped = self._stopped.get(id)
        if stopped is not None and stopped <= min(now, life.ends):
            return Seen(Life.ENDED, 143, None, None, life.ready, stopped)
        if now >= life.ends:
            return _natural_end(id, life)
        if now >= life.ready:
            return Seen(Life.RUNNING, started_at=life.ready)
        return Seen(Life.STARTING)

    def _last_moment(self, id: ReplicaId, now: float) -> float:
        """Up to when it worked."""
        return min(now, self._stopped.get(id, now))

    def _saved_before(self, id: ReplicaId) -> float:
        """Seconds of its work that the newest earlier attempt left saved."""
        for attempt in range(id.attempt - 1, 0, -1):
            earlier = replace(id, attempt=attempt)
            if earlier in self._lives:
                return self._lives[earlier].saved_work(self._last_moment(earlier, self._clock()))
        return 0.0

    def _find(self, id: ReplicaId, handle: str | None) -> _Life | None:
        if id not in self._lives and handle and handle != "{}":
            self._lives[id] = life = _Life(**json.loads(handle))
            self._expect(id, life.ready, life.ends)
        return self._lives.get(id)

    def _write_log(self, request: LaunchRequest) -> None:
        if self._logs is None:
            return
        path = self.log_path(request.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"[simulated] {request.id.short} on {request.allotment.node}: {' '.join(request.command)}\n"
        path.write_text(text, encoding="utf-8", errors="replace")

    def _expect(self, id: ReplicaId, *moments: float) -> None:
        with self._wake:
            for moment in moments:
                heapq.heappush(self._moments, (moment, id))
            if self._moments and self._moments[0][1] == id:
                self._wake.notify()

    def _collect_due(self) -> None:
        now = self._clock()
        while self._moments and self._moments[0][0] <= now:
            self._due.add(heapq.heappop(self._moments)[1])

    def _tell(self) -> None:
        """Call the callbacks whenever a moment has come."""
        while True:
            with self._wake:
                if self._closed:
                    return
                due = self._moments[0][0] - self._clock() if self._moments else None
                if due is None or due > 0:
                    self._wake.wait(due)
                    continue
                self._collect_due()
            for call in self._callbacks:
                call()


def _decide_life(request: LaunchRequest, now: float, done_before: float) -> _Life:
    env = dict(request.env)
    ready = now + _seconds(request, "YARD_SIM_START_SECONDS", 0.0)
    usual = DEFAULT_SECONDS if request.command else STAYS_SECONDS
    seconds = _seconds(request, "YARD_SIM_SECONDS", float(_sleep_seconds(request.command) or usual))
    return _Life(
        node=request.allotment.node,
        started=now,
        ready=ready,
        ends=ready + max(0.0, seconds - done_before),
        exit_code=int(env.get("YARD_SIM_EXIT", 0)),
        oom=env.get("YARD_SIM_OOM") == "1",
        deaf=env.get("YARD_SIM_DEAF") == "1",
        memory=request.allotment.memory,
        saves_every=_seconds(request, "YARD_SIM_CHECKPOINT_SECONDS", 0.0),
        done_before=done_before,
        cards=[share.index for share in request.allotment.cards] if "YARD_SIM_CARD_PERCENT" in env else (),
        percent=_seconds(request, "YARD_SIM_CARD_PERCENT", 0.0),
    )


def _seconds(request: LaunchRequest, name: str, default: float) -> float:
    text = dict(request.env).get(name)
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        detail = f"{name}={text} is not a number that will do"
        raise EngineError(because(Code.LAUNCH_FAILED, detail=detail, replica=request.id.short))
    return seconds


def _sleep_seconds(command: Sequence[str]) -> str | None:
    """`sleep 5`, as a list or as text for the shell."""
    words = command[2].split() if tuple(command[:2]) == ("sh", "-c") and len(command) == 3 else list(command)
    if len(words) == 2 and words[0] == "sleep" and words[1].replace(".", "", 1).isdigit():
        return words[1]
    return None


def _natural_end(id: ReplicaId, life: _Life) -> Seen:
    if life.oom:
        reason = because(Code.OUT_OF_MEMORY, memory=life.memory, replica=id.short)
        return Seen(Life.ENDED, 137, Cause.OOM, reason, life.ready, life.ends)
    if life.exit_code:
        reason = because(Code.EXIT_CODE, exit_code=life.exit_code, replica=id.short)
        return Seen(Life.ENDED, life.exit_code, Cause.EXIT, reason, life.ready, life.ends)
    return Seen(Life.ENDED, 0, None, None, life.ready, life.ends)


def _write_handle(life: _Life) -> str:
    return json.dumps({name: getattr(life, name) for name in life.__slots__}, separators=(",", ":"))


def virtual_nodes(count: int, cards: int, device: str = "nvidia") -> list[Node]:
    """`20x8`: twenty nodes of eight cards, each with 12 cores and 96 GiB per card (16 cores without cards)."""
    width = len(str(count))
    return [
        Node(
            name=f"sim-{number:0{width}d}",
            cpu_milli=12_000 * cards or 16_000,
            memory=96 * GIB * cards or 128 * GIB,
            cards=tuple(Card(i, device, f"Simulated {device}", 80 * GIB, simulated=True) for i in range(cards)),
        )
        for number in range(1, count + 1)
    ]
