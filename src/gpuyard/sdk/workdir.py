"""Making one file of a folder, the same bytes for the same content, so that it is sent once.

Names are sorted, times and owners left out, and only the executable bit of the mode kept. Nothing outside the folder
is ever read: a link that leads out is refused by name.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gpuyard.domain.resources import MIB, show_bytes
from gpuyard.sdk.errors import WorkdirRefused
from gpuyard.sdk.ignore import IGNORE_FILE, IgnoreRules

DEFAULT_LIMIT_BYTES = 512 * MIB
MAX_ENTRIES = 200_000  # more is a dataset or somebody's home, not a working folder
NAMED_ENTRIES = 5
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to be shipped, with its path relative to the folder."""

    path: str
    mode: int
    size: int = 0
    link: str = ""


@dataclass(frozen=True, slots=True)
class Packed:
    digest: str
    size: int
    entries: int


def pack(folder: Path, out: BinaryIO, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Packed:
    """Write the folder into `out` as a tar file. Raises WorkdirRefused when it cannot or should not be shipped."""
    entries = survey(folder, limit_bytes)
    try:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            for entry in entries:
                _add(tar, folder, entry)
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else str(folder)
        detail = error.strerror or str(error)
        raise WorkdirRefused(
            "client.workdir_unreadable", f"cannot read {name}: {detail}", {"path": name, "detail": detail}
        ) from error
    size = out.tell()
    return Packed(_sha256(out), size, len(entries))


def survey(folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Entry]:
    """Everything that would be shipped, in order; refused when it is too much."""
    if not folder.is_dir():
        raise WorkdirRefused("client.workdir_missing", f"{folder} is not a folder", {"path": str(folder)})
    root = folder.resolve()
    rules = _read_rules(root)
    entries: list[Entry] = []
    total = 0
    for entry in _walk(root, "", rules):
        entries.append(entry)
        total += entry.size
        # Far over the limit there is no need to know by how much: it may be a whole disk.
        if len(entries) > MAX_ENTRIES or total > 4 * limit_bytes:
            break
    if len(entries) > MAX_ENTRIES or total > limit_bytes:
        raise _too_large(folder, entries, total, limit_bytes)
    return sorted(entries, key=lambda entry: entry.path)


def _read_rules(root: Path) -> IgnoreRules:
    try:
        return IgnoreRules((root / IGNORE_FILE).read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    except FileNotFoundError:
        return IgnoreRules()


def _walk(root: Path, prefix: str, rules: IgnoreRules) -> Iterator[Entry]:
    try:
        found = sorted(os.scandir(root / prefix), key=lambda item: item.name)
    except OSError as error:
        detail = error.strerror or str(error)
        facts = {"path": str(root / prefix), "detail": detail}
        raise WorkdirRefused("client.workdir_unreadable", f"cannot read {root / prefix}: {detail}", facts) from error
    for item in found:
        path = prefix + item.name
        info = item.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if rules.ignores(path, is_folder):
            continue
        if is_folder:
            yield Entry(path + "/", 0o755)
            yield from _walk(root, path + "/", rules)
        elif stat.S_ISLNK(info.st_mode):
            yield Entry(path, 0o777, link=_link_inside(root, path))
        elif stat.S_ISREG(info.st_mode):
            yield Entry(path, 0o755 if info.st_mode & 0o100 else 0o644, info.st_size)
        # Sockets, pipes and devices have no content to ship.


def _link_inside(root: Path, path: str) -> str:
    """Where the link leads, relative to itself. It must stay inside both as written and as followed."""
    place = root / path
    target = os.readlink(place)
    written = Path(os.path.normpath(place.parent / target))
    followed = Path(os.path.realpath(place))
    if not (written.is_relative_to(root) and followed.is_relative_to(root)):
        words = (
            f"the link {path} leads out of the folder, to {target}; copy what it points at, or name it in {IGNORE_FILE}"
        )
        raise WorkdirRefused("client.workdir_link_outside", words, {"path": path, "target": target})
    return os.path.relpath(written, place.parent) if os.path.isabs(target) else target


def _add(tar: tarfile.TarFile, folder: Path, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path.rstrip("/"))
    info.mode, info.mtime, info.uid, info.gid = entry.mode, 0, 0, 0
    if entry.path.endswith("/"):
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif entry.link:
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
        tar.addfile(info)
    else:
        info.size = entry.size
        # A file that grew since the survey is cut at the size announced; one that shrank raises OSError.
        with open(folder / entry.path, "rb") as content:
            tar.addfile(info, content)


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(READ_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _too_large(folder: Path, entries: list[Entry], total: int, limit_bytes: int) -> WorkdirRefused:
    sizes: dict[str, int] = {}
    for entry in entries:
        top = entry.path.split("/", 1)[0]
        sizes[top] = sizes.get(top, 0) + entry.size
    biggest = sorted(sizes.items(), key=lambda pair: -pair[1])[:NAMED_ENTRIES]
    named = ", ".join(f"{name} ({show_bytes(size)})" for name, size in biggest)
    facts = {
        "path": str(folder),
        "size": show_bytes(total),
        "limit": show_bytes(limit_bytes),
        "entries": len(entries),
        "biggest": named,
    }
    words = (
        f"{folder} is too large to ship: {show_bytes(total)} or more in {len(entries)} files, and the limit is "
        f"{show_bytes(limit_bytes)}. Biggest: {named}. Name what is not needed in {IGNORE_FILE}"
    )
    return WorkdirRefused("client.workdir_too_large", words, facts)
