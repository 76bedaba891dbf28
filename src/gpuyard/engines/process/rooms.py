"""What a replica may see of this machine: planned here, built by the supervisor's child (`supervision/room.py`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.domain.errors import EngineError
from gpuyard.domain.places import SYSTEM_FOLDERS, Place, Root, shadows
from gpuyard.domain.places import is_below as _is_below
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.told import file_problem
from gpuyard.domain.workload import Mount

STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True, slots=True)
class Programs:
    """Where a job finds its commands, and which folders must be shown to it for that."""

    path: str
    folders: tuple[str, ...]


def find_programs(server_path: str, base_prefix: str, prefix: str) -> Programs:
    """The server's PATH as far as others can use it. The server's own interpreter is always reachable: where it lies in
    a folder closed to others (/root), it comes first, in the place of the entries that are dropped."""
    base = os.path.realpath(base_prefix)
    entries = [entry for entry in server_path.split(":") if os.path.isabs(entry) and os.path.isdir(entry)]
    folders = [base, os.path.realpath(prefix), *_conda_prefixes(entries)]
    open_entries = [entry for entry in entries if _is_reachable(os.path.realpath(entry), folders)]
    first = [f"{base}/bin"] if closed_above(base) else []
    path = [*first, *open_entries, f"{base}/bin", *STANDARD_PATH]
    return Programs(":".join(dict.fromkeys(path)), tuple(dict.fromkeys(folders)))


def _conda_prefixes(entries: Iterable[str]) -> list[str]:
    """A conda installation on the server's PATH is meant to be used, also when it lies in root's home."""
    parents = [os.path.dirname(os.path.realpath(entry)) for entry in entries if entry.rstrip("/").endswith("/bin")]
    return [parent for parent in parents if os.path.isdir(os.path.join(parent, "conda-meta"))]


def _is_reachable(entry: str, folders: Sequence[str]) -> bool:
    return closed_above(entry) is None or any(_is_below(entry, folder) for folder in folders)


def closed_above(path: str) -> str | None:
    """The outermost folder on the way that strangers cannot pass, or None."""
    parts = path.strip("/").split("/")
    for number in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:number])
        try:
            mode = os.stat(folder).st_mode
        except OSError:
            return None
        if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
            return folder
    return None


def check_mounts(mounts: Sequence[Mount], data: Path, roots: Sequence[Root]) -> None:
    """Targets lie where nothing of the machine is needed, neither inside each other nor around the data folder nor over
    the folders that everyone finds."""
    taken: list[str] = []
    for mount in mounts:
        target = os.path.normpath(mount.at)
        top = target.strip("/").split("/")[0]
        problem = ""
        if not os.path.isabs(mount.at) or ".." in mount.at.split("/") or top in SYSTEM_FOLDERS:
            problem = "mounts go below a folder of their own, such as /data, /mnt or /workspace"
        elif _is_below(str(data), target) or _is_below(target, str(data)):
            problem = "gpuyard's own folder is there"
        elif shadows(target, roots):
            problem = "everyone's own and their group's folders are there"
        elif any(_is_below(target, other) or _is_below(other, target) for other in taken):
            problem = "one mount cannot be inside another"
        elif mount.volume not in ("home", "share"):
            problem = f"there is no volume {mount.volume!r}, only home and share"
        if problem:
            raise EngineError(because(Code.ENGINE_CANNOT, engine="process", what=f"mount at {mount.at}: {problem}"))
        taken.append(target)


def file_refusal(path: str, *, is_root: bool) -> Reason | None:
    """Files go into a folder of their own below /etc, which is root's on every machine, so that nothing of the machine
    is hidden. Without root there is no view of one's own to show them in."""
    parts = path.strip("/").split("/")
    if not is_root:
        return because(Code.ENGINE_CANNOT, engine="process", what=f"show {path} unless it runs as root")
    if file_problem(path) or parts[0] != "etc" or len(parts) < 3 or os.path.lexists(f"/etc/{parts[1]}"):
        what = f"show {path}: such files can only be in a folder of their own below /etc"
        return because(Code.ENGINE_CANNOT, engine="process", what=what)
    return None


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """Everything that is particular to one replica."""

    data: Path
    folder: Path
    home: Path
    share: Path
    work: Path
    beacon: Path
    door: Path
    inside: Path
    shm: int
    card_paths: tuple[str, ...]
    control_nodes: tuple[str, ...]
    mounts: tuple[Mount, ...]
    places: tuple[Place, ...]
    files: tuple[tuple[str, str], ...] = ()  # where each lies, and where it is shown


def render_room(plan: RoomPlan, programs: Programs) -> dict[str, Any]:
    nodes = [path for path in (*plan.card_paths, *plan.control_nodes) if _is_below(path, "/dev")]
    stand_ins = [path for path in plan.card_paths if not _is_below(path, "/dev")]
    own = [str(plan.home), str(plan.share), str(plan.work), str(plan.beacon), str(plan.door), *stand_ins]
    keeps = [{"path": path, "read_only": False} for path in own]
    keeps += [{"path": folder, "read_only": True} for folder in (*programs.folders, str(plan.inside))]
    closed = [closed_above(keep["path"]) for keep in keeps]  # type: ignore[arg-type]
    return {
        "covers": sorted({str(plan.data), *(folder for folder in closed if folder)} - {keep["path"] for keep in keeps}),
        "keeps": keeps,
        "tmp": str(plan.folder / "tmp"),
        "output": str(plan.folder / "output"),
        "texts": [[str(plan.folder / name), f"/etc/{name}"] for name in ("passwd", "group")],
        "devices": nodes,
        "shm": plan.shm,
        "places": [
            {"at": p.inside, "from": p.outside, "read_only": p.read_only} for p in (*plan.places, *_toolbox(plan.data))
        ],
        "mounts": [_render_mount(mount, plan) for mount in plan.mounts],
        "files": [list(pair) for pair in plan.files],
    }


TOOLBOX = "/opt/yard"


def _toolbox(data: Path) -> list[Place]:
    """Where it was built it is shown as in containers: its programs are made for that place. Not over a machine's /opt
    that others than root can change: that would have to be covered as a whole."""
    current, beside = data / "toolbox" / "current", os.path.dirname(TOOLBOX)
    if not current.is_dir():
        return []
    if os.path.isdir(beside):
        found = os.lstat(beside)
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o027 != 0o005:
            return []
    return [Place(TOOLBOX, os.path.realpath(current), read_only=True)]


def _render_mount(mount: Mount, plan: RoomPlan) -> dict[str, Any]:
    return {
        "volume": mount.volume,
        "root": str(plan.home if mount.volume == "home" else plan.share),
        "path": mount.path or ".",
        "at": os.path.normpath(mount.at),
        "read_only": mount.read_only,
    }
