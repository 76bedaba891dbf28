"""Replicas as processes: who watches over them, who belongs to them, what they use, how to end what is left."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.supervision import cgroups, processes, record
from gpuyard.engines.seam import CardUse, Usage

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


CardName = tuple[str, int]  # device, index


class Replicas:
    def __init__(self, layout: Layout, group_parent: dict[str, Any] | None, boot_id_path: str) -> None:
        self._layout = layout
        self._parent = group_parent
        self._boot_id_path = boot_id_path
        self._yard = _yard_id(layout.run / "yard-id")

    def group_for(self, id: ReplicaId) -> dict[str, Any] | None:
        """The name says whose it is: several yards may live on one machine."""
        return cgroups.below(self._parent, f"{self._yard}.{id}") if self._parent else None

    def is_supervised(self, status: dict[str, Any]) -> bool:
        """Pid and start time together are never used twice in one boot."""
        supervisor = status.get("supervisor")
        if not supervisor or self.is_of_another_boot(status):
            return False
        return processes.is_alive(supervisor["pid"], supervisor["start"])

    def is_of_another_boot(self, status: dict[str, Any]) -> bool:
        """A record that was destroyed does not say; what it stood for is then looked for and ended."""
        return "boot_id" in status and status["boot_id"] != processes.boot_id(self._boot_id_path)

    def poke(self, status: dict[str, Any]) -> None:
        """Tell the supervisor to look at its folder. It would look by itself a moment later."""
        supervisor = status.get("supervisor")
        if not supervisor:
            return
        try:
            fd = os.pidfd_open(supervisor["pid"])
        except OSError:
            return
        try:
            if self.is_supervised(status):  # after opening: now the number cannot come to mean another process
                signal.pidfd_send_signal(fd, signal.SIGUSR1)
        except OSError:
            return
        finally:
            os.close(fd)

    def end_remains(self, id: ReplicaId, status: dict[str, Any]) -> bool:
        """Kill what a lost supervisor left behind. True once nothing is left."""
        group = status["cgroup"] if "cgroup" in status else self.group_for(id)
        if not group:
            return processes.end_marked(str(id))
        found = cgroups.open_group(group)
        return found.kill() and found.remove()

    def end_stray_groups(self) -> None:
        """Groups of ours that belong to no living replica: their supervisor died between its last two acts."""
        if self._parent is None:
            return
        live = {f"{self._yard}.{id}" for id in self._layout.live_ids()}
        for name in cgroups.names_below(self._parent):
            if name.startswith(f"{self._yard}.") and name not in live:
                stray = cgroups.open_group(cgroups.below(self._parent, name))
                if stray.kill():
                    stray.remove()

    def may_live(self, id: ReplicaId) -> bool:
        """Begun or about to begin, and not known to have ended."""
        if not self._layout.live_mark(id).exists():
            return False
        status = record.read(str(self._layout.replica(id)), record.STATUS)
        return status is None or status.get("life") != record.ENDED

    def cards_given(self) -> dict[ReplicaId, frozenset[CardName]]:
        """The cards of every replica that may live and has some."""
        given: dict[ReplicaId, frozenset[CardName]] = {}
        for id in self._layout.live_ids():
            request = record.read(str(self._layout.replica(id)), record.REQUEST)
            if request and request["cards"]:
                given[id] = frozenset((request["device"], index) for index in request["cards"])
        return given

    def pids_by_card(self) -> dict[CardName, set[int]]:
        """Card -> processes of the living replicas it was given to."""
        owners: dict[CardName, set[int]] = {}
        for id in self._layout.live_ids():
            folder = str(self._layout.replica(id))
            request, status = record.read(folder, record.REQUEST), record.read(folder, record.STATUS)
            if not request or not status or not request["cards"]:
                continue
            pids = set(self._pids(status))
            for index in request["cards"]:
                owners.setdefault((request["device"], index), set()).update(pids)
        return owners

    def replicas_of(self, pids: set[int]) -> dict[int, ReplicaId]:
        """To which living replica each of these processes belongs; those of nobody's work are left out."""
        found: dict[int, ReplicaId] = {}
        for id in self._layout.live_ids() if pids else ():
            status = record.read(str(self._layout.replica(id)), record.STATUS)
            found.update(dict.fromkeys(pids.intersection(self._pids(status or {})), id))
        return found

    def usage(self, replicas: Iterable[ReplicaId], probes: Iterable[DeviceProbe]) -> dict[ReplicaId, Usage]:
        """What each of these uses now, with the cards it was given; those that do not run are left out."""
        readings = {(r.device, r.index): r for probe in probes for r in probe.read()}
        found: dict[ReplicaId, Usage] = {}
        for id in replicas:
            folder = str(self._layout.replica(id))
            status, request = record.read(folder, record.STATUS), record.read(folder, record.REQUEST)
            if not status or not request or status.get("life") != record.RUNNING:
                continue
            given = [readings[key] for index in request["cards"] if (key := (request["device"], index)) in readings]
            cards = tuple(CardUse(r.index, r.percent, r.memory) for r in given)
            found[id] = replace(self._use_of(status), cards=cards)
        return found

    def _use_of(self, status: dict[str, Any]) -> Usage:
        if status.get("cgroup"):
            return Usage(*cgroups.open_group(status["cgroup"]).usage())
        pids = self._pids(status)
        seen = [reading for pid in pids if (reading := _process_usage(pid)) is not None]
        return Usage(sum(cpu for cpu, _ in seen), sum(memory for _, memory in seen), len(seen))

    def _pids(self, status: dict[str, Any]) -> list[int]:
        if status.get("cgroup"):
            return cgroups.open_group(status["cgroup"]).pids()
        supervisor = status.get("supervisor")  # a container that begins has neither yet
        return processes.descendants(supervisor["pid"]) if supervisor else []


def _process_usage(pid: int) -> tuple[float, int] | None:
    """Seconds of cpu, also of its children that have ended, and resident memory."""
    fields = processes.stat_fields(pid)
    if fields is None or fields[0] in (b"Z", b"X"):
        return None
    return sum(int(field) for field in fields[11:15]) / _TICKS, int(fields[21]) * _PAGE


def _yard_id(path: Path) -> str:
    """A short name for this data folder, made once."""
    if not path.exists():
        part = path.with_name(f".yard-id.{os.urandom(6).hex()}")
        part.write_text(os.urandom(4).hex(), encoding="ascii")
        with contextlib.suppress(FileExistsError):  # another process was first; its name holds
            os.link(part, path)
        part.unlink()
    return path.read_text(encoding="ascii")
