"""Working folders shipped with a job, as the tar files they arrived in.

Kept per owner and named by their SHA-256, so that the same folder is sent and stored once. A file has its final name
only when it is whole, checked and on disk; what a crash leaves half-written is swept by `prune`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gpuyard.domain.errors import BadInput, Unavailable
from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import GIB, MIB

DIGEST_RULE = re.compile(r"[0-9a-f]{64}")
MIN_FREE_BYTES = GIB
MIN_FREE_SHARE = 0.05
LOOK_AT_DISK_EVERY = 16 * MIB  # often enough that several uploads at once cannot eat the reserve
_PART = ".receiving-"
_SUFFIX = ".tar"


class DiskSpace(NamedTuple):
    total: int
    free: int


def disk_space(folder: Path) -> DiskSpace:
    usage = shutil.disk_usage(folder)
    return DiskSpace(usage.total, usage.free)


class Workdirs:
    """The shipped folders under `root`, one folder per owner. Safe to use from several threads and processes."""

    def __init__(self, root: Path, limit_bytes: int, space: Callable[[Path], DiskSpace] = disk_space) -> None:
        self._root = root
        self._limit = limit_bytes
        self._space = space

    def has(self, owner: str, digest: str) -> bool:
        """Is it here? Asking counts as using it: what was just found is not pruned before the job that needs it."""
        try:
            os.utime(self.path(owner, digest))
        except FileNotFoundError:
            return False
        return True

    def path(self, owner: str, digest: str) -> Path:
        """Where it is, or would be."""
        _require(NAME_RULE, owner, "owner", "expected a user name")
        _require(DIGEST_RULE, digest, "digest", "expected 64 hexadecimal digits (SHA-256)")
        return self._root / owner / (digest + _SUFFIX)

    def receive(self, owner: str, digest: str, chunks: Iterable[bytes]) -> None:
        """Take in a folder. Either it is here afterwards, whole and on disk, or nothing is left of it."""
        target = self.path(owner, digest)
        _make_private_folder(self._root)
        _make_private_folder(target.parent)
        try:
            with _part_file(target.parent) as (part, file):
                self._write_checked(file, digest, chunks)
                os.replace(part, target)
            _sync_folder(target.parent)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Unavailable(because(Code.STORE_FULL)) from error
            raise

    def prune(self, keep: Set[tuple[str, str]], older_than: float) -> int:
        """Remove what no workload in `keep` (owner, digest) needs and nobody used since `older_than`. Says how many."""
        removed = 0
        for file in self._root.glob("*/*"):
            half_written = file.name.startswith(_PART)
            if not half_written and (file.parent.name, file.name.removesuffix(_SUFFIX)) in keep:
                continue
            removed += _remove_if_older(file, older_than)
        return removed

    def _write_checked(self, file: BinaryIO, digest: str, chunks: Iterable[bytes]) -> None:
        sha, size, looked_at = hashlib.sha256(), 0, 0
        self._require_space(0)
        for chunk in chunks:
            size += len(chunk)
            if size > self._limit:
                raise BadInput(because(Code.TOO_LARGE, what="workdir", size=size, limit=self._limit))
            if size - looked_at >= LOOK_AT_DISK_EVERY:
                self._require_space(len(chunk))
                looked_at = size
            sha.update(chunk)
            file.write(chunk)
        if sha.hexdigest() != digest:
            problem = "what arrived has another SHA-256; it was changed or cut off on the way"
            raise BadInput(because(Code.BAD_VALUE, at="digest", problem=problem, value=digest))
        file.flush()
        os.fsync(file.fileno())

    def _require_space(self, coming: int) -> None:
        space = self._space(self._root)
        if space.free - coming < max(MIN_FREE_BYTES, space.total * MIN_FREE_SHARE):
            raise Unavailable(because(Code.STORE_FULL))


def _require(rule: re.Pattern[str], text: str, at: str, problem: str) -> None:
    # fullmatch: `$` alone would let a trailing newline through.
    if not rule.fullmatch(text):
        raise BadInput(because(Code.BAD_VALUE, at=at, problem=problem, value=text[:80]))


def _make_private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def _part_file(folder: Path) -> Iterator[tuple[str, BinaryIO]]:
    """A file readable by nobody else, gone afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(prefix=_PART, dir=folder)  # mode 0600
    try:
        with open(descriptor, "wb") as file:
            yield name, file
    finally:
        Path(name).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_if_older(file: Path, older_than: float) -> bool:
    try:
        if file.stat().st_mtime >= older_than:
            return False
        file.unlink()
    except FileNotFoundError:  # another server, or the upload's own end, was faster
        return False
    return True
