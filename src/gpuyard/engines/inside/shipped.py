"""Unpacks a shipped working folder into the present one, with the rights of whoever calls, and never outside it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from tarfile import TarInfo
    from typing import IO

_LEAST_UNPACKED, _MOST_UNPACKED = 64 << 20, 10 << 30
_MOST_MEMBERS = 1_000_000


class ShippedProblem(Exception):
    """It cannot be unpacked; the text is for the owner of the job."""


def unpack(shipped: IO[bytes]) -> None:
    import tarfile

    measure = _Measure(os.fstat(shipped.fileno()).st_size)
    try:
        with shipped, tarfile.open(fileobj=shipped, mode="r:*") as folder:
            folder.extractall(".", filter=measure.let_pass)  # noqa: S202  as the user, and it keeps it inside
    except (tarfile.TarError, EOFError, ValueError) as problem:
        raise ShippedProblem(f"the shipped folder cannot be unpacked: {problem}") from problem


class _Measure:
    """A small file can unpack into one that fills the disk. What is not packed tightly passes at any size."""

    def __init__(self, packed: int) -> None:
        self._most = max(packed, min(max(20 * packed, _LEAST_UNPACKED), _MOST_UNPACKED))
        self._bytes = self._members = 0

    def let_pass(self, member: TarInfo, path: str) -> TarInfo:
        import tarfile

        self._members += 1
        self._bytes += member.size
        if self._members > _MOST_MEMBERS:
            raise ShippedProblem(f"the shipped folder has more than {_MOST_MEMBERS} entries")
        if self._bytes > self._most:
            raise ShippedProblem(f"the shipped folder unpacks to more than {self._most >> 20} MiB")
        return tarfile.data_filter(member, path)
