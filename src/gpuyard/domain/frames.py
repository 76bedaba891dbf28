"""WebSocket frames (RFC 6455), as both ends of a terminal write and read them. Pure: bytes in, bytes out."""

from __future__ import annotations

from dataclasses import dataclass

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTINUED = 0
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MOST_BYTES = 1 << 20
MOST_FRAMES = 1024  # of one message; empty ones never make it too long otherwise
NORMAL, GOING_AWAY, BAD, NOT_ALLOWED, TOO_BIG, TRY_AGAIN = 1000, 1001, 1002, 1008, 1009, 1013


class BadFrame(ValueError):
    """What came is no frame that may come here. `code` is what to close with."""

    def __init__(self, problem: str, code: int = BAD) -> None:
        super().__init__(problem)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    payload: bytes


def write_frame(kind: int, payload: bytes, mask: bytes = b"") -> bytes:
    """One whole message. A client gives four random bytes as mask, a server none."""
    size, masked = len(payload), 0x80 if mask else 0
    if size < 126:
        head = bytes((0x80 | kind, masked | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, masked | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, masked | 127)) + size.to_bytes(8, "big")
    return head + mask + (apply_mask(payload, mask) if mask else payload)


def write_close(code: int, why: str = "", mask: bytes = b"") -> bytes:
    return write_frame(CLOSE, code.to_bytes(2, "big") + why.encode()[:120], mask)


def close_code(payload: bytes) -> int:
    return int.from_bytes(payload[:2], "big") if len(payload) >= 2 else NORMAL


def apply_mask(payload: bytes, mask: bytes) -> bytes:
    """As one large number: by far the fastest way without a library."""
    size = len(payload)
    if not size:
        return b""
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(key, "little")).to_bytes(size, "little")


class FrameReader:
    """Puts together whole messages from bytes as they come. Whoever sends them decides how they are cut, so what a byte
    costs must not depend on it: each is looked at once, and moved a bounded number of times."""

    def __init__(self, *, masked: bool, most_bytes: int = MOST_BYTES) -> None:
        self._masked = masked
        self._most = most_bytes
        self._buffer = bytearray()
        self._kind = 0
        self._parts = bytearray()
        self._frames = 0  # that the present message has so far

    def take(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages: list[Message] = []
        at = 0
        while (frame := self._frame_at(at)) is not None:
            at, final, kind, payload = frame
            if kind >= CLOSE:
                messages.append(Message(kind, payload))
            elif (whole := self._gather(final, kind, payload)) is not None:
                messages.append(whole)
        del self._buffer[:at]
        return messages

    def _gather(self, final: bool, kind: int, payload: bytes) -> Message | None:
        if (kind == _CONTINUED) != bool(self._kind):
            raise BadFrame("a message begins inside another")
        if final and not self._kind:
            return Message(kind, payload)
        self._kind = self._kind or kind
        self._frames += 1
        if self._frames > MOST_FRAMES or len(self._parts) + len(payload) > self._most:
            raise BadFrame("a message is too long", TOO_BIG)
        self._parts += payload
        if not final:
            return None
        whole = Message(self._kind, bytes(self._parts))
        self._kind, self._frames, self._parts = 0, 0, bytearray()
        return whole

    def _frame_at(self, begin: int) -> tuple[int, bool, int, bytes] | None:
        """Where the frame that begins there ends, and what it is; None until more has come."""
        buffer, at = self._buffer, begin + 2
        if len(buffer) < at:
            return None
        first, second = buffer[begin], buffer[begin + 1]
        kind, size = first & 0x0F, second & 0x7F
        if first & 0x70 or kind not in (_CONTINUED, TEXT, BINARY, CLOSE, PING, PONG):
            raise BadFrame("a frame of an unknown kind")
        if bool(second & 0x80) != self._masked or (kind >= CLOSE and (size > 125 or not first & 0x80)):
            raise BadFrame("a frame is not as it should be")
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < at + width:
                return None
            size, at = int.from_bytes(buffer[at : at + width], "big"), at + width
        if size > self._most:
            raise BadFrame("a frame is too long", TOO_BIG)
        mask, at = (bytes(buffer[at : at + 4]), at + 4) if self._masked else (b"", at)
        if len(buffer) < at + size:
            return None
        payload = bytes(buffer[at : at + size])
        return at + size, bool(first & 0x80), kind, apply_mask(payload, mask) if self._masked else payload
