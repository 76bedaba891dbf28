"""A terminal over a WebSocket: binary messages are what is typed and shown, text ones are JSON about it.

To us: `{"rows": 40, "cols": 120}`. From us: `{"session": ID, "new": bool}` first, `{"ended": CODE}` last. The shell
is held by the broker: when a connection is lost it goes on, and the next one with the same session finds it again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
from typing import TYPE_CHECKING, Any, cast

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.domain import frames
from gpuyard.domain.doorways import Visit
from gpuyard.domain.errors import BadInput
from gpuyard.domain.frames import BINARY, CLOSE, PING, TEXT, BadFrame, FrameReader, write_close, write_frame
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.gateway.web import answers
from gpuyard.gateway.web.gate import Permit, Proof, replica_named
from gpuyard.gateway.web.heads import Request, write_head
from gpuyard.gateway.web.own import Reply
from gpuyard.gateway.web.texts import text

if TYPE_CHECKING:
    from gpuyard.gateway.web.connection import Connection
    from gpuyard.gateway.web.server import Web

PING_SECONDS = 20.0
SILENT_SECONDS = 70.0
_DATA, _RESIZE, _END = b"d", b"r", b"e"
LARGEST_FRAME = 1 << 21  # that the broker may send
LARGEST_SIDE = 4096


async def open_terminal(web: Web, request: Request, proof: Proof, visit: Visit, query: dict[str, str]) -> Reply:
    """Someone who may, and a shell for them; then the connection becomes the terminal."""
    permit = await web.gate.ask_anew(proof, visit)  # of a moment ago, it may lead to what was restarted since
    key = request.get(b"sec-websocket-key")
    if not request.wants_websocket or request.get(b"sec-websocket-version") != b"13" or len(key) != 24:
        said = text("bad.method", answers.language_of(request))
        return answers.message(request, 426, "refused.bad_request", said)
    if not web.crowd.come(permit.actor.name):
        said = text("too.many", answers.language_of(request))
        return answers.message(request, 429, "refused.too_many", said)
    try:
        replica = replica_named(permit.workload, query.get("replica", ""))
        session, is_new, sock = await web.context.broker.terminal(
            str(replica.id),
            permit.actor.name,
            session=query.get("session") or None,
            rows=_side(query.get("rows", "24")),
            cols=_side(query.get("cols", "80")),
            argv=_argv(query.get("argv", "")),
        )
        if is_new:
            await asyncio.to_thread(_note, web, permit, replica.id.short)
    except BaseException:
        web.crowd.go(permit.actor.name)
        raise
    talk = TerminalTalk(web, permit, sock, {"session": session, "new": is_new, "replica": replica.id.short})
    return lambda client, early: talk.begin(client, key, early)


def _note(web: Web, permit: Permit, replica: str) -> None:
    now = web.context.clock()
    with web.context.database.write() as conn:
        facts = {"what": "terminal", "replica": replica}
        audit.record(conn, permit.actor, Action.ENTER_WORKLOAD, permit.workload.id, now, facts=facts)


def _side(text: str) -> int:
    return min(max(int(text), 1), LARGEST_SIDE) if text.isdigit() and len(text) < 6 else 24


def _argv(text: str) -> list[str] | None:
    """A command instead of the login shell, as a JSON list."""
    if not text:
        return None
    try:
        argv = json.loads(text)
    except ValueError:
        argv = None
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
        raise BadInput(because(Code.BAD_VALUE, at="argv", problem=Problem.LIST.value, value=""))
    return argv


class TerminalTalk:
    """Between a browser and the broker's stream."""

    stays = True

    def __init__(self, web: Web, permit: Permit, sock: socket.socket, told: dict[str, Any]) -> None:
        self.web, self.permit = web, permit
        self._sock: socket.socket | None = sock
        self._told = told
        self._frames = FrameReader(masked=True)
        self._stream: Stream | None = None
        self._owed: bytes | None = None  # what the latest ping said, while the browser does not read
        self._is_full = False  # what we say is not taken
        self._early = b""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._heard = web.now
        self.client: Connection

    def begin(self, client: Connection, key: bytes, early: bytes) -> None:
        self.client = client
        if client.is_gone:
            self._leave()
            return
        client.talk = self
        if not client.known_as:
            self.web.know(client, self.permit.actor.name)
        accept = base64.b64encode(hashlib.sha1(key + frames.MAGIC, usedforsecurity=False).digest())
        lines = [b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + accept]
        client.transport.write(write_head(b"HTTP/1.1 101 Switching Protocols", lines))
        self._say(self._told)
        client.hold()  # until there is somewhere to pass it on to
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._ping)
        self.web.spawn(self._attach(), self.end)
        self._early += early

    async def _attach(self) -> None:
        sock, self._sock = self._sock, None
        assert sock is not None
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        _, stream = await loop.create_unix_connection(lambda: Stream(self), sock=sock)
        if self._closed:
            stream.transport.close()
            return
        self._stream = stream
        early, self._early = self._early, b""
        self.client.go_on()
        self.from_client(early)

    # --- from the browser -------------------------------------------------------------------------------------------

    def from_client(self, data: bytes) -> None:
        self._heard = self.web.now
        if self._stream is None:
            self._early += data
            return
        try:
            for message in self._frames.take(data):
                self._take(message)
        except BadFrame as problem:
            self._end_with(problem.code, str(problem))

    def _take(self, message: frames.Message) -> None:
        if message.kind == BINARY:
            self.web.context.activity.used(self.permit.workload.id)
            self._pass_on(_DATA, message.payload)
        elif message.kind == TEXT:
            self._resize(message.payload)
        elif message.kind == PING:
            self._owed = message.payload
            self._answer_ping()
        elif message.kind == CLOSE:
            self._end_with(frames.close_code(message.payload), "")

    def _answer_ping(self) -> None:
        """Whoever does not read gets one answer later, to the latest: RFC 6455 asks for no more, and it is little."""
        if self._owed is not None and not self._is_full:
            self.client.transport.write(write_frame(frames.PONG, self._owed))
            self._owed = None

    def _resize(self, payload: bytes) -> None:
        try:
            told = json.loads(payload)
            size = {"rows": _side(str(told["rows"])), "cols": _side(str(told["cols"]))}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadFrame("a text message that is not understood") from None
        self._pass_on(_RESIZE, json.dumps(size).encode())

    def _pass_on(self, kind: bytes, payload: bytes) -> None:
        frame = kind + len(payload).to_bytes(4, "big") + payload
        if self._stream is not None:
            self._stream.transport.write(frame)

    def client_gone(self) -> None:
        self._leave()

    def client_full(self) -> None:
        self._is_full = True
        if self._stream is not None:
            self._stream.transport.pause_reading()

    def client_ready(self) -> None:
        self._is_full = False
        self._answer_ping()
        if self._stream is not None:
            self._stream.transport.resume_reading()

    def end(self) -> None:
        """The right to be here is gone, or the gateway ends. The shell goes on for whoever may come back to it."""
        self._end_with(frames.GOING_AWAY if self.web.stopping else frames.NOT_ALLOWED, "")

    # --- from the shell ---------------------------------------------------------------------------------------------

    def shown(self, kind: bytes, payload: bytes) -> None:
        if kind == _DATA:
            self.client.transport.write(write_frame(BINARY, payload))
        elif kind == _END:
            code = json.loads(payload).get("code")
            self._say({"ended": code})
            self._end_with(frames.NORMAL, "ended")

    def stream_lost(self) -> None:
        """The broker is gone: the browser tries again, and finds the shell or a new one."""
        self._end_with(frames.TRY_AGAIN, "")

    def stream_full(self) -> None:
        self.client.hold()

    def stream_ready(self) -> None:
        self.client.go_on()

    def _say(self, told: dict[str, Any]) -> None:
        self.client.transport.write(write_frame(TEXT, json.dumps(told).encode()))

    def _ping(self) -> None:
        if self.web.now - self._heard > SILENT_SECONDS:
            self.client.close(cut=True)
            return
        self.client.transport.write(write_frame(PING, b""))
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._ping)

    def _end_with(self, code: int, why: str) -> None:
        if not self._closed:
            self.client.transport.write(write_close(code, why))
            self._leave()
            self.client.finished(keep=False, unread=True)  # something may be on its way that is typed just now

    def _leave(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.web.crowd.go(self.permit.actor.name)
        if self._timer is not None:
            self._timer.cancel()
        if self._stream is not None:
            self._stream.transport.close()
        if self._sock is not None:
            self._sock.close()


class Stream(asyncio.Protocol):
    """The broker's side: one byte for the kind, four for the length, then the payload."""

    transport: asyncio.Transport

    def __init__(self, talk: TerminalTalk) -> None:
        self._talk = talk
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer, at = self._buffer + data if self._buffer else data, 0
        while len(buffer) - at >= 5:
            size = int.from_bytes(buffer[at + 1 : at + 5], "big")
            if size > LARGEST_FRAME:
                self.transport.abort()
                return
            if len(buffer) - at - 5 < size:
                break
            self._talk.shown(buffer[at : at + 1], buffer[at + 5 : at + 5 + size])
            at += 5 + size
        self._buffer = buffer[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        self._talk.stream_lost()

    def pause_writing(self) -> None:
        self._talk.stream_full()

    def resume_writing(self) -> None:
        self._talk.stream_ready()
