"""As much HTTP as a question and its answer need. The library's own client loads its mail parser and TLS first, which
takes longer than most of these programs run.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

LONGEST_LINE = 65536
MOST_HEADERS = 200
MOST_DIGITS = 12  # of a length
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class Garbled(OSError):
    """What came back is no answer."""


class Headers(dict[str, str]):
    """By their names, however those are written."""

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def told(self, name: str) -> str:
        """Empty when it was not sent."""
        return super().get(name.lower(), "")


class Reply:
    """An answer, read as it comes."""

    def __init__(self, status: int, reason: str, headers: Headers, body: _Body) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self._body = io.BufferedReader(body)

    def read(self, most: int = -1) -> bytes:
        return self._body.read(most)

    def read1(self, most: int = -1) -> bytes:
        """What has come by now, at least something before the end."""
        return self._body.read1(most)

    def readline(self) -> bytes:
        return self._body.readline()

    def getheader(self, name: str) -> str | None:
        return self.headers.told(name) or None

    @property
    def keeps(self) -> bool:
        """Whether the connection can be asked again, once the body has been read."""
        is_bounded = bool(self.headers.told("content-length") or self.headers.told("transfer-encoding"))
        return is_bounded and self.headers.told("connection").lower() != "close"


class Connection:
    """To one host. Not connected before `connect`; everything that goes wrong is an OSError."""

    def __init__(
        self,
        host: str,
        port: int,
        seconds: float,
        trust: ssl.SSLContext | None = None,
        require_server: Callable[[socket.socket], None] | None = None,
    ) -> None:
        self._host, self._port, self._seconds, self._trust = host, port, seconds, trust
        self._require_server = require_server
        self._socket: socket.socket | None = None
        self._incoming: io.BufferedReader | None = None

    def connect(self) -> None:
        plain = _reached(self._host, self._port, self._seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self._require_server is not None:
                self._require_server(plain)
            self._socket = self._trust.wrap_socket(plain, server_hostname=self._host) if self._trust else plain
        except OSError:
            plain.close()
            raise
        self._incoming = self._socket.makefile("rb")

    def close(self) -> None:
        for thing in (self._incoming, self._socket):
            if thing is not None:
                thing.close()
        self._incoming = self._socket = None

    def ask(self, method: str, target: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        assert self._socket is not None
        self._socket.sendall(self._head(method, target, headers, content) + (content or b""))
        return self._reply()

    def _head(self, method: str, target: str, headers: Mapping[str, str], content: bytes | None) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}:{self._port}"]
        if content is not None or method != "GET":
            lines.append(f"Content-Length: {len(content or b'')}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if any(character in line for line in lines for character in "\r\n\0"):
            raise Garbled("a header or an address with a line break in it")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def _reply(self) -> Reply:
        while True:
            version, _, rest = self._line().partition(" ")
            status, _, reason = rest.partition(" ")
            if not version.startswith("HTTP/1.") or not _is_status(status):
                raise Garbled("the answer is not in HTTP")
            headers = self._headers()
            if status[0] != "1":  # those announce the answer only
                assert self._incoming is not None
                return Reply(int(status), reason, headers, _Body(self._incoming, int(status), headers))

    def _headers(self) -> Headers:
        found = Headers()
        for _ in range(MOST_HEADERS):
            line = self._line()
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name.strip().lower()] = value.strip()
        raise Garbled("too many headers")

    def _line(self) -> str:
        assert self._incoming is not None
        return read_line(self._incoming)


def _reached(host: str, port: int, seconds: float) -> socket.socket:
    """At the first of its addresses that answers. A name in plain letters is looked up as bytes: text may be in any
    script, and what reads those would be loaded first."""
    name = host.encode() if host.isascii() else host
    problem: OSError = Garbled("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
        try:
            return _connected(socket.socket(family, kind, protocol), address, seconds)
        except OSError as error:
            problem = error
    raise problem


def _connected(fresh: socket.socket, address: Any, seconds: float) -> socket.socket:
    try:
        fresh.settimeout(seconds)
        fresh.connect(address)
    except BaseException:
        fresh.close()
        raise
    return fresh


def read_line(incoming: io.BufferedReader) -> str:
    line = incoming.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise Garbled("the connection was closed before the answer had come" if not line else "a line without end")
    return line.rstrip(b"\r\n").decode("latin-1")


def _is_status(text: str) -> bool:
    return len(text) == 3 and _is_length(text) and text[0] != "0"


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def _is_chunk_size(text: str) -> bool:
    return 0 < len(text) <= MOST_DIGITS and _HEX_DIGITS.issuperset(text)


class _Body(io.RawIOBase):
    """What follows the headers: so many bytes, or piece by piece, or until the other side closes."""

    def __init__(self, incoming: io.BufferedReader, status: int, headers: Headers) -> None:
        self._incoming = incoming
        self._chunked = headers.told("transfer-encoding").lower() == "chunked"
        length = headers.told("content-length")
        if length and not _is_length(length):
            raise Garbled("a length that is no number")
        self._left: int | None = None
        if self._chunked or status in (204, 304):
            self._left = 0
        elif length:
            self._left = int(length)
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left == 0 and self._chunked and not self._over:
            self._next_chunk()
        if self._left == 0 or not len(buffer):
            return 0
        wanted = len(buffer) if self._left is None else min(len(buffer), self._left)
        got = self._incoming.read1(wanted)
        if not got and self._left is not None:
            raise Garbled("the connection was closed in the middle of the answer")
        buffer[: len(got)] = got
        if self._left is not None:
            self._left -= len(got)
            if self._chunked and self._left == 0:
                self._incoming.readline(LONGEST_LINE)  # the line end after every chunk
        return len(got)

    def _next_chunk(self) -> None:
        size = read_line(self._incoming).partition(";")[0].strip()
        if not _is_chunk_size(size):
            raise Garbled("a chunk without a size")
        self._left = int(size, 16)
        if self._left == 0:
            self._over = True
            while read_line(self._incoming):
                pass
