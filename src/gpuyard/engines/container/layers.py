"""The files of a container's own layer, given back the numbers they have inside.

Where the kernel maps numbers while it mounts, a layer keeps on disk what was written through that map, and a commit
takes the numbers from the disk: root inside would be a stranger in the next container. So before a layer is committed,
its files are shifted back.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from gpuyard.domain.people import BLOCK


def shift_back(layer: Path, first: int) -> None:
    """Give every file of the block that begins at `first` the number it has inside. Done twice, it changes nothing."""
    if not layer.is_dir() or _is_mapped_by_podman(layer):
        return
    for _, folders, files, fd in os.fwalk(layer, follow_symlinks=False):
        for name in (*folders, *files):
            _shift(name, fd, first)
    found = layer.stat()
    os.chown(layer, _inside(found.st_uid, first), _inside(found.st_gid, first))


def _shift(name: str, folder: int, first: int) -> None:
    found = os.lstat(name, dir_fd=folder)
    uid, gid = _inside(found.st_uid, first), _inside(found.st_gid, first)
    if (uid, gid) == (found.st_uid, found.st_gid):
        return
    os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):  # a change of owner takes away the right to run as that owner
        os.chmod(name, stat.S_IMODE(found.st_mode), dir_fd=folder)


def _inside(number: int, first: int) -> int:
    return number - first if first <= number < first + BLOCK else number


def _is_mapped_by_podman(layer: Path) -> bool:
    """On kernels that cannot map while mounting, podman copies and shifts layers itself, and back when it commits."""
    id, store = layer.parent.name, layer.parent.parent.parent
    for name in ("layers.json", "volatile-layers.json"):
        try:
            known = json.loads((store / "overlay-layers" / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            continue
        if any(entry.get("id") == id and entry.get("uidmap") for entry in known):
            return True
    return False
