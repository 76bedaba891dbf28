"""Folders that belong to people, and the two small files that give them a name inside their room."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from gpuyard.domain.places import Root
from gpuyard.engines.folders import make_folder, make_places, small_file, write_small_file
from gpuyard.engines.process.layout import Layout
from gpuyard.engines.seam import LaunchRequest


def make_folders(request: LaunchRequest, layout: Layout, roots: Sequence[Root], *, is_root: bool) -> None:
    """The owner's home and the group's share below each root, and the folders that are the replica's own."""
    make_places(request.owner, request.uid, request.group, request.gid, roots)
    folder = layout.replica(request.id)
    for path in (folder / "work", folder / "tmp", layout.beacon(request.id), layout.door(request.id)):
        make_folder(path, 0o700, (request.uid, request.gid) if is_root else None)


def write_names(request: LaunchRequest, folder: Path, home: Path) -> None:
    """Many programs fail for a user without an entry in /etc/passwd. It gets one, in its own view only."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    person = f"{request.owner}:x:{request.uid}:{request.gid}::{home}:{shell}\n"
    _write(folder / "passwd", _without("/etc/passwd", request.owner) + person)
    groups = {request.owner: request.uid, request.group: request.gid}
    lines = "".join(f"{name}:x:{number}:\n" for name, number in groups.items())
    _write(folder / "group", _without("/etc/group", *groups) + lines)


def write_told(request: LaunchRequest, folder: Path) -> None:
    """The small files it is shown, and where its like are found: all of them on this machine, under its own address."""
    for file in request.files:
        write_small_file(small_file(folder.parent, file), file, (request.uid, request.gid))
    if request.peers and not _hosts(folder).exists():
        here = Path("/etc/hosts")
        known = here.read_text(encoding="utf-8", errors="surrogateescape") if here.exists() else ""
        _write(_hosts(folder), known.rstrip("\n") + "\n" + "".join(f"127.0.0.1 {name}\n" for name in request.peers))


def told_places(request: LaunchRequest, folder: Path) -> list[tuple[str, str]]:
    """Where each of them lies, and where it is shown."""
    files = [(str(small_file(folder.parent, file)), file.path) for file in request.files]
    return [*files, *([(str(_hosts(folder)), "/etc/hosts")] if request.peers else [])]


def _hosts(folder: Path) -> Path:
    """One for all replicas of the attempt."""
    return folder.parent / ".hosts"


def _without(path: str, *names: str) -> str:
    lines = Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    return "".join(line for line in lines if line.partition(":")[0] not in names)


def _write(path: Path, text: str) -> None:
    """Once. A second launch says the same, and to replace the file would pull it from under the room being built."""
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    part.write_text(text, encoding="utf-8", errors="surrogateescape")
    part.chmod(0o644)
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()
