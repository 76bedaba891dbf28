"""Libraries that a job wants besides its image: installed with pip before its command, as dlc does."""

from __future__ import annotations

import shlex

REQUIREMENTS = "requirements.txt"


def installing(libraries: str, folder: str) -> str:
    """The lines before the command; empty when nothing is wanted."""
    lines = ""
    names = [name.strip() for name in libraries.split(",") if name.strip()]
    if names:
        lines += f"python3 -m pip install {shlex.join(names)} || exit 1\n"
    if folder.strip():
        file = f"{folder.strip().rstrip('/')}/{REQUIREMENTS}"
        lines += f"python3 -m pip install -r {shlex.quote(file)} || exit 1\n"
    return lines
