"""Where TLS begins. Whoever comes is counted before anything is worked out for them: a handshake that never goes on
costs as much as a request that does not. Who speaks plain HTTP is sent to https."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import string
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpuyard.domain.doorways import Asked
from gpuyard.gateway.web import answers
from gpuyard.gateway.web.connection import Connection
from gpuyard.gateway.web.heads import Request
from gpuyard.gateway.web.texts import text

if TYPE_CHECKING:
    from gpuyard.gateway.web.server import Web

FIRST_SECONDS = 10.0
AT_ONCE = 64
BREATH_SECONDS = 1.0
_TLS_HELLO = b"\x16"
_log = logging.getLogger(__name__)


class Porch:
    def __init__(self, web: Web, listener: socket.socket, tls: ssl.SSLContext) -> None:
        self._web, self._listener, self._tls = web, listener, tls
        self._loop = asyncio.get_running_loop()
        listener.setblocking(False)
        self._open()

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()

    def _open(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener.fileno(), self._welcome_all)

    def _welcome_all(self) -> None:
        for _ in range(AT_ONCE):
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor, no memory: asked again at once, it would be the same
                _log.warning("nobody more can be let in just now: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(BREATH_SECONDS, self._open)
                return
            self._welcome(sock, str(address[0]))

    def _welcome(self, sock: socket.socket, peer: str) -> None:
        if not self._web.strangers.come(peer):
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._web.spawn(self._receive(sock, peer))

    async def _receive(self, sock: socket.socket, peer: str) -> None:
        connection: Connection | None = None
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                is_tls = await self._first_byte(sock) == _TLS_HELLO
            connection = Connection(self._web, peer) if is_tls else PlainConnection(self._web, peer)
            made, tls = connection, self._tls if is_tls else None
            patience = FIRST_SECONDS if is_tls else None
            await self._loop.connect_accepted_socket(lambda: made, sock, ssl=tls, ssl_handshake_timeout=patience)
        except OSError as error:  # they left, said nothing, or cannot agree with us on how to speak
            _log.debug("a visitor from %s did not come in: %s", peer, error)
        finally:
            if connection is None or not connection.is_made:
                self._web.strangers.go(peer)
                sock.close()

    async def _first_byte(self, sock: socket.socket) -> bytes:
        """Looked at, and left where it is."""
        there: asyncio.Future[None] = self._loop.create_future()

        def is_there() -> None:
            if not there.done():
                there.set_result(None)

        self._loop.add_reader(sock.fileno(), is_there)
        try:
            await there
        finally:
            self._loop.remove_reader(sock.fileno())
        return sock.recv(1, socket.MSG_PEEK)


class PlainConnection(Connection):
    """Someone who came without TLS: whatever is asked for, it is to be had over https only."""

    __slots__ = ()

    def _begin(self, request: Request, asked: Asked, rest: bytes) -> None:
        if request.is_safe and not request.wants_websocket:
            target = quote(request.target, safe=string.punctuation)
            answer = answers.redirect(f"https://{request.host.decode('ascii')}{target}")
        else:  # what was sent along could be read on the way: not something to go on with silently
            said = text("https.only", answers.language_of(request))
            answer = answers.message(request, 403, "refused.https_only", said)
        self.answer(answer, request, body_read=not request.has_body and not rest)
