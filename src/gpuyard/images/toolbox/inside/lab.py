"""Start JupyterLab: `python3 -I -m yard_inside.lab OPTIONS`."""

from __future__ import annotations

import os
import shutil
import sys

from .surroundings import settle


def main() -> None:
    settle(os.environ, sys.prefix)
    runtime = os.environ.setdefault("JUPYTER_RUNTIME_DIR", f"/tmp/yard-lab-{os.getuid()}")  # noqa: S108
    shutil.rmtree(runtime, ignore_errors=True)  # left by the Lab before
    os.makedirs(runtime, mode=0o700)
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance()


if __name__ == "__main__":
    main()
