"""What the porter, the first process inside, is told. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from gpuyard.domain.cluster import Card
from gpuyard.domain.places import Root, folders_of
from gpuyard.domain.places import variables as folder_variables
from gpuyard.engines.container import creating
from gpuyard.engines.process.requests import BEACON
from gpuyard.engines.seam import LaunchRequest
from gpuyard.engines.variables import card_variables, person_variables, replica_variables

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def home_inside(request: LaunchRequest, roots: Sequence[Root]) -> str:
    return folders_of(request.owner, request.group, roots)[0].inside


def checkpoint_inside(request: LaunchRequest, roots: Sequence[Root]) -> str | None:
    if not request.checkpoint:
        return None
    return os.path.normpath(os.path.join(home_inside(request, roots), request.checkpoint))


def checkpoint_place(request: LaunchRequest, roots: Sequence[Root]) -> dict[str, str] | None:
    """Where the declared folder is found once the container is gone: in one of the machine's folders shown in it."""
    folder = checkpoint_inside(request, roots)
    places = folders_of(request.owner, request.group, roots)
    volumes = {"home": places[0].outside, "share": places[1].outside}
    mounted = [(mount.at, volumes[mount.volume], mount.path) for mount in request.mounts]
    for at, root, inner in (*mounted, *((place.inside, place.outside, "") for place in places)):
        if folder and folder.startswith(os.path.normpath(at) + "/"):
            return {"root": root, "path": os.path.join(inner, os.path.relpath(folder, at))}
    return None


def render(
    request: LaunchRequest, cards: Sequence[Card], roots: Sequence[Root], image_env: Sequence[str]
) -> dict[str, Any]:
    return {
        "argv": list(request.command),
        "env": environment(request, cards, roots, image_env),
        "cwd": creating.WORK if request.workdir else home_inside(request, roots),
        "door": creating.DOOR,
        "log": creating.LOG,
        "grace": request.grace_seconds,
        "workdir": creating.SHIPPED if request.workdir else None,
    }


def environment(
    request: LaunchRequest, cards: Sequence[Card], roots: Sequence[Root], image_env: Sequence[str]
) -> dict[str, str]:
    """The image's own, then who one is, then what the job's file says, and on top what the platform says. The toolbox's
    stand-ins, such as `sudo`, come last in PATH: the image's win."""
    image = dict(item.split("=", 1) for item in image_env if "=" in item)
    beacon = f"{creating.BEACON}/{BEACON}"
    told = (
        {"PATH": STANDARD_PATH}
        | image
        | person_variables(request.owner, home_inside(request, roots))
        | dict(request.env)
        | card_variables(request.allotment.device, cards, hidden=creating.is_hidden(cards))
        | replica_variables(request.id, cards, beacon, checkpoint_inside(request, roots))
        | folder_variables(request.owner, request.group, roots)
        | {"YARD_DOOR": creating.DOOR, "YARD_TOOLBOX": creating.TOOLBOX}
    )
    return told | {"PATH": f"{told['PATH']}:{creating.TOOLBOX}/shims"}
