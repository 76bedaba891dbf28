"""What benches need of the machine. What is not there is left out aloud, and the rest is measured."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent
ALSO_HERE = ("/usr/sbin", "/sbin", str(ROOT / ".venv" / "nginx" / "usr" / "sbin"))  # the last: `make bench` unpacks it


class LeftOut(Exception):
    """A bench that cannot be run here: what is missing, and what brings it."""


def program(name: str, package: str) -> str:
    """Where it is."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *ALSO_HERE]))
    if found is None:
        raise LeftOut(f"{name} is not installed (Debian: apt-get install {package})")
    return found
