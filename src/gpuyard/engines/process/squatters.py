"""Who listens on a port of this machine, and jobs of ours that listen where the platform itself should.

While the server or the gateway is away its port is free for anybody. When it comes back, a job that sits there is
ended; anybody else is only named.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpuyard.devices.holders import Holder, describe
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.supervision import processes, record

log = logging.getLogger(__name__)

_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_MOST_GENERATIONS = 1000


@dataclass(frozen=True, slots=True)
class Squatter:
    process: Holder
    replica: ReplicaId | None = None  # of ours
    supervisor: int = 0

    def __str__(self) -> str:
        return str(self.process)


def find_squatters(port: int, data: Path) -> list[Squatter]:
    """Everybody who has a socket open that listens there."""
    wanted = _sockets_at(port)
    supervisors = _supervisors(Layout(data)) if wanted else {}
    found = []
    for pid in processes.all_pids() if wanted else ():
        process = describe(pid) if wanted & _sockets_of(pid) else None
        if process is not None:
            supervisor = _supervisor_above(pid, supervisors)
            found.append(Squatter(process, supervisors.get(supervisor), supervisor))
    return found


def end_squatters(squatters: list[Squatter], port: int, data: Path) -> bool:
    """Ends the jobs among them, whole, and says so in their output. False when others are there, too."""
    layout, ended = Layout(data), set[int]()
    for squatter in squatters:
        if squatter.replica is not None and squatter.supervisor not in ended:
            ended.add(squatter.supervisor)
            log.warning(
                "%s of %s listens on port %s, which is the platform's: it is ended", squatter, squatter.replica, port
            )
            _tell(layout.replica(squatter.replica), port)
            processes.end_tree(squatter.supervisor)
    return all(squatter.replica is not None for squatter in squatters)


def _tell(folder: Path, port: int) -> None:
    line = f"\ngpuyard: ended, because it listened on port {port}, which is the platform's own\n"
    try:
        with open(
            os.open(folder / record.LOG, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "w", encoding="utf-8"
        ) as out:
            out.write(line)
    except OSError as problem:
        log.warning("its output could not be added to: %s", problem)


def _sockets_at(port: int) -> set[int]:
    """Those that listen there, of either family, by their inodes."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(int(fields[9]))
    return found


def _sockets_of(pid: int) -> set[int]:
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # gone, or not ours to look at
        return set()
    try:
        links = [_link(folder, number) for number in os.listdir(folder)]
    except OSError:
        return set()
    finally:
        os.close(folder)
    return {int(found[1]) for link in links if (found := _SOCKET.fullmatch(link))}


def _link(folder: int, number: str) -> str:
    try:
        return os.readlink(number, dir_fd=folder)
    except OSError:  # closed meanwhile
        return ""


def _supervisors(layout: Layout) -> dict[int, ReplicaId]:
    """Of replicas that live, by their pids."""
    found: dict[int, ReplicaId] = {}
    for id in layout.live_ids() if layout.live.is_dir() else ():
        known = (record.read(str(layout.replica(id)), record.STATUS) or {}).get("supervisor")
        if known and processes.is_alive(known["pid"], known["start"]):
            found[known["pid"]] = id
    return found


def _supervisor_above(pid: int, supervisors: dict[int, ReplicaId]) -> int:
    """All that a job starts stays below its supervisor. 0: none of ours."""
    for _ in range(_MOST_GENERATIONS):
        if pid in supervisors or pid <= 1:
            break
        fields = processes.stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return pid if pid in supervisors else 0
