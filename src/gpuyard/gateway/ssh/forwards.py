"""A connection to a port on the inside loopback, asked for by the visitor (`ssh -L`, `ssh -D`)."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import asyncssh

from gpuyard.gateway.ssh.pumps import Sink, Source

if TYPE_CHECKING:
    from gpuyard.gateway.ssh.visitors import Visitor

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LARGEST_PORT = 65535


def is_own_loopback(host: str, port: int) -> bool:
    """Names are compared, never looked up: what resolves to loopback is not loopback inside."""
    return host.lower() in LOOPBACK and 1 <= port <= LARGEST_PORT


class Forward(asyncssh.SSHTCPSession[bytes]):
    """Between a channel and a socket that is connected inside."""

    def __init__(self, visitor: Visitor, connected: socket.socket) -> None:
        self._visitor = visitor
        self._socket = connected
        self._channel: asyncssh.SSHTCPChannel[bytes]
        self._source: Source | None = None
        self._sink: Sink
        self._half_closed = False

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._channel = chan
        self._sink = Sink(chan)
        self._sink.attach(os.dup(self._socket.fileno()))
        self._source = Source(os.dup(self._socket.fileno()), self._give, self._inside_ended)
        self._visitor.add_source(self._source)

    def _give(self, data: bytes) -> None:
        self._visitor.worked()
        self._channel.write(data)
        self._visitor.sent()

    def _inside_ended(self) -> None:
        if self._channel.is_closing():
            return
        if self._half_closed:
            self._channel.close()
        else:
            self._channel.write_eof()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._visitor.worked()
        self._sink.take(data)

    def eof_received(self) -> bool:
        self._sink.finish(self._half_close)
        return True

    def _half_close(self) -> None:
        """The visitor has said everything. When the other side had ended before, this was all."""
        self._half_closed = True
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._sink.close()
        if self._source is None or self._source.ended.is_set():
            self._channel.close()

    def pause_writing(self) -> None:
        if self._source is not None:
            self._source.hold("channel")

    def resume_writing(self) -> None:
        if self._source is not None:
            self._source.release("channel")

    def connection_lost(self, exc: Exception | None) -> None:
        self._visitor.forward_over()
        self._sink.close()
        if self._source is not None:
            self._visitor.remove_source(self._source)
            self._source.close()
        self._socket.close()
