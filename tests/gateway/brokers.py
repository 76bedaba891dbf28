"""A broker on a data folder of its own, with replicas whose porters are real, or made to misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.engines.places import wait_for
from tests.engines.porters import PorterPlace

from gpuyard.engines.inside import wire
from gpuyard.gateway.broker_client import Broker, Frames

_T = TypeVar("_T")


class BrokerPlace:
    def __init__(self, data: Path) -> None:
        self.data = data
        (data / "run").mkdir(parents=True, exist_ok=True)
        self.client = Broker(data)
        self.porters: dict[str, PorterPlace] = {}
        self.given: list[socket.socket] = []
        """Closed at the end, also of a test that fails."""
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "gpuyard.gateway.broker", "--data", str(self.data)])
        self.pid = self.process.pid
        wait_for(lambda: (self.data / "run" / "broker.sock").exists(), "the broker's socket")

    def folder(self, replica: str) -> Path:
        workload, attempt, role, index = replica.split("-")
        return self.data / "replicas" / workload / attempt / f"{role}-{index}"

    def make_door(self, replica: str, uid: int = 0, uids: int = 1) -> Path:
        folder = self.folder(replica)
        (folder / "door").mkdir(parents=True)
        (folder / "door.json").write_text(json.dumps({"uid": uid, "uids": uids, "kind": "env"}))
        return folder / "door"

    def replica(self, replica: str = "wenv-1-main-0", **more: Any) -> PorterPlace:
        """One whose porter runs."""
        self.make_door(replica)
        porter = PorterPlace(self.folder(replica))
        self.porters[replica] = porter
        porter.start(**more)
        return porter

    def do(self, wish: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run(wish)

    def own_memory(self) -> int:
        """What it holds itself. Its part of what it shares with other Pythons changes with how many there are."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024

    def open_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def close(self) -> None:
        for sock in self.given:
            sock.close()
        self.process.kill()
        self.process.wait()
        for porter in self.porters.values():
            porter.close()


class Screen:
    """The gateway's end of a terminal, read with patience."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.text = b""
        self.end: Any = None
        self._frames = Frames()
        sock.setblocking(False)

    def look(self) -> None:
        try:
            piece = self.sock.recv(1 << 20)
        except BlockingIOError:
            return
        for kind, payload in self._frames.feed(piece):
            if kind == b"d":
                self.text += payload
            elif kind == b"e":
                self.end = json.loads(payload)

    def shows(self, text: bytes) -> None:
        def is_shown() -> bool:
            self.look()
            return text in self.text

        wait_for(is_shown, f"{text!r} on the screen")

    def ends(self) -> Any:
        def has_ended() -> bool:
            self.look()
            return self.end is not None

        wait_for(has_ended, "the end of the terminal")
        return self.end


class FalsePorter:
    """Listens in a door folder and answers whatever a user may think of."""

    def __init__(self, door: Path, answer: Callable[[socket.socket], None], name: str = "porter.sock") -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(door, os.O_PATH)
        self._sock.bind(f"/proc/self/fd/{folder}/{name}")
        os.close(folder)
        self._sock.listen(16)
        self._sock.settimeout(0.05)
        self._answer = answer
        self._is_over = False
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._is_over:
            try:
                sock, _ = self._sock.accept()
            except TimeoutError:
                continue
            self._held.append(sock)
            sock.settimeout(5.0)
            try:
                _, fds = wire.receive(sock)
                wire.close_all(fds)
                self._answer(sock)
            except (wire.Gone, OSError):
                continue

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        for sock in (self._sock, *self._held):
            sock.close()
