"""A shell inside running work, by program: what is typed goes in, what it shows comes out, and a lost connection finds
the same shell again."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from gpuyard.domain.frames import BINARY, CLOSE, NOT_ALLOWED, TEXT, Message, close_code
from gpuyard.sdk.websocket import ConnectionLost, WebSocket


@dataclass(frozen=True, slots=True)
class Way:
    """Where the gateway is, and as whom to come."""

    base: str  # http://host:8471
    headers: Mapping[str, str]
    trust: ssl.SSLContext | bool
    require_server: Callable[[socket.socket], None]


@dataclass(frozen=True, slots=True)
class ShownOut:
    """The login has ended, or the work has."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int | None


Heard = bytes | Ended | ShownOut


class Shell:
    """Begun with `attach`; after ConnectionLost, `attach` again."""

    def __init__(self, way: Way, workload: str, replica: str | None, argv: Sequence[str], rows: int, cols: int) -> None:
        self._way = way
        self._workload = workload
        self._asked = {"replica": replica or ""} | ({"argv": json.dumps(list(argv))} if argv else {})
        self.rows, self.cols = rows, cols
        self.session: str | None = None
        self.is_new = True
        self._socket: WebSocket | None = None

    def attach(self) -> None:
        """Connect, to the same shell if there was one."""
        self.detach()
        query = {**self._asked, "rows": self.rows, "cols": self.cols, "session": self.session or ""}
        url = f"{self._way.base}/.yard/api/terminal/{self._workload}?{urlencode(query)}"
        self._socket = WebSocket.connect(url, self._way.headers, self._way.trust, self._way.require_server)

    def detach(self) -> None:
        """The shell goes on for half an hour."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def fileno(self) -> int:
        return self._open.fileno()

    @property
    def has_more(self) -> bool:
        return self._open.has_more

    def type(self, data: bytes) -> None:
        self._open.send(BINARY, data)

    def resize(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self._open.send(TEXT, json.dumps({"rows": rows, "cols": cols}).encode())

    def hear(self) -> list[Heard]:
        """What it shows, and how it ends. Waits for something to come."""
        all_heard: list[Heard] = []
        for message in self._open.receive():
            heard = self._read(message)
            if heard is not None:
                all_heard.append(heard)
            if isinstance(heard, Ended | ShownOut):
                break
        return all_heard

    def _read(self, message: Message) -> Heard | None:
        if message.kind == BINARY:
            return message.payload
        if message.kind == CLOSE:
            if close_code(message.payload) == NOT_ALLOWED:
                return ShownOut()
            raise ConnectionLost
        told = json.loads(message.payload)
        if "ended" in told:
            return Ended(told["ended"])
        if "session" in told:
            self.session, self.is_new = str(told["session"]), bool(told["new"])
        return None

    @property
    def _open(self) -> WebSocket:
        if self._socket is None:
            raise ConnectionLost
        return self._socket
