"""Where a body ends. Each reader takes bytes as they come and gives back what is body and what follows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from gpuyard.gateway.web.heads import Answer, BadHead, Request

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\Z")
LINE_BYTES = 4096  # of a chunk's first line
TRAILER_BYTES = 16 * 1024
Piece = bytes | memoryview


class Body(Protocol):
    """`rest` holds what came after the end, once `ended`."""

    ended: bool
    rest: bytes

    def take(self, data: bytes) -> Sequence[Piece]: ...


class NoBody:
    __slots__ = ("ended", "rest")

    def __init__(self) -> None:
        self.ended, self.rest = True, b""

    def take(self, data: bytes) -> Sequence[Piece]:
        self.rest += data
        return ()


class FixedBody:
    """So many bytes, as told before."""

    __slots__ = ("_left", "ended", "rest")

    def __init__(self, length: int) -> None:
        self._left, self.ended, self.rest = length, length == 0, b""

    def take(self, data: bytes) -> Sequence[Piece]:
        if len(data) <= self._left:
            self._left -= len(data)
            self.ended = self._left == 0
            return (data,) if data else ()
        mine, self.rest = data[: self._left], self.rest + data[self._left :]
        self._left, self.ended = 0, True
        return (mine,) if mine else ()


class EndlessBody:
    """Everything until the connection closes."""

    __slots__ = ("ended", "rest")

    def __init__(self) -> None:
        self.ended, self.rest = False, b""

    def take(self, data: bytes) -> Sequence[Piece]:
        return (data,)


class ChunkedBody:
    """Pieces with their lengths before them; what follows the last one (trailers) is read and left out."""

    __slots__ = ("_left", "_line", "_state", "_trailer", "ended", "rest")
    _SIZE, _DATA, _AFTER, _TRAILER = range(4)

    def __init__(self) -> None:
        self._state, self._left, self._trailer = self._SIZE, 0, 0
        self._line = b""
        self.ended, self.rest = False, b""

    def take(self, data: bytes) -> Sequence[Piece]:
        pieces: list[Piece] = []
        view, at = memoryview(data), 0
        while at < len(data) and not self.ended:
            if self._state == self._DATA:
                piece = view[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left == 0:
                    self._state = self._AFTER
            else:
                at = self._take_line(data, at)
        if self.ended:
            self.rest += data[at:]
        return pieces

    def _take_line(self, data: bytes, at: int) -> int:
        """Gather one line, which may come in several pieces, and act upon it. Returns where to go on."""
        end = data.find(b"\n", at)
        piece = data[at:] if end < 0 else data[at : end + 1]
        self._line += piece
        if len(self._line) > LINE_BYTES:
            raise BadHead("a line between the chunks is too long")
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise BadHead("a line between the chunks does not end as it should")
            self._act(line[:-2])
        return at + len(piece)

    def _act(self, line: bytes) -> None:
        if self._state == self._AFTER:
            if line:
                raise BadHead("a chunk is longer than told")
            self._state = self._SIZE
        elif self._state == self._SIZE:
            match = _CHUNK.match(line)
            if match is None:
                raise BadHead("the length of a chunk is not a number")
            self._left = int(match.group(1), 16)
            self._state = self._DATA if self._left else self._TRAILER
        elif line:
            self._trailer += len(line)
            if self._trailer > TRAILER_BYTES:
                raise BadHead("what follows the last chunk is too long")
        else:
            self.ended = True


def body_of_request(request: Request) -> Body:
    if request.chunked:
        return ChunkedBody()
    return FixedBody(request.length) if request.length else NoBody()


def body_of_answer(answer: Answer, method: bytes) -> Body:
    if method == b"HEAD" or answer.status in (204, 304) or answer.status < 200:
        return NoBody()
    if answer.chunked:
        return ChunkedBody()
    return EndlessBody() if answer.length is None else FixedBody(answer.length)


def chunks(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces as chunks of ours."""
    lines: list[Piece] = []
    for piece in pieces:
        lines += (b"%x\r\n" % len(piece), piece, b"\r\n")
    return lines


LAST_CHUNK = b"0\r\n\r\n"
