"""One segment of the journal as a file: a line that says what it is, then frames.

A frame is its length, a checksum over what came before it and over itself, and a piece of one compressed stream that
runs through the whole segment, so that what was said once is cheap ever after. Each frame is flushed to its end: what
the file holds of whole frames can be read, wherever the rest was torn off. The last frame of a segment that was ended
in good order says so.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"gpuyard journal 1\n"
END = "end"
_HEAD = struct.Struct(">II")
_LEVEL = 4  # beyond this a few percent of space cost half as much time again
_WINDOW = 15
MOST_BYTES = 1 << 28  # of one frame, packed or not; whoever reads a larger number reads no length

_spell = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Damaged(Exception):
    """From here on a segment cannot be read: `at` is the byte, `torn` that it just ends there."""

    def __init__(self, at: int, torn: bool) -> None:
        super().__init__(f"{'torn' if torn else 'damaged'} at byte {at}")
        self.at = at
        self.torn = torn


class SegmentWriter:
    """Appends frames to a new file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW)
        self._sum = zlib.crc32(MAGIC)
        self.size = 0
        try:
            self._write(MAGIC)
        except OSError:
            self.abandon()
            raise

    def append(self, data: Any) -> None:
        self._require_its_file()
        packed = self._packer.compress(_spell(data).encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self._sum = zlib.crc32(packed, self._sum)
        self._write(_HEAD.pack(len(packed), self._sum) + packed)

    def _require_its_file(self) -> None:
        """Where the file was taken away or cut short by others, whatever is written would be lost and nobody told."""
        mine, there = os.fstat(self._descriptor), os.stat(self._path, follow_symlinks=False)
        if (mine.st_dev, mine.st_ino, mine.st_size) != (there.st_dev, there.st_ino, self.size):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def end(self) -> None:
        """In good order, and safe from a loss of power from here on."""
        try:
            self.append(END)
            os.fsync(self._descriptor)
        finally:
            self.abandon()

    def abandon(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)


def read_frames(path: Path) -> Iterator[Any]:
    """What was appended, in order. Raises Damaged where it cannot be read further; a segment that is still being
    written, or whose writer was killed, simply ends."""
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            raise Damaged(0, torn=MAGIC.startswith(magic))
        unpacker, check, at = zlib.decompressobj(-_WINDOW), zlib.crc32(MAGIC), len(MAGIC)
        while head := file.read(_HEAD.size):
            length, told = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            packed = file.read(length) if 0 < length <= MOST_BYTES else b""
            check = zlib.crc32(packed, check)
            if not packed or len(packed) < length or check != told:
                raise Damaged(at, torn=_is_torn(head, length, packed, file.read(1)))
            data = _unpacked(unpacker, packed, at)
            if data == END:
                return
            yield data
            at += len(head) + length


def _unpacked(unpacker: zlib._Decompress, packed: bytes, at: int) -> Any:
    """Its sum is right; still it may be nothing that we wrote."""
    try:
        text = unpacker.decompress(packed, MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise Damaged(at, torn=False)
        return json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        raise Damaged(at, torn=False) from None


def _is_torn(head: bytes, length: int, packed: bytes, more: bytes) -> bool:
    """The file ends within the frame. A whole frame with the wrong sum was changed."""
    return not more and (len(head) < _HEAD.size or (0 < length <= MOST_BYTES and len(packed) < length))
