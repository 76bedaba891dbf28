"""Folders that belong to people, and the two small files that give them a name inside their room."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gpuyard.engines.process.layout import Layout
from gpuyard.engines.seam import LaunchRequest


def make_folders(request: LaunchRequest, layout: Layout, *, is_root: bool) -> None:
    """The owner's home, the group's share, and the replica's own work, tmp and beacon folders."""
    folder = layout.replica(request.id)
    for path in (layout.home(request.owner), folder / "work", folder / "tmp", layout.beacon(request.id)):
        _make(path, 0o700, (request.uid, request.gid) if is_root else None)
    _make(layout.share(request.group), 0o2770, (0, request.gid) if is_root else None)


def _make(path: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """Made ready under another name and then moved into place, so that nobody meets it half done."""
    if path.is_dir():
        return
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    part.mkdir(mode=0o700)
    if owner:
        os.chown(part, *owner)
    part.chmod(mode)
    try:
        part.rename(path)
    except OSError:
        part.rmdir()
        if not path.is_dir():
            raise


def write_names(request: LaunchRequest, folder: Path, home: Path) -> None:
    """Many programs fail for a user without an entry in /etc/passwd. It gets one, in its own view only."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    person = f"{request.owner}:x:{request.uid}:{request.gid}::{home}:{shell}\n"
    _write(folder / "passwd", _without("/etc/passwd", request.owner) + person)
    _write(folder / "group", _without("/etc/group", request.group) + f"{request.group}:x:{request.gid}:\n")


def _without(path: str, name: str) -> str:
    lines = Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(f"{name}:"))


def _write(path: Path, text: str) -> None:
    """Once. A second launch says the same, and to replace the file would pull it from under the room being built."""
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    part.write_text(text, encoding="utf-8", errors="surrogateescape")
    part.chmod(0o644)
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()
