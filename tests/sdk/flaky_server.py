"""A real HTTP server on loopback that answers by a script, so that tests can lose answers, refuse and cut streams."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What goes back. `cut` closes the connection: before any answer (no status), or after the body."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False
    chunks: list[bytes] | None = None


Script = Callable[[Request], Answer]


@dataclass
class FlakyServer:
    url: str
    seen: list[Request] = field(default_factory=list)


@contextlib.contextmanager
def flaky_server(script: Script, port: int = 0) -> Iterator[FlakyServer]:
    told = FlakyServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            params = {key: values[0] for key, values in parse_qs(parts.query).items()}
            request = Request(self.command, parts.path, params, dict(self.headers.items()), self.rfile.read(length))
            told.seen.append(request)
            self._send(script(request))

        def _send(self, answer: Answer) -> None:
            self.close_connection = True
            if answer.lost:
                return
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Connection", "close")  # said aloud, or the next request may meet the closing door
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.chunks is None:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for chunk in answer.chunks if answer.chunks is not None else [body]:
                if self.command != "HEAD":
                    self.wfile.write(chunk)
                    self.wfile.flush()

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sse(event: str, data: Any) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def workload(**changes: Any) -> dict[str, Any]:
    told = {"id": "a123456789", "name": "train", "state": "queued", "reason": "", "owner": "ana", "group": "vision"}
    return {**told, "attempt": 0, "cards": 1, "replicas": 1, **changes}


def refusal(code: str, message: str, **facts: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "facts": facts, "problems": []}}
