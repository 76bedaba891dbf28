"""What the tests of shared folders have in common: some people, and what one of them can do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gpuyard.domain.people import BLOCK, FIRST_BLOCK
from gpuyard.files.shares import Shares

OLD, NEW = (FIRST_BLOCK + number * BLOCK for number in (4000, 4001))  # group numbers
ANN, BOB, CAT = (FIRST_BLOCK + number * BLOCK for number in (4010, 4011, 4012))
GOES_ON = bool  # called, it says that nothing is over


def shared(root: Path, members: list[int], name: str = "vision", gid: int = OLD) -> bool:
    """Open the share to these members and go through it; says whether there was anything to be gone through."""
    shares = Shares(root)
    left = shares.open_to(name, gid, members)
    shares.go_through(name, gid, members, is_over=GOES_ON)
    return left


def can(uid: int, code: str, folder: Path, gid: int | None = None) -> bool:
    """Whether someone with this number and no other can do this."""
    who = f"os.setgroups([]); os.setgid({gid or uid}); os.setuid({uid}); "
    script = f"import os, sys; os.umask(0o077); {who}os.chdir(sys.argv[1]); {code}"
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True).returncode == 0
