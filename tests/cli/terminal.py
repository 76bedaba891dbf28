"""A terminal with `yard` in it, typed at by a test."""

from __future__ import annotations

import os
import pty
import select
import time

from tests.cli.yard import Yard


class Terminal:
    """`yard` in a terminal of its own, typed at by the test."""

    def __init__(self, yard: Yard, *arguments: str) -> None:
        self.seen = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            command = yard.command(*arguments)
            os.execve(command[0], command, yard.environment())

    def read_until(self, text: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._fd], [], [], 0.2)[0]:
                self.seen += os.read(self._fd, 65536).decode("utf-8", "replace")

    def count(self, text: str) -> int:
        """How often it was seen so far."""
        if select.select([self._fd], [], [], 0.2)[0]:
            self.seen += os.read(self._fd, 65536).decode("utf-8", "replace")
        return self.seen.count(text)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def exit_code(self) -> int:
        """Reads on until it ends, so that it can write its last words."""
        while select.select([self._fd], [], [], 60)[0]:
            try:
                piece = os.read(self._fd, 65536)
            except OSError:  # how Linux tells that the other side is closed
                break
            if not piece:
                break
            self.seen += piece.decode("utf-8", "replace")
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)
