"""Reads a replica's log as it lies on disk: by byte offset, in pieces, never more in memory than was asked for.

A log is bounded by dropping its middle (`log.gap` beside it says which bytes). Offsets never change, so a reader that
remembers one goes on there, whatever was dropped meanwhile.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 64 * 1024
MOST_TAIL_BYTES = 1024 * 1024  # endless lines: a tail shows at most this much, however few lines it is


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output from `start` up to, not including, `end`."""

    start: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Output that was written and is no longer kept."""

    start: int
    end: int


Piece = Chunk | Gap


class LogFile:
    """One log. At any moment the file may not exist yet, may grow, may lose its middle, may be truncated by the job: a
    follower whose offset is beyond `size()` goes on from there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def size(self) -> int:
        """The offset at which the next byte will be."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def gap(self) -> Gap | None:
        try:
            noted = json.loads(self._path.with_name(self._path.name + ".gap").read_bytes())
            return Gap(int(noted["from"]), int(noted["to"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def read(self, offset: int, limit: int) -> list[Piece]:
        """At most `limit` bytes of output from `offset` on, and the gaps between. Empty at the end, and beyond it."""
        pieces: list[Piece] = []
        offset = max(0, offset)
        while limit > 0:
            piece = self._next_piece(offset, min(limit, CHUNK_BYTES))
            if piece is None:
                return pieces
            pieces.append(piece)
            offset = piece.end
            limit -= len(piece.data) if isinstance(piece, Chunk) else 0
        return pieces

    def tail_start(self, lines: int, most_bytes: int = MOST_TAIL_BYTES) -> int:
        """Where the last `lines` lines begin, reading backwards. Never inside or before the gap, and never further back
        than `most_bytes`."""
        size = self.size()
        gap = self.gap()
        floor = max(0, size - most_bytes, gap.end if gap else 0)
        if lines <= 0:
            return size
        wanted = lines + 1  # the newline that ends the line before the first one wanted
        end = size
        first = True
        while end > floor:
            start = max(floor, end - CHUNK_BYTES)
            data = self._read_at(start, end - start)
            if first and not data.endswith(b"\n"):
                wanted -= 1  # a last line without its end is a line
            first = False
            found = data.count(b"\n")
            if found >= wanted:
                return start + _from_the_end(data, wanted) + 1
            wanted -= found
            end = start
        return floor

    def tail(self, lines: int, most_bytes: int = MOST_TAIL_BYTES) -> list[Piece]:
        start = self.tail_start(lines, most_bytes)
        return self.read(start, min(most_bytes, self.size() - start))

    def _next_piece(self, offset: int, limit: int) -> Piece | None:
        """Looks for the gap again after reading: bytes read while they were being dropped may be zeros, and do not
        count."""
        data = self._read_at(offset, limit)
        gap = self.gap()
        if not data:
            return None
        if gap is None or offset >= gap.end or offset + len(data) <= gap.start:
            return Chunk(offset, offset + len(data), data)
        if offset < gap.start:
            data = data[: gap.start - offset]
            return Chunk(offset, gap.start, data)
        return Gap(offset, gap.end)

    def _read_at(self, offset: int, count: int) -> bytes:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return b""
        try:
            return os.pread(fd, count, offset)
        finally:
            os.close(fd)


def _from_the_end(data: bytes, number: int) -> int:
    """The position of the `number`-th newline, counted from the end."""
    position = len(data)
    for _ in range(number):
        position = data.rindex(b"\n", 0, position)
    return position
