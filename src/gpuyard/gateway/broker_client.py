"""The gateway's side of the broker: each wish is one short connection to its socket. Refusals are domain errors."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuyard.domain.errors import EngineError, NotFound, TooMany, Unavailable, YardError
from gpuyard.domain.reasons import Code, because
from gpuyard.engines.inside import wire

_PATIENCE_SECONDS = 30.0  # longer than any of the broker's own
_MOST_TRIES = 200
_HEAD = struct.Struct(">cI")
_MOST_FRAME = 2 << 20
_HUNG_UP = -int(signal.SIGHUP)


class Broker:
    def __init__(self, data: Path) -> None:
        self._run = data / "run"

    async def ping(self, replica: str, user: str) -> None:
        """Raises when there is no way in."""
        await self._ask(replica, user, {"do": "ping"})

    async def connect(
        self, replica: str, user: str, *, port: int | None = None, path: str | None = None
    ) -> socket.socket:
        """To a port of the inner loopback, or to a socket file in the door folder. Nobody else holds it."""
        target = {"path": path} if path is not None else {"port": port}
        _, fds = await self._ask(replica, user, {"do": "connect"} | target)
        return _one_socket(fds)

    async def serve(
        self, replica: str, user: str, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None
    ) -> bool:
        """Have a program run in the background. False when one of this name does already."""
        wish = {"do": "serve", "name": name, "argv": list(argv), "env": dict(env), "cwd": cwd}
        answer, _ = await self._ask(replica, user, wish)
        return bool(answer.get("started"))

    async def services(self, replica: str, user: str) -> Mapping[str, Mapping[str, Any]]:
        answer, _ = await self._ask(replica, user, {"do": "services"})
        found: dict[str, Mapping[str, Any]] = answer.get("services", {})
        return found

    async def terminal(
        self,
        replica: str,
        user: str,
        *,
        session: str | None = None,
        rows: int = 24,
        cols: int = 80,
        argv: Sequence[str] | None = None,
    ) -> tuple[str, bool, socket.socket]:
        """The session's id, whether it is new, and the stream of its frames."""
        wish = {"do": "terminal", "session": session, "rows": rows, "cols": cols}
        answer, fds = await self._ask(replica, user, wish | {"argv": list(argv) if argv else None})
        return answer["session"], answer["new"], _one_socket(fds)

    async def terminals(self, replica: str, user: str) -> list[dict[str, Any]]:
        """`session`, `since` and `attached` of each."""
        answer, _ = await self._ask(replica, user, {"do": "terminals"})
        return list(answer["sessions"])

    async def close_terminal(self, replica: str, user: str, session: str) -> None:
        await self._ask(replica, user, {"do": "close", "session": session})

    async def run(
        self,
        replica: str,
        user: str,
        *,
        fds: tuple[int, int, int],
        line: str | None = None,
        argv: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Running:
        """A command with these three streams, of which it gets duplicates."""
        wish = _program("run", line, argv, env, cwd)
        talk, _, given = await self._begin(replica, user, wish, fds)
        wire.close_all(given)
        return Running(talk)

    async def shell(
        self,
        replica: str,
        user: str,
        *,
        line: str | None = None,
        argv: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        rows: int = 24,
        cols: int = 80,
        term: str = "xterm-256color",
        modes: Mapping[int, int] | None = None,
    ) -> tuple[int, Running]:
        """A shell on a terminal: a descriptor with its bytes both ways, the caller's to close, and what runs on it.

        The descriptor is a stream, not the terminal, which its owner could make us wait on; sizes go through `resize`.
        """
        wish = _program("shell", line, argv, env, cwd) | {"rows": rows, "cols": cols, "term": term}
        wish["modes"] = {str(key): value for key, value in (modes or {}).items()}
        talk, _, given = await self._begin(replica, user, wish, ())
        try:
            return _one_socket(given).detach(), Running(talk)
        except BaseException:
            talk.close()
            raise

    # --- one wish -------------------------------------------------------------------------------------------------

    async def _ask(self, replica: str, user: str, wish: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        talk, answer, fds = await self._begin(replica, user, wish, ())
        talk.close()
        return answer, fds

    async def _begin(
        self, replica: str, user: str, wish: Mapping[str, Any], fds: Sequence[int]
    ) -> tuple[Talk, dict[str, Any], list[int]]:
        message = {"replica": replica, "user": user, **wish}
        talk = Talk(self._run)
        try:
            await talk.open()
            talk.send(message, fds)
            answer, given = await asyncio.wait_for(talk.receive(), _PATIENCE_SECONDS)
        except wire.Malformed as problem:
            talk.close()
            raise EngineError(because(Code.INSIDE_FAILED, detail=str(problem))) from problem
        except (wire.Gone, OSError) as problem:
            talk.close()
            raise Unavailable(because(Code.BROKER_AWAY)) from problem
        except BaseException:
            talk.close()
            raise
        if answer.get("ok") is not True:
            talk.close()
            wire.close_all(given)
            raise _refusal(message, answer)
        return talk, answer, given


def _program(
    do: str,
    line: str | None,
    argv: Sequence[str] | None,
    env: Mapping[str, str] | None,
    cwd: str | None,
) -> dict[str, Any]:
    return {"do": do, "line": line, "argv": list(argv) if argv else None, "env": dict(env or {}), "cwd": cwd}


def _one_socket(fds: list[int]) -> socket.socket:
    if len(fds) != 1:
        wire.close_all(fds)
        raise EngineError(because(Code.INSIDE_FAILED, detail="no stream came"))
    sock = socket.socket(fileno=fds[0])
    sock.setblocking(False)
    return sock


def _refusal(wish: Mapping[str, Any], answer: Mapping[str, Any]) -> YardError:
    detail = answer.get("detail", "")
    what, name = _wished(wish)
    match answer.get("error"):
        case "closed":
            return Unavailable(because(Code.DOOR_CLOSED, detail=detail))
        case "refused":
            return Unavailable(because(Code.NOBODY_LISTENS, what=what, name=name))
        case "not_found":
            return NotFound(because(Code.NOT_FOUND, what=what, name=name))
        case "too_many":
            return TooMany(because(Code.TOO_MANY_INSIDE, detail=detail), 5.0)
        case _:
            return EngineError(because(Code.INSIDE_FAILED, detail=detail))


def _wished(wish: Mapping[str, Any]) -> tuple[str, str]:
    """What could not be had, in a word, and its name."""
    if wish["do"] == "connect":
        return ("port", str(wish["port"])) if wish.get("port") is not None else ("service", str(wish["path"]))
    if wish.get("session") is not None:
        return "terminal", str(wish["session"])
    return "program", (wish.get("argv") or ["sh"])[0]


class Talk:
    """One connection to the broker."""

    def __init__(self, run: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.setblocking(False)
        self._run = run
        self._watched_by: asyncio.AbstractEventLoop | None = None

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        wire.send(self._sock, message, fds)

    async def open(self) -> None:
        for _ in range(_MOST_TRIES):
            try:
                self._connect()
                return
            except BlockingIOError:  # very many want something of it in this moment
                await asyncio.sleep(0.01)
        self._connect()

    def _connect(self) -> None:
        folder = os.open(self._run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._sock.connect(f"/proc/self/fd/{folder}/broker.sock")  # short, however long the folder's path is
        finally:
            os.close(folder)

    async def receive(self) -> tuple[dict[str, Any], list[int]]:
        loop = asyncio.get_running_loop()
        while True:
            try:
                return wire.receive(self._sock)
            except BlockingIOError:
                await self._readable(loop)

    async def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready: asyncio.Future[None] = loop.create_future()
        self._watched_by = loop
        loop.add_reader(self._sock.fileno(), lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            self._watch_no_more()

    def _watch_no_more(self) -> None:
        """Before it is closed, and never after: by then its number may be that of something else."""
        loop, self._watched_by = self._watched_by, None
        if loop is not None:
            loop.remove_reader(self._sock.fileno())

    def close(self) -> None:
        self._watch_no_more()
        self._sock.close()


class Running:
    """A command or shell inside, for as long as this is held: closing hangs it up."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._waiting: asyncio.Task[int] | None = None

    async def wait(self) -> int:
        """Its exit code; minus the number of a signal that ended it, and as hung up when the way to it was lost."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._hear_end())
        return await asyncio.shield(self._waiting)

    async def _hear_end(self) -> int:
        try:
            end, fds = await self._talk.receive()
        except (wire.Gone, wire.Malformed, OSError):
            return _HUNG_UP
        wire.close_all(fds)
        number, code = end.get("signal"), end.get("ended")
        if type(number) is int:
            return -number
        return code if type(code) is int else _HUNG_UP

    def signal(self, number: int) -> None:
        self._say({"signal": number})

    def resize(self, rows: int, cols: int) -> None:
        self._say({"rows": rows, "cols": cols})

    def _say(self, message: Mapping[str, Any]) -> None:
        try:
            self._talk.send(message)
        except (wire.Gone, OSError):  # it has ended; `wait` tells
            return

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._talk.close()


# --- the frames of a terminal's stream ----------------------------------------------------------------------------

DATA, SIZE, END = b"d", b"r", b"e"


def frame(kind: bytes, payload: bytes) -> bytes:
    return _HEAD.pack(kind, len(payload)) + payload


def size_frame(rows: int, cols: int) -> bytes:
    return frame(SIZE, json.dumps({"rows": rows, "cols": cols}).encode())


class Frames:
    """Frames out of a stream of bytes, however it is cut."""

    def __init__(self) -> None:
        self._heard = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        self._heard += data
        found: list[tuple[bytes, bytes]] = []
        while len(self._heard) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._heard)
            if length > _MOST_FRAME:
                raise ValueError("a frame that is too large")
            if len(self._heard) < _HEAD.size + length:
                break
            found.append((kind, bytes(self._heard[_HEAD.size : _HEAD.size + length])))
            del self._heard[: _HEAD.size + length]
        return found
