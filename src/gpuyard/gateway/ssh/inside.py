"""What the SSH door needs of the broker: programs, terminals and connections inside a workload."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Protocol


class Program(Protocol):
    """Something that runs inside, for as long as this is held."""

    async def wait(self) -> int:
        """Its exit code; minus the number of a signal that ended it."""
        ...

    def signal(self, number: int) -> None: ...

    def resize(self, rows: int, cols: int) -> None:
        """Of its terminal."""
        ...

    def close(self) -> None:
        """Hang it up."""
        ...


class Inside(Protocol):
    """Refusals are domain errors."""

    async def run(
        self,
        replica: str,
        user: str,
        *,
        line: str | None,
        argv: Sequence[str] | None,
        env: Mapping[str, str],
        fds: tuple[int, int, int],
    ) -> Program: ...

    async def shell(
        self,
        replica: str,
        user: str,
        *,
        line: str | None,
        env: Mapping[str, str],
        rows: int,
        cols: int,
        term: str,
        modes: Mapping[int, int],
    ) -> tuple[int, Program]:
        """A stream with the terminal's bytes both ways, and what runs on it. `modes` are those of RFC 4254."""
        ...

    async def connect(
        self, replica: str, user: str, *, port: int | None = None, path: str | None = None
    ) -> socket.socket: ...
