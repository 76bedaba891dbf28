"""Which folders everyone finds, on every engine: their own and their group's, below each root.

A root is a folder of the machine (or a NAS mounted there) under a name that is the same inside every workload:
`/mnt/user/ann` and `/mnt/share/vision` below the first, `/mnt2/user/ann` and so on below further ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

USER, SHARE = "user", "share"
FIRST_ROOT = "/mnt"
# What a machine or an image needs of its own: nothing of a person's is shown over it.
SYSTEM_FOLDERS = frozenset(
    ("", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "tmp")
) | {"usr", "var"}
_DISKS_MAY_BE_BELOW = frozenset(("root", "run", "tmp", "var"))


@dataclass(frozen=True, slots=True)
class Root:
    inside: str  # as every workload sees it
    outside: str  # on the machine

    def home(self, owner: str) -> str:
        """On the machine."""
        return posixpath.join(self.outside, USER, owner)

    def share(self, group: str) -> str:
        return posixpath.join(self.outside, SHARE, group)


class Place(NamedTuple):
    """A folder of the machine shown to a workload."""

    inside: str
    outside: str
    read_only: bool = False


def folders_of(owner: str, group: str, roots: Sequence[Root]) -> list[Place]:
    """What each of their workloads gets: by root, first one's own folder, then the group's."""
    return [place for root in roots for place in (_home_in(root, owner), _share_in(root, group))]


def variables(owner: str, group: str, roots: Sequence[Root], *, shown: bool = True) -> dict[str, str]:
    """Where the folders of the first root are. Where nothing can be shown at another place they are where they lie."""
    home, share = _home_in(roots[0], owner), _share_in(roots[0], group)
    return {
        "YARD_USER_DIR": home.inside if shown else home.outside,
        "YARD_SHARE_DIR": share.inside if shown else share.outside,
    }


def outside_of(path: str, places: Iterable[Place]) -> str | None:
    """The same on the machine of a path as a workload sees it; None when it lies in none of the places.

    By its letters alone: links in it are followed by nobody here.
    """
    path = posixpath.normpath(path)
    for place in places:
        if is_below(path, place.inside):
            return posixpath.normpath(posixpath.join(place.outside, posixpath.relpath(path, place.inside)))
    return None


def shadows(target: str, roots: Iterable[Root]) -> bool:
    """Would something shown at `target` hide a folder that everyone finds, or lie in one?"""
    target = posixpath.normpath(target)
    kept = [folder for root in roots for folder in _kept(root)]
    return any(is_below(folder, target) or is_below(target, folder) for folder in kept)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def root_problem(inside: str, outside: str, others: Sequence[Root]) -> str:
    """Why this cannot be one more root beside the others; empty when it can. Whether it exists is not asked here."""
    for path in (inside, outside):
        if not path.startswith("/") or posixpath.normpath(path) != path or "//" in path or ":" in path:
            return f"{path!r} must be a whole path, such as /mnt2, without .., // or a colon"
    if inside.strip("/").split("/")[0] in SYSTEM_FOLDERS:
        return f"{inside} is the system's own; take a folder such as /mnt2 or /data"
    top, _, rest = outside.strip("/").partition("/")
    if top in SYSTEM_FOLDERS and (not rest or top not in _DISKS_MAY_BE_BELOW):
        return f"{outside} is the system's own; take the folder in which the disk or the NAS is mounted"
    for other in others:
        if any(shadows(folder, [other]) for folder in _kept(Root(inside, outside))):
            return f"{inside} and {other.inside} would hide each other's folders"
        if is_below(outside, other.outside) or is_below(other.outside, outside):
            return f"{outside} and {other.outside} lie inside each other"
    return ""


def _kept(root: Root) -> list[str]:
    return [posixpath.join(root.inside, name) for name in (USER, SHARE)]


def _home_in(root: Root, owner: str) -> Place:
    return Place(posixpath.join(root.inside, USER, owner), root.home(owner))


def _share_in(root: Root, group: str) -> Place:
    return Place(posixpath.join(root.inside, SHARE, group), root.share(group))
