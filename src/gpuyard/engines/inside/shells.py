"""Which shell a person gets in whatever image this is, and in which environment."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Mapping

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def shell(env: Mapping[str, str]) -> list[str]:
    """Their own if it is there, else the image's, else the toolbox's."""
    toolbox = env.get("YARD_TOOLBOX", "/opt/yard")
    own = [env["SHELL"]] if env.get("SHELL", "").startswith("/") else []
    for path in (*own, "/bin/bash", "/usr/bin/bash", "/bin/sh", f"{toolbox}/bin/bash", f"{toolbox}/bin/sh"):
        if is_program(path):
            return [path]
    return [f"{toolbox}/bin/busybox", "sh"]


def is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def environment(base: Mapping[str, str], more: Mapping[str, str], term: str | None) -> dict[str, str]:
    """The workload's own, what is asked for on top. The toolbox's stand-ins come last in PATH: the image's win."""
    env = {**base, **more}
    toolbox = env.get("YARD_TOOLBOX", "/opt/yard")
    path = env.get("PATH") or STANDARD_PATH
    if f"{toolbox}/shims" not in path.split(":") and os.path.isdir(f"{toolbox}/shims"):
        path = f"{path}:{toolbox}/shims"
    env["PATH"] = path
    env["SHELL"] = shell(env)[0]
    if term:
        env["TERM"] = term
    return env
