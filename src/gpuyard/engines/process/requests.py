"""A launch request rendered for the supervisor: plain data, the whole truth about one replica."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.domain.cluster import Card
from gpuyard.domain.places import Root, folders_of
from gpuyard.domain.places import variables as folder_variables
from gpuyard.engines.limits import most_processes
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.process.people import told_places
from gpuyard.engines.process.rooms import TOOLBOX, Programs, RoomPlan, render_room
from gpuyard.engines.seam import LaunchRequest
from gpuyard.engines.variables import CONTROL_NODES, card_variables, person_variables, replica_variables

USUAL_UMASK = 0o027
OPEN_TO_GROUP = 0o007  # where no access list makes what lies in a share everybody's in the group
PORTER = Path(__file__).parent.parent / "inside" / "porter.py"
BEACON = "saved"  # the file in a replica's beacon folder


@dataclass(frozen=True, slots=True)
class Machine:
    """What is the same for every replica here."""

    layout: Layout
    programs: Programs
    is_root: bool
    log_limit_bytes: int
    pids_limit: int  # 0: by the cores
    boot_id_path: str
    roots: tuple[Root, ...]
    umask: int


def render(
    request: LaunchRequest, machine: Machine, cards: Sequence[Card], group: dict[str, Any] | None
) -> dict[str, Any]:
    layout = machine.layout
    folder, home = layout.replica(request.id), layout.home(request.owner)
    work = folder / "work"
    return {
        "id": str(request.id),
        "argv": list(request.command),
        "env": environment(request, machine, cards),
        "cwd": str(work if request.workdir else home),
        "workdir": str(request.workdir) if request.workdir else None,
        "umask": machine.umask,
        "identity": {"uid": request.uid, "gid": request.gid} if machine.is_root else None,
        "room": _room(request, machine, cards) if machine.is_root else None,
        "cgroup": group,
        "limits": {
            "memory": request.allotment.memory,
            "cpu_milli": request.allotment.cpu_milli,
            "pids": most_processes(machine.pids_limit, request.allotment.cpu_milli),
        },
        "log_limit": machine.log_limit_bytes,
        "grace": request.grace_seconds,
        "boot_id_path": machine.boot_id_path,
        "run": str(layout.run),
        "live_mark": str(layout.live_mark(request.id)),
        "tmp": str(folder / "tmp"),
        "checkpoint": checkpoint_folder(request, home),
        "checkpoint_place": checkpoint_place(request, machine),
        "device": request.allotment.device,
        "cards": [card.index for card in cards],
        "porter": _porter(request, machine),
    }


def _porter(request: LaunchRequest, machine: Machine) -> dict[str, Any]:
    """How a porter is started in its room: as the command of a dev environment, or beside a job that runs."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    told = {"door": str(machine.layout.door(request.id)), "shell_env": {"SHELL": shell}}
    return {"argv": [os.path.realpath(sys.executable), "-I", "-S", "-E", "-X", "utf8", str(PORTER)], "told": told}


def door_note(request: LaunchRequest, *, is_root: bool) -> dict[str, Any]:
    """Who may listen at its door. 0: whoever runs the server."""
    kind = "job" if request.command else "env"
    uid = request.uid if is_root else 0
    return {"uid": uid, "uids": 1, "owner": request.owner, "group": request.group, "kind": kind}


def _room(request: LaunchRequest, machine: Machine, cards: Sequence[Card]) -> dict[str, Any]:
    layout = machine.layout
    real = any(not card.simulated for card in cards)
    control = CONTROL_NODES.get(request.allotment.device, ()) if real else ()
    plan = RoomPlan(
        data=layout.data,
        folder=layout.replica(request.id),
        home=layout.home(request.owner),
        share=layout.share(request.group),
        work=layout.replica(request.id) / "work",
        beacon=layout.beacon(request.id),
        door=layout.door(request.id),
        inside=PORTER.parent,
        shm=request.allotment.shm,
        card_paths=tuple(card.path for card in cards if card.path),
        control_nodes=tuple(node for node in control if Path(node).exists()),
        mounts=request.mounts,
        places=tuple(folders_of(request.owner, request.group, machine.roots)),
        files=tuple(told_places(request, layout.replica(request.id))),
    )
    return render_room(plan, machine.programs)


def checkpoint_folder(request: LaunchRequest, home: Path) -> str | None:
    """The declared folder as the job sees it, in full."""
    if not request.checkpoint:
        return None
    return os.path.normpath(os.path.join(home, request.checkpoint))


def checkpoint_place(request: LaunchRequest, machine: Machine) -> dict[str, str] | None:
    """Where the declared folder can be found without the job's view of the machine: inside its home, its group's share
    or one of its mounts."""
    home, share = machine.layout.home(request.owner), machine.layout.share(request.group)
    folder = checkpoint_folder(request, home)
    volumes = {"home": str(home), "share": str(share)}
    mounted = [(mount.at, volumes[mount.volume], mount.path) for mount in request.mounts]
    shown = [(place.inside, place.outside, "") for place in folders_of(request.owner, request.group, machine.roots)]
    lying = [(root, root, "") for root in volumes.values()]
    for at, root, inner in (*mounted, *(shown if machine.is_root else ()), *lying):
        if folder and folder.startswith(os.path.normpath(at) + "/"):
            return {"root": root, "path": os.path.join(inner, os.path.relpath(folder, at))}
    return None


def environment(request: LaunchRequest, machine: Machine, cards: Sequence[Card]) -> dict[str, str]:
    """Clean, not the server's. What the job's file says comes on top, what the platform says on top of that."""
    id = request.id
    home = str(machine.layout.home(request.owner))
    basics = person_variables(request.owner, home) | {
        "PATH": machine.programs.path,
        "SHELL": "/bin/sh",
        "TMPDIR": "/tmp" if machine.is_root else str(machine.layout.replica(id) / "tmp"),  # noqa: S108
    }
    hidden = machine.is_root and any(not card.simulated for card in cards)
    cards_given = card_variables(request.allotment.device, cards, hidden=hidden)
    beacon = str(machine.layout.beacon(id) / BEACON)
    platform = replica_variables(id, cards, beacon, checkpoint_folder(request, Path(home)))
    platform |= {"YARD_DOOR": str(machine.layout.door(id)), "YARD_TOOLBOX": TOOLBOX}
    folders = folder_variables(request.owner, request.group, machine.roots, shown=machine.is_root)
    return basics | dict(request.env) | cards_given | platform | folders
