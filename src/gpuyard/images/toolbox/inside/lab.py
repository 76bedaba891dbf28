"""Start JupyterLab: `python3 -I -m yard_inside.lab OPTIONS`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

from .surroundings import settle


def main() -> None:
    settle(os.environ, sys.prefix)
    runtime = os.environ.setdefault("JUPYTER_RUNTIME_DIR", f"/tmp/yard-lab-{os.getuid()}")  # noqa: S108
    shutil.rmtree(runtime, ignore_errors=True)  # left by the Lab before
    os.makedirs(runtime, mode=0o700)
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance([*sys.argv[1:], *own_layout(os.environ)])


def own_layout(env: Mapping[str, str]) -> list[str]:
    """One home is used in many environments, at once, too: each remembers which documents were open in it."""
    if not env.get("YARD_WORKLOAD") or not env.get("HOME"):
        return []
    config = env.get("JUPYTER_CONFIG_DIR") or os.path.join(env["HOME"], ".jupyter")
    return [f"--LabApp.workspaces_dir={os.path.join(config, 'lab', 'workspaces', env['YARD_WORKLOAD'])}"]


if __name__ == "__main__":
    main()
