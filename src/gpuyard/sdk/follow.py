"""Following a log live, through lost connections and server restarts, without a gap and without a repeat.

The position is a byte offset into the replica's log. Each piece says where it ends; after a break the next connection
begins exactly there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpuyard.sdk.errors import ServerUnreachable, YardApiError
from gpuyard.sdk.wire import UNTRUSTED, Wire, pause_before_retry

SILENCE_SECONDS = 45.0  # the server says something at least every 15 s, be it only a comment
RECONNECT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class LogSource:
    """Which log: the workload, and of which attempt and replica (None: the first)."""

    workload: str
    attempt: int
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Some text of a log. `dropped` is true for a middle that was not kept: then there is no text, only its place."""

    text: str
    start: int
    end: int
    dropped: bool = False


def follow_log(
    wire: Wire,
    source: LogSource,
    *,
    offset: int | None = None,
    tail: int | None = None,
    patience_seconds: float = RECONNECT_SECONDS,
) -> Iterator[LogPiece]:
    """Yield the log as it grows, until nothing more will come."""
    position = offset
    tries, heard_at = 0, time.monotonic()
    while True:
        try:
            for event, data in _connect(wire, source, position, tail):
                tries, heard_at = 0, time.monotonic()
                if event == "end":
                    return
                piece = _piece(event, data)
                if piece is not None and (position is None or piece.end > position):
                    position = piece.end
                    yield piece
        except YardApiError as error:
            if not _passing(error) or time.monotonic() - heard_at > patience_seconds:
                raise
            if tries == 2 and wire.say_waiting is not None:
                wire.say_waiting(error)
        time.sleep(pause_before_retry(tries))
        tries += 1
        wire.look_again()


def _connect(wire: Wire, source: LogSource, position: int | None, tail: int | None) -> Iterator[tuple[str, Any]]:
    params = {
        "attempt": source.attempt,
        "replica": source.replica,
        "offset": position if position is not None else (None if tail is not None else 0),
        "tail": tail if position is None else None,
    }
    path = f"/api/v1/workloads/{source.workload}/logs/follow"
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
    with wire.stream("GET", path, params=params, headers=headers, silence_seconds=SILENCE_SECONDS) as response:
        yield from read_events(response.iter_bytes())


def _passing(error: YardApiError) -> bool:
    if isinstance(error, ServerUnreachable):
        return error.code != UNTRUSTED
    return error.status in (429, 502, 503, 504)


def _piece(event: str, data: Any) -> LogPiece | None:
    if event == "log":
        return LogPiece(data["text"], data["from"], data["to"])
    if event == "gap":
        return LogPiece("", data["from"], data["to"], dropped=True)
    return None


def read_events(chunks: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """Server-sent events: (name, data read as JSON). An event cut off by the end of the stream is not told."""
    name, data = "message", list[bytes]()
    for line in _lines(chunks):
        if line:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                name = value.decode("utf-8", "replace")
            elif field == b"data":
                data.append(value)
            continue
        if data or name != "message":
            yield name, json.loads(b"\n".join(data) or b"null")
        name, data = "message", []


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut at line feeds only: other line ends inside the text (U+2028 and the like) are the log's own."""
    pending: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for other in others:
            yield b"".join(pending).removesuffix(b"\r")
            pending = [other]
