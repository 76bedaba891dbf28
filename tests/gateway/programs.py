"""A program as users run inside: it answers over HTTP, in all the ways HTTP has, and remembers what it was sent."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gpuyard.domain.frames import MAGIC

MEGABYTE = b"0123456789abcdef" * 65536


@dataclass
class Program:
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def last(self) -> str:
        return self.heads[-1].decode("latin-1")

    def header(self, name: str) -> list[str]:
        lines = [line.partition(":") for line in self.last.split("\r\n")[1:]]
        return [value.strip() for key, _, value in lines if key.lower() == name.lower()]


class Handler(socketserver.StreamRequestHandler):
    server: Any
    disable_nagle_algorithm = True

    def handle(self) -> None:
        program: Program = self.server.program
        program.connections += 1
        program.open += 1
        try:
            while self._one(program):
                pass
        except (ConnectionError, TimeoutError, ValueError):
            pass
        finally:
            program.open -= 1

    def _one(self, program: Program) -> bool:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return False
            head += line
        program.heads.append(head[:-4])
        path = head.split(b" ")[1].decode("latin-1")
        body = self._body(head.lower())
        program.bodies.append(body)
        return self._answer(program, path.partition("?")[0], body)

    def _body(self, head: bytes) -> bytes:
        if b"transfer-encoding: chunked" in head:
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return self.rfile.read(int(line[15:]))
        return b""

    def _answer(self, program: Program, path: str, body: bytes) -> bool:
        say = self.wfile.write
        if path == "/chunked":
            say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: br\r\n\r\n")
            say(b"5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n")
        elif path == "/until-close":
            say(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it")
            return False
        elif path == "/big":
            say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 * len(MEGABYTE)))
            for _ in range(64):
                say(MEGABYTE)
        elif path == "/endless":
            say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            while not program.release.wait(0.1):
                say(b"6\r\ndata\n\n\r\n")
        elif path == "/cookies":
            say(b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1; Domain=localhost; Path=/\r\n")
            say(b"Set-Cookie: yard_gate=stolen; Path=/\r\nSet-Cookie: plain=2\r\nContent-Length: 0\r\n\r\n")
        elif path == "/framing":
            say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Frame-Options: SAMEORIGIN\r\nContent-Security-Policy: ")
            say(b"script-src 'self'; frame-ancestors *; report-uri /r, img-src *, frame-ancestors 'self'\r\n\r\n")
        elif path == "/redirect":
            say(b"HTTP/1.1 301 Moved\r\nLocation: /there\r\nCache-Control: max-age=9999\r\nContent-Length: 0\r\n\r\n")
        elif path == "/early":
            say(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        elif path == "/split":
            say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsecret")
        elif path == "/nonsense":
            say(b"220 mail.example ESMTP ready\r\n\r\n")
            return False
        elif path == "/both-lengths":
            say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            return False
        elif path == "/hangs-up":
            return False
        elif path == "/half":
            say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
            return False
        elif path == "/ws":
            say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
            key = next(iter(program.header("Sec-WebSocket-Key")), "").encode()
            say(b"Sec-WebSocket-Accept: " + base64.b64encode(hashlib.sha1(key + MAGIC).digest()) + b"\r\n\r\n")
            while piece := self.connection.recv(65536):
                say(piece)
            return False
        else:
            told = json.dumps({"path": path, "body": len(body)}).encode()
            say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Own: yes\r\n\r\n" % len(told) + told)
        return True


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    program: Program

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        self.close_request(request)


@contextmanager
def a_program() -> Iterator[Program]:
    program = Program()
    with _Server(("127.0.0.1", 0), Handler) as server:
        server.program = program
        program.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield program
        finally:
            program.release.set()
            server.shutdown()
