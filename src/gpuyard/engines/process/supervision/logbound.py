"""Keeps a log within its share of the disk: head and newest tail stay, the middle is given back.

The hole is punched into the file, so that no offset ever changes and a reader goes on where it was. What was dropped is
noted in `log.gap` before it is dropped: a reader never takes the hole's zeros for output.

The job has the file open and may reserve room in it that its size does not show, or make it large without writing. What
counts is also what the disk says, and at the end the file goes no further than its data.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from . import linux, record

_BLOCK = 4096
_BEYOND = 1 << 43  # further than any room that a job can reserve behind the end of its log
_MOST_PARTS = 10_000  # of a log with holes, looked at to find where its data ends
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
        try:
            return self._look()
        except OSError:  # a disk that fails for a moment must not end the job
            return _SLOW

    def settle(self) -> None:
        """The job has ended and nobody writes any more: give back what it reserved, and the emptiness at the end."""
        try:
            self._look()
            end = self._end_of_data()
            os.ftruncate(self._fd, end)
            if end <= self._head:
                self._start_over()
        except OSError:
            return

    def _look(self) -> float:
        size = os.fstat(self._fd).st_size
        if size < self._gap_end and self._gap_end > self._head:
            self._start_over()  # the job truncated its own log
        kept = size - (self._gap_end - self._head)
        if kept > self._limit:
            self._drop_up_to((size - self._tail) // _BLOCK * _BLOCK)
        if self._takes_too_much():
            self._take_back_reserves()
        return self._patience(size)

    def _takes_too_much(self) -> bool:
        """More on the disk than its size explains. Some filesystems reserve a good deal for a file that grows."""
        found = os.fstat(self._fd)
        kept = found.st_size - (self._gap_end - self._head)
        return found.st_blocks * 512 - kept > self._limit

    def _take_back_reserves(self) -> None:
        """First what harms nobody: the middle that was dropped, and room behind the end. Where the filesystem keeps the
        latter, cutting the file at its end frees it; a line written in that very moment is lost."""
        if self._gap_end > self._head:
            linux.punch_hole(self._fd, self._head, self._gap_end - self._head)
        self._free_behind_the_end()
        if self._takes_too_much():
            os.ftruncate(self._fd, os.fstat(self._fd).st_size)

    def _free_behind_the_end(self) -> None:
        """Not right behind it: the job may be writing there in this moment."""
        end = os.fstat(self._fd).st_size // _BLOCK * _BLOCK + self._limit // 2
        try:
            linux.punch_hole(self._fd, end, _BEYOND)
        except OSError:  # further than this filesystem goes
            return

    def _end_of_data(self) -> int:
        size = os.fstat(self._fd).st_size
        end = 0
        for _ in range(_MOST_PARTS):
            try:
                end = os.lseek(self._fd, os.lseek(self._fd, end, os.SEEK_DATA), os.SEEK_HOLE)
            except OSError as problem:
                if problem.errno == errno.ENXIO:  # nothing but emptiness from here on
                    return end
                return size
        return size

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
