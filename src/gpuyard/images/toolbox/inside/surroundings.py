"""What Lab and the editor need to know of the image they find themselves in: a shell, a home, a PATH."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def settle(env: MutableMapping[str, str], toolbox: str) -> None:
    """Fill in what is missing."""
    env.setdefault("PATH", STANDARD_PATH)
    env.setdefault("YARD_PATH", env["PATH"])
    env.setdefault("LANG", "C.UTF-8")
    env["SHELL"] = shell(env, toolbox)
    if f"{toolbox}/shims" not in env["PATH"].split(":"):
        env["PATH"] += f":{toolbox}/shims"


def shell(env: MutableMapping[str, str], toolbox: str) -> str:
    """The one that was chosen if it is there, else the image's, else the toolbox's."""
    for path in (env.get("SHELL", ""), "/bin/bash", "/usr/bin/bash", "/bin/sh", f"{toolbox}/bin/sh"):
        if path.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return "/bin/sh"
