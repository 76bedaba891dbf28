"""A porter started by hand on a folder of its own, and ways to talk to it through its door."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engines.places import PATIENCE_SECONDS, wait_for

from gpuyard.engines.inside import porter, wire

SCRIPT = Path(porter.__file__)


@dataclass
class Answer:
    """What the porter said, what it gave, and the connection, which may have more to say."""

    message: dict[str, Any]
    fds: list[int]
    sock: socket.socket

    def more(self) -> dict[str, Any]:
        message, fds = wire.receive(self.sock)
        wire.close_all(fds)
        return message

    def leave(self) -> None:
        wire.close_all(self.fds)
        self.sock.close()


@dataclass
class PorterPlace:
    folder: Path
    python: str = sys.executable
    process: subprocess.Popen[bytes] | None = None
    _answers: list[Answer] = field(default_factory=list)

    @property
    def door(self) -> Path:
        return self.folder / "door"

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, *argv: str, env: dict[str, str] | None = None, **more: Any) -> None:
        """Returns once the door is open."""
        request = {
            "argv": list(argv),
            "env": {"PATH": os.environ["PATH"], "HOME": str(self.folder)} | (env or {}),
            "cwd": str(self.folder),
            "log": str(self.folder / "log"),
            "door": str(self.door),
            "grace": 20.0,
            "workdir": None,
            "shell_env": {"SHELL": "/bin/sh", "PS1": "ready "},
        }
        popen = {key: more.pop(key) for key in ("preexec_fn", "user", "group", "extra_groups") if key in more}
        self.door.mkdir(exist_ok=True)
        if "user" in popen:
            os.chown(self.door, popen["user"], popen["group"])
        path = self.folder / "request.json"
        path.write_text(json.dumps(request | more))
        self.process = subprocess.Popen(
            [self.python, "-I", "-S", "-E", str(SCRIPT), str(path)], stdin=subprocess.DEVNULL, **popen
        )
        wait_for(lambda: (self.door / "porter.sock").exists() or self.process_ended(), "the porter's door")

    def process_ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.door / "end.json").read_text())
        return told

    def knock(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(PATIENCE_SECONDS)
        folder = os.open(self.door, os.O_PATH)
        try:
            sock.connect(f"/proc/self/fd/{folder}/porter.sock")
        finally:
            os.close(folder)
        return sock

    def ask(self, message: dict[str, Any], fds: Sequence[int] = ()) -> Answer:
        sock = self.knock()
        try:
            wire.send(sock, message, fds)
            told, given = wire.receive(sock)
        except (wire.Gone, OSError):
            sock.close()
            raise
        answer = Answer(told, given, sock)
        self._answers.append(answer)
        return answer

    def run(self, line: str, **more: Any) -> tuple[Answer, int]:
        """A command, and the end of a pipe with what it says."""
        ears, mouth = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            return self.ask({"do": "run", "line": line, **more}, [nothing, mouth, mouth]), ears
        finally:
            os.close(nothing)
            os.close(mouth)

    def open_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def close(self) -> None:
        for answer in self._answers:
            answer.sock.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def read_all(fd: int) -> bytes:
    """Everything until the other side closes."""
    with open(fd, "rb") as file:
        return file.read()


def read_until(fd: int, text: bytes) -> bytes:
    """From a terminal or a stream, until the text has come."""
    found = b""

    def has_come() -> bool:
        nonlocal found
        if text not in found:
            found += os.read(fd, 65536)
        return text in found

    wait_for(has_come, repr(text))
    return found
