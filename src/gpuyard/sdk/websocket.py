"""A small WebSocket client (RFC 6455) with nothing but the standard library: enough for terminals."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from gpuyard.domain.frames import (
    CLOSE,
    MAGIC,
    NORMAL,
    PING,
    PONG,
    BadFrame,
    FrameReader,
    Message,
    write_close,
    write_frame,
)
from gpuyard.sdk.errors import ServerUnreachable, YardApiError, kind_of_error
from gpuyard.sdk.peers import Stranger, stranger_told

CONNECT_SECONDS = 10.0
_LARGEST_REFUSAL = 64 * 1024


class ConnectionLost(Exception):
    """The other side is gone, or no longer makes sense."""


class WebSocket:
    """One open connection. Read when `select` says so, or wait for it."""

    def __init__(self, sock: socket.socket, early: bytes) -> None:
        self._sock = sock
        self._frames = FrameReader(masked=False, most_bytes=4 << 20)
        self._early = early

    @staticmethod
    def connect(
        url: str,
        asked: Mapping[str, str],
        trust: ssl.SSLContext | bool,
        require_server: Callable[[socket.socket], None],
    ) -> WebSocket:
        """`url` begins with http or https. Refusals are raised as the server words them."""
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        try:
            sock = _reach(url, trust, require_server)
        except Stranger as stranger:
            raise stranger_told(stranger, url.partition("?")[0]) from stranger
        except OSError as error:
            words = f"the gateway at {url.partition('?')[0]} does not answer ({error})"
            raise ServerUnreachable("client.unreachable", words, {"url": url, "detail": str(error)}) from error
        try:
            _ask(sock, url, asked, key)
            head, early = _read_head(sock)
            status, _, fields = head.partition(b"\r\n")
            headers = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
            if not status.startswith(b"HTTP/1.1 101"):
                raise _refusal(sock, status, headers, early)
            expected = base64.b64encode(hashlib.sha1(key.encode() + MAGIC, usedforsecurity=False).digest()).decode()
            if headers.get("Sec-WebSocket-Accept") != expected:
                raise YardApiError("client.odd_answer", "what answered is no gateway", status=101)
            sock.settimeout(None)
            return WebSocket(sock, early)
        except (OSError, http.client.HTTPException) as error:
            sock.close()
            raise ServerUnreachable("client.unreachable", f"the gateway went away ({error})", {"url": url}) from error
        except BaseException:
            sock.close()
            raise

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_more(self) -> bool:
        """Something is there that `select` does not know of."""
        return bool(self._early) or (isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0)

    def receive(self) -> list[Message]:
        """What has come, at least a part of it. Pings are answered here."""
        try:
            data, self._early = self._early or self._sock.recv(1 << 16), b""
            if not data:
                raise ConnectionLost
            messages = self._frames.take(data)
            for message in messages:
                if message.kind == PING:
                    self.send(PONG, message.payload)
        except (OSError, BadFrame) as error:
            raise ConnectionLost from error
        return [message for message in messages if message.kind not in (PING, PONG)]

    def send(self, kind: int, payload: bytes) -> None:
        try:
            self._sock.sendall(write_frame(kind, payload, secrets.token_bytes(4)))
        except OSError as error:
            raise ConnectionLost from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.sendall(write_close(NORMAL, mask=os.urandom(4)))
        self._sock.close()


def _reach(url: str, trust: ssl.SSLContext | bool, require_server: Callable[[socket.socket], None]) -> socket.socket:
    parts = urlsplit(url)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    sock = socket.create_connection((host, parts.port or (443 if is_tls else 80)), timeout=CONNECT_SECONDS)
    try:
        require_server(sock)
    except OSError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not is_tls:
        return sock
    if isinstance(trust, bool):
        context = ssl.create_default_context()
        if not trust:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context = trust
    return context.wrap_socket(sock, server_hostname=host)


def _ask(sock: socket.socket, url: str, headers: Mapping[str, str], key: str) -> None:
    parts = urlsplit(url)
    asked = {
        "Host": parts.netloc,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        **headers,
    }
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in asked.items()), "", ""]
    sock.sendall("\r\n".join(lines).encode("latin-1"))


def _read_head(sock: socket.socket) -> tuple[bytes, bytes]:
    """The head of the answer, and what came right behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece or len(data) > _LARGEST_REFUSAL:
            raise ConnectionError("no answer")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _refusal(sock: socket.socket, line: bytes, headers: http.client.HTTPMessage, body: bytes) -> YardApiError:
    length = min(int(headers.get("Content-Length") or 0), _LARGEST_REFUSAL)
    while len(body) < length and (piece := sock.recv(65536)):
        body += piece
    words = line.decode("latin-1").split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    try:
        told = json.loads(body)["error"]
        return kind_of_error(status)(told["code"], told["message"], told.get("facts"), status=status)
    except (ValueError, KeyError, TypeError):
        said = f"the gateway answered {' '.join(words[1:])}"
        return YardApiError("client.odd_answer", said, {"status": status}, status=status)


__all__ = ["CLOSE", "ConnectionLost", "WebSocket"]
