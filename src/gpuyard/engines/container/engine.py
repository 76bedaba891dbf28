"""The container engine: the verbs of the seam. Nothing that matters is in memory."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.cluster import Card, Node, NodeState
from gpuyard.domain.errors import EngineError, EngineUnsure, EngineWaits
from gpuyard.domain.images import USUAL_REGISTRY
from gpuyard.domain.places import Root, is_below
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import GIB
from gpuyard.domain.told import file_problem
from gpuyard.domain.workload import Life, ReplicaId, Seen
from gpuyard.engines.container import creating, inside_request, names
from gpuyard.engines.container.client import EngineAway, EngineClient, Refused
from gpuyard.engines.container.containers import Containers
from gpuyard.engines.container.creating import EngineFacts, Plan, Source
from gpuyard.engines.container.fetching import Fetching
from gpuyard.engines.container.firewall import Firewall, FirewallProblem
from gpuyard.engines.container.held import Held
from gpuyard.engines.container.images import Images, pull_failed
from gpuyard.engines.container.keeping import Keeping
from gpuyard.engines.container.networks import Networks, NoRoom
from gpuyard.engines.container.places import Places, install_inside
from gpuyard.engines.container.pulls import Problem
from gpuyard.engines.container.settling import Settler
from gpuyard.engines.container.watch import Watch
from gpuyard.engines.container.wording import why_not_started
from gpuyard.engines.container.written import LayerWatch
from gpuyard.engines.disk import RESERVE_BYTES, Disk
from gpuyard.engines.folders import prepare_roots
from gpuyard.engines.limits import most_processes
from gpuyard.engines.news import News
from gpuyard.engines.process import machine as this_machine
from gpuyard.engines.process import verdicts
from gpuyard.engines.process.cards import CardWatch
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.progress import ProgressReader
from gpuyard.engines.process.replicas import Replicas
from gpuyard.engines.process.rooms import check_mounts
from gpuyard.engines.process.supervision import record, removal
from gpuyard.engines.seam import DiskUse, HeldImage, HolderLook, LaunchRequest, Progress, Usage
from gpuyard.engines.variables import CONTROL_NODES

log = logging.getLogger(__name__)

T = TypeVar("T")

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CGROUPS = Path("/sys/fs/cgroup")
INSIDE = Path(__file__).parent.parent / "inside"
RDMA = Path("/dev/infiniband")
POOL = "10.231.0.0/16"
_NETWORK_TRIES = 5
_AWAY_SECONDS = 3.0  # so long an engine may be silent before the machine is said to be lost
_STRAY_SECONDS = 120.0  # a container without a replica is younger than any launch takes


@dataclass(frozen=True, slots=True)
class Options:
    """What an admin may choose."""

    log_limit_bytes: int = GIB
    pids_limit: int = 0  # by the cores
    network_pool: str = POOL
    host_network_groups: frozenset[str] = frozenset()
    denied_networks: tuple[str, ...] = ()
    default_image: str = ""
    registries: tuple[str, ...] = (USUAL_REGISTRY,)
    disk_reserve_bytes: int = RESERVE_BYTES
    layer_limit_bytes: int = 0  # none


class ContainerEngine:
    """Replicas as containers of this machine."""

    name = "container"
    makes_rooms = True

    def __init__(
        self,
        data: Path,
        client: EngineClient,
        facts: EngineFacts,
        *,
        toolbox: Callable[[], Path],
        python: Sequence[str],
        devices: Sequence[DeviceProbe] = (),
        further_roots: Sequence[Root] = (),
        options: Options | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """`toolbox` gives the folder to be shown at /opt/yard, made if need be; `python` starts its Python there."""
        layout = Layout(data.resolve())
        layout.prepare()
        roots = (layout.root, *further_roots)
        prepare_roots(roots)
        mark = names.mark_of(str(layout.data))
        self._options = options or Options()
        self._layout, self._facts, self._mark = layout, facts, mark
        self._toolbox, self._python = toolbox, tuple(python)
        self._disk = Disk(layout.data, self._options.disk_reserve_bytes)
        self._probes = tuple(devices)
        self._node = socket.gethostname()
        self._inside = install_inside(INSIDE, layout.run / "inside")
        self._replicas = Replicas(layout, None, str(BOOT_ID))
        self._cards = CardWatch(self._replicas)
        self._progress = ProgressReader(layout)
        self._places = Places(layout, roots)
        self._client = client
        self._containers = Containers(client, mark)
        self._pictures = Images(client, self._options.registries, self._disk.is_nearly_full)
        self._firewall = Firewall(self._options.denied_networks)
        self._networks = Networks(client, self._firewall, mark, self._options.network_pool, isolates=facts.is_podman)
        self._keeping = Keeping(self._places, self._containers, self._pictures)
        self._news = News()
        self._lock = threading.Lock()
        self._launching: set[ReplicaId] = set()
        self._fetching = Fetching(self._pictures, self._news.note)
        self._workers = ThreadPoolExecutor(4, "container-settle")
        self._held = Held(client, self._workers.submit)
        self._watch = Watch(self._options.log_limit_bytes, self._settle_soon)
        self._settler = Settler(layout, self._containers, self._networks, self._keeping, self._watch, self._news)
        self._written = LayerWatch(layout, self._containers, self._places, self._options.layer_limit_bytes)
        self._is_closed = False
        self._on_close = on_close
        client.on_news(self._hear_of_engine)
        self._places.unpin_all()
        self._adopt()

    # --- the five verbs -------------------------------------------------------------------------------------------

    def nodes(self) -> Sequence[Node]:
        cards = self._cards.name_holders([card for probe in self._probes for card in probe.look()])
        cpu, memory = this_machine.cpu_milli(CGROUPS), this_machine.memory(CGROUPS)
        state = NodeState.LOST if self._client.away_seconds > _AWAY_SECONDS else self._disk.state()
        return [Node(self._node, cpu, memory, tuple(cards), state, images=self._held.names())]

    def launch(self, request: LaunchRequest) -> str:
        folder = self._layout.replica(request.id)
        handle = str(folder.relative_to(self._layout.data))
        status = record.read(str(folder), record.STATUS)
        if record.exists(str(folder), record.TOMBSTONE) or (status and status.get("life") != record.STARTING):
            return handle
        self._refuse_what_cannot_be(request)
        with self._lock:
            self._launching.add(request.id)
        try:
            self._begin(request, folder, status)
        except EngineAway as problem:
            raise EngineUnsure(because(Code.LAUNCH_FAILED, detail=str(problem), replica=request.id.short)) from problem
        except (Refused, OSError, NoRoom, FirewallProblem) as problem:
            self._forget_launch(request)
            log.warning("%s could not be started: %s", request.id, problem)
            raise EngineError(why_not_started(str(problem), request.id.short)) from problem
        except EngineWaits:
            if record.exists(str(folder), record.TOMBSTONE):  # it was stopped in this very moment
                self._fetching.give_up(request.id)
            raise
        except EngineError:
            self._forget_launch(request)
            raise
        finally:
            with self._lock:
                self._launching.discard(request.id)
            self._places.unpin(request)
        return handle

    def observe(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Seen]:
        return {id: self._look(id) for id in replicas}

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        folder = str(self._layout.replica(id))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._news.note(id)  # one that never began has nobody else to tell of it
        status = record.read(folder, record.STATUS)
        if status is None and self._settler.bury(id):
            self._fetching.give_up(id)  # only now: whoever asks for it again has to find that it is over
            return
        if status is not None and status.get("life") == record.ENDED:
            return
        seconds = self._settler.ask_to_stop(id, grace_seconds)
        self._watch.stop(id, seconds)
        self._settle_soon(id, 0)

    def sweep(self, known: Iterable[ReplicaId]) -> Sequence[ReplicaId]:
        keep = set(known)
        strays = []
        for id in self._layout.live_ids():
            life = self._look(id).life
            if life is Life.ENDED or (life is Life.ABSENT and self._is_old(id)):
                self._layout.live_mark(id).unlink(missing_ok=True)
            elif life is not Life.ABSENT and id not in keep:
                self.stop(id, None, 0.0)
                strays.append(id)
        for id in self._fetching.ids():
            if id not in keep:
                self._fetching.give_up(id)
        self._workers.submit(self._keep_apart)
        self._workers.submit(self._clear_strays)
        return strays

    def on_change(self, call: Callable[[], None]) -> None:
        self._news.add(call)

    def changed(self) -> frozenset[ReplicaId] | None:
        return self._news.heard()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._watch.close()
        self._written.close()
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._client.close()
        self._on_close()
        self._cards.close()
        for probe in self._probes:
            probe.close()

    # --- what it can do besides -----------------------------------------------------------------------------------

    def usage(self, replicas: Iterable[ReplicaId]) -> Mapping[ReplicaId, Usage]:
        return self._replicas.usage(replicas, self._probes)

    def disk_use(self) -> Mapping[ReplicaId, DiskUse]:
        return self._written.uses()

    def holders(self) -> HolderLook | None:
        return self._cards.holders(self._node)

    def progress(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Progress]:
        return self._progress.read(replicas)

    def log_path(self, id: ReplicaId) -> Path:
        return self._layout.replica(id) / record.LOG

    def forget(self, workload: str) -> None:
        for id in self._layout.replicas_of(workload):
            if self._look(id).life not in (Life.ENDED, Life.ABSENT):
                raise _cannot(f"forget {id} while it is in use")
            self._layout.live_mark(id).unlink(missing_ok=True)
        try:
            for listed in self._containers.ours():
                if listed.replica.workload == workload:
                    self._containers.remove(listed.id)
            self._keeping.forget(workload)
            self._networks.remove(workload)
        except (EngineAway, Refused) as problem:
            raise _cannot(f"forget {workload} now: {problem}") from problem
        removal.remove_tree(str(self._layout.workload(workload)))

    def images(self) -> Sequence[HeldImage]:
        return self._asked(self._pictures.all)

    def fetch_refusal(self, name: str) -> Reason | None:
        return self._pictures.fetch_refusal(name)

    def has_image(self, name: str) -> bool:
        return self._asked(lambda: self._pictures.find(name)) is not None

    def pull_image(
        self, name: str, user: str, told: Callable[[str], None], over: Callable[[Reason | None], None]
    ) -> Callable[[], None]:
        def ended(problem: Problem | None) -> None:
            self._held.changed()
            over(None if problem is None else _why_not_fetched(name, problem))

        self._refuse_when_full()
        return self._pictures.fetch(name, user, told, ended, is_request=True)

    def load_image(self, chunks: Iterable[bytes]) -> Sequence[str]:
        self._refuse_when_full()
        loaded = self._asked(lambda: self._pictures.load(chunks))
        self._held.changed()
        return loaded

    def remove_image(self, name: str) -> bool:
        removed = self._asked(lambda: self._pictures.remove(name))
        self._held.changed()
        return removed

    def shares_network(self, group: str) -> bool:
        return group in self._options.host_network_groups

    def file_refusal(self, path: str) -> Reason | None:
        problem = file_problem(path)
        return because(Code.ENGINE_CANNOT, engine=self.name, what=f"show {path}: {problem}") if problem else None

    def _refuse_when_full(self) -> None:
        """What is left of the disk is for what runs."""
        if self._disk.is_nearly_full():
            raise EngineError(because(Code.STORE_FULL))

    # --- launching ------------------------------------------------------------------------------------------------

    def _refuse_what_cannot_be(self, request: LaunchRequest) -> None:
        if request.uid <= 0 or request.gid <= 0:
            raise _cannot("run work as root")
        if not (request.image or self._options.default_image):
            raise _cannot("run work without an image: name one, such as `image: python:3.12`")
        check_mounts(request.mounts, self._layout.data, self._places.roots)
        for mount in request.mounts:
            if is_below(mount.at, creating.TOOLBOX) or is_below(creating.TOOLBOX, os.path.normpath(mount.at)):
                raise _cannot(f"mount at {mount.at}: gpuyard's tools are there")
        for refusal in filter(None, (self.file_refusal(file.path) for file in request.files)):
            raise EngineError(refusal)

    def _begin(self, request: LaunchRequest, folder: Path, status: Mapping[str, Any] | None) -> None:
        """Everything up to the start is made ready; then, with the lock, it has begun for good or never will."""
        made = self._make(request, folder) if status is None else str(status["container"])
        if status is not None:
            self._places.pin(request, creating.identity(request, self._facts))
        if status is None and not self._settler.begin(request.id, made, request.allotment.memory):
            self._discard(request, made)
            return
        self._cards.note_given(request.id, self._given_cards(request))
        if self._settler.is_stop_asked(request.id):
            self._settle_soon(request.id, 0)
            return
        try:
            if status is None or not self._settler.has_started(request.id):  # it must never run twice
                self._start(request, made)
        except Refused as problem:
            self._settler.fail(request.id, problem.message)
            return
        self._settler.note_running(request.id)

    def _start(self, request: LaunchRequest, made: str) -> None:
        """Docker lets a network go while one that was made for it has not begun, and looks for it only now."""
        try:
            self._containers.start(made)
        except Refused as problem:
            if names.network_name(request.id.workload) not in problem.message:
                raise
            self._networks.ensure(request.id.workload)
            self._containers.start(made)
        self._keep_apart()  # podman puts its own rules first with the first container there is

    def _make(self, request: LaunchRequest, folder: Path) -> str:
        image = self._image(request)
        who = creating.identity(request, self._facts)
        cards = self._given_cards(request)
        self._places.make(request, who)
        image_env = (image.get("Config") or {}).get("Env") or ()
        self._places.write_request(folder, inside_request.render(request, cards, self._places.roots, image_env), who)
        record.write(str(folder), record.REQUEST, self._note_for_readers(request, cards, who))
        self._layout.live_mark(request.id).touch()
        body = creating.config(self._plan(request, folder, str(image["Id"]), cards, who), self._facts)
        for _ in range(_NETWORK_TRIES):
            try:
                return self._create(request, body)
            except Refused as problem:
                if "network" not in problem.message:
                    raise
                self._networks.ensure(request.id.workload)  # the end of another replica took it away in between
        return self._create(request, body)

    def _create(self, request: LaunchRequest, body: Mapping[str, Any]) -> str:
        if request.keeps is None:
            return self._containers.create(names.container_name(request.id), body)
        return self._keeping.container_for(request.keeps, request.image or self._options.default_image, body)

    def _image(self, request: LaunchRequest) -> dict[str, Any]:
        name = request.image or self._options.default_image
        found = self._fetching.ensure(request.id, request.owner, name)
        self._held.met(name)
        return found

    def _plan(
        self, request: LaunchRequest, folder: Path, image: str, cards: Sequence[Card], who: tuple[int, int]
    ) -> Plan:
        base = self._places.base(request, folder)
        toolbox = self._places.link("toolbox", self._toolbox().resolve())
        sources = self._places.sources(request, base, cards, str(toolbox), str(self._inside))
        is_host = self.shares_network(request.group)
        if is_host and creating.has_block(request, self._facts):  # a new one cannot be made there for that network
            sources = (*sources, Source("/sys", "/sys", read_only=True))
        device = request.allotment.device
        there = [path for path in CONTROL_NODES.get(device, ()) if os.path.exists(path)]
        return Plan(
            request=request,
            image=image,
            sources=(*sources, *self._places.pin(request, who)),
            cards=tuple(cards),
            control_nodes=creating.control_nodes(device, cards, there),
            rdma_nodes=tuple(sorted(map(str, RDMA.glob("*")))) if is_host else (),
            network=None if is_host else self._networks.ensure(request.id.workload),
            command=(*self._python, "-I", "-S", "-E", creating.PORTER, creating.REQUEST),
            pids_limit=most_processes(self._options.pids_limit, request.allotment.cpu_milli),
            mark=self._mark,
        )

    def _note_for_readers(self, request: LaunchRequest, cards: Sequence[Card], who: tuple[int, int]) -> dict[str, Any]:
        """What is needed later to read use and progress, whoever reads it."""
        return {
            "id": str(request.id),
            "identity": {"uid": who[0], "gid": who[1]},
            "room": {"container": True},
            "checkpoint": inside_request.checkpoint_inside(request, self._places.roots),
            "checkpoint_place": inside_request.checkpoint_place(request, self._places.roots),
            "device": request.allotment.device,
            "cards": [card.index for card in cards],
            "keeps": request.keeps,
        }

    def _given_cards(self, request: LaunchRequest) -> list[Card]:
        wanted = {share.index for share in request.allotment.cards}
        if not wanted:
            return []
        known = [card for probe in self._probes for card in probe.look() if card.device == request.allotment.device]
        given = [card for card in known if card.index in wanted]
        if len(given) != len(wanted):
            raise _launch_failed(request.id, f"this machine does not have all of the cards {sorted(wanted)}")
        return given

    def _forget_launch(self, request: LaunchRequest) -> None:
        """It could not be started: nothing of it can be alive."""
        if not record.exists(str(self._layout.replica(request.id)), record.STATUS):
            self._layout.live_mark(request.id).unlink(missing_ok=True)

    def _discard(self, request: LaunchRequest, made: str) -> None:
        """It was stopped while it was being made ready."""
        self._layout.live_mark(request.id).unlink(missing_ok=True)
        if request.keeps is None:
            self._containers.remove(made)
            self._networks.remove(request.id.workload)

    # --- looking --------------------------------------------------------------------------------------------------

    def _look(self, id: ReplicaId) -> Seen:
        folder = self._layout.replica(id)
        status = record.read(str(folder), record.STATUS)
        if status is None:
            return self._look_at_launch(id)
        if status.get("life") != record.ENDED and not self._settler.is_well(status):
            status = self._settler.settle_alone(id) or status
            if status.get("life") != record.ENDED:
                self._settle_soon(id, 0)
        return verdicts.seen(id, status, self._node)

    def _look_at_launch(self, id: ReplicaId) -> Seen:
        waits = self._fetching.reason(id)
        with self._lock:
            is_on_its_way = waits is not None or id in self._launching
        if not is_on_its_way or record.exists(str(self._layout.replica(id)), record.TOMBSTONE):
            return Seen()
        return Seen(Life.STARTING, reason=waits)

    def _settle_soon(self, id: ReplicaId, oom_kills: int) -> None:
        with self._lock:
            if self._is_closed or id in self._launching:
                return
        try:
            self._workers.submit(self._settle, id, oom_kills)
        except RuntimeError:  # it was closed in this very moment
            return

    def _settle(self, id: ReplicaId, oom_kills: int) -> None:
        try:
            self._settler.settle(id, oom_kills)
        except Exception:  # the next look tries again
            log.exception("looking at %s", id)
            self._watch.look_later(id, 5.0)

    def _adopt(self) -> None:
        """Everything that may be alive is looked at: by a new server, and when the engine is back."""
        for id in self._layout.live_ids():
            self._settle_soon(id, 0)

    def _hear_of_engine(self, is_away: bool) -> None:
        if not is_away:
            self._news.note(None)
            self._news.tell()
            self._adopt()
            with contextlib.suppress(RuntimeError):  # it was closed in this very moment
                self._workers.submit(self._keep_apart)

    def _keep_apart(self) -> None:
        """An admin, a firewall that was loaded anew or a docker that was started anew may have undone the rules under
        what runs."""
        try:
            if self._layout.live_ids():
                self._firewall.ensure()
        except FirewallProblem as problem:
            log.error("workloads may not be kept apart: %s", problem)

    def _clear_strays(self) -> None:
        with self._lock:
            launching = {id.workload for id in (*self._launching, *self._fetching.ids())}
        try:
            self._settler.clear_strays(launching, _STRAY_SECONDS)
        except (EngineAway, Refused) as problem:
            log.info("strays could not be looked for: %s", problem)
        except Exception:
            log.exception("looking for strays")

    def _is_old(self, id: ReplicaId) -> bool:
        """A mark that precedes its replica by more than any launch takes."""
        with self._lock:
            if id in self._launching:
                return False
        try:
            return time.time() - self._layout.live_mark(id).stat().st_mtime > _STRAY_SECONDS
        except FileNotFoundError:
            return False

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except EngineAway as problem:
            raise _cannot("engine.away") from problem
        except Refused as problem:
            log.warning("the container engine refused: %s", problem)
            raise _cannot("engine.refused") from problem


def _why_not_fetched(name: str, problem: Problem) -> Reason:
    if isinstance(problem, Refused):
        return pull_failed(name, problem.message).reason
    return _cannot("engine.away").reason


def _cannot(what: str) -> EngineError:
    return EngineError(because(Code.ENGINE_CANNOT, engine="container", what=what))


def _launch_failed(id: ReplicaId, detail: str) -> EngineError:
    return EngineError(because(Code.LAUNCH_FAILED, detail=detail, replica=id.short))
