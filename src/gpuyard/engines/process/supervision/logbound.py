"""Keeps a log within its share of the disk: head and newest tail stay, the middle is given back.

The hole is punched into the file, so that no offset ever changes and a reader goes on where it was. What was dropped is
noted in `log.gap` before it is dropped: a reader never takes the hole's zeros for output.
"""

from __future__ import annotations

import os
import sys
import time

from . import linux, record

_BLOCK = 4096
_SLOW, _FAST = 0.2, 0.002  # seconds between looks


class LogBound:
    def __init__(self, folder: str, fd: int, limit: int) -> None:
        self._folder, self._fd, self._limit = folder, fd, limit
        self._head = max(_BLOCK, limit // 4 // _BLOCK * _BLOCK)
        self._tail = limit // 2
        self._gap_end = self._head
        self._size, self._at = 0, time.monotonic()

    def check(self) -> float:
        """Drop the middle if there is too much. Returns how long one may wait before looking again."""
        size = os.fstat(self._fd).st_size
        if size < self._gap_end and self._gap_end > self._head:
            self._start_over()  # the job truncated its own log
        kept = size - (self._gap_end - self._head)
        if kept > self._limit:
            self._drop_up_to((size - self._tail) // _BLOCK * _BLOCK)
        return self._patience(size)

    def _drop_up_to(self, end: int) -> None:
        if end <= self._gap_end:
            return
        is_noted = self._note(end)
        try:
            linux.punch_hole(self._fd, self._gap_end, end - self._gap_end)
        except OSError:  # a filesystem without holes: better a long log than a lost one
            self._start_over()
            self._limit = sys.maxsize
            return
        if not is_noted:
            self._note(end)
        self._gap_end = end

    def _note(self, end: int) -> bool:
        """False when the disk is full, perhaps of this very log: then it is noted once there is room."""
        try:
            record.write(self._folder, record.GAP, {"from": self._head, "to": end}, durable=False)
        except OSError:
            return False
        return True

    def _start_over(self) -> None:
        path = os.path.join(self._folder, record.GAP)
        if os.path.exists(path):
            os.unlink(path)
        self._gap_end = self._head

    def _patience(self, size: int) -> float:
        """Look again before it can have grown by an eighth of the limit at the present speed."""
        now = time.monotonic()
        speed = (size - self._size) / max(now - self._at, 1e-6)
        self._size, self._at = size, now
        if speed <= 0:
            return _SLOW
        return max(_FAST, min(_SLOW, self._limit / 8 / speed))
