"""Registries of the tests' own on loopback: one that gives images, and one that takes all connections and is silent."""

from __future__ import annotations

import hashlib
import json
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.engines.containers import image_of_busybox


class Registry:
    """As much of one as a pull needs: one good image, one that may not be had, one that never comes."""

    def __init__(self) -> None:
        layer = image_of_busybox({"etc/pulled": "yes"})
        rootfs = {"type": "layers", "diff_ids": [_digest(layer)]}
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
        self.kind = "application/vnd.docker.distribution.manifest.v2+json"
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": self.kind,
                "config": _part("application/vnd.docker.container.image.v1+json", config),
                "layers": [_part("application/vnd.docker.image.rootfs.diff.tar", layer)],
            }
        ).encode()
        self.blobs = {_digest(blob): blob for blob in (layer, config)}
        self.go_on = threading.Event()
        self.pulls = 0


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _part(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


@contextmanager
def serving(port: int) -> Iterator[Registry]:
    made = Registry()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            status, kind, body = self._find()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def _find(self) -> tuple[int, str, bytes]:
            parts = self.path.strip("/").split("/")
            if parts == ["v2"]:
                return 200, "application/json", b"{}"
            if parts[1] == "slow":
                made.go_on.wait()
            if parts[1] == "secret":
                return 401, "application/json", _error("UNAUTHORIZED", "authentication required")
            if parts[1] in ("good", "slow") and parts[2] == "manifests" and parts[3] in ("1", _digest(made.manifest)):
                made.pulls += self.command == "GET"
                return 200, made.kind, made.manifest
            if parts[1] in ("good", "slow") and parts[2] == "blobs" and parts[3] in made.blobs:
                return 200, "application/octet-stream", made.blobs[parts[3]]
            return 404, "application/json", _error("MANIFEST_UNKNOWN", "manifest unknown")

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


class SilentRegistry:
    """Takes every connection, and says nothing. It knows how many are open: who hung up is gone."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self._chooser = selectors.DefaultSelector()
        self._chooser.register(self._listener, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._chooser.register(self._woken, selectors.EVENT_READ)
        self._open: set[socket.socket] = set()
        self.most = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def open(self) -> int:
        return len(self._open)

    def _run(self) -> None:
        while True:
            for key, _ in self._chooser.select():
                found = key.fileobj
                assert isinstance(found, socket.socket)
                if found is self._woken:
                    return
                if found is self._listener:
                    self._welcome(found.accept()[0])
                else:
                    self._hear(found)

    def _welcome(self, guest: socket.socket) -> None:
        guest.setblocking(False)
        self._chooser.register(guest, selectors.EVENT_READ)
        self._open.add(guest)
        self.most = max(self.most, len(self._open))

    def _hear(self, guest: socket.socket) -> None:
        try:
            said = guest.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._chooser.unregister(guest)
            self._open.discard(guest)
            guest.close()

    def close(self) -> None:
        self._wake.close()
        self._thread.join()
        for sock in (*self._open, self._listener, self._woken):
            sock.close()
