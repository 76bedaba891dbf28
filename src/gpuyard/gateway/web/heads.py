"""Heads of requests and answers, read strictly. Nothing here touches a connection.

Two programs that read the same bytes differently are how requests get smuggled past a proxy. So whatever is not plainly
allowed is refused, and of what is sent on only single lines that were understood are taken over, never the whole.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gpuyard.gateway.web.names import KNOWN, Name, name_of

HEAD_BYTES = 64 * 1024
_ALLOWED = bytes((9, 10, 13, *range(0x20, 0x7F), *range(0x80, 0x100)))
_REQUEST = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])\Z")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?\Z")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)\Z", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,16}\Z")
_NOTHING: list[bytes] = []
NO_WORDS: frozenset[bytes] = frozenset()


@lru_cache(maxsize=256)
def words(text: bytes) -> frozenset[bytes]:
    """A list with commas, in small letters: `keep-alive, Upgrade`."""
    return frozenset(word.strip(b" \t").lower() for word in text.split(b",")) - {b""}


class BadHead(ValueError):
    """What came cannot be meant, or could be meant in two ways."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


class Head:
    """What requests and answers have in common."""

    __slots__ = ("_read", "chunked", "connection", "fields", "length", "minor")

    def __init__(self, minor: int, lines: list[bytes]) -> None:
        self.minor = minor  # HTTP/1.0 or HTTP/1.1
        self.fields: list[tuple[Name, bytes]] = []  # each with its whole line
        self._read: dict[bytes, list[bytes]] = {}
        for line in lines:
            text, colon, value = line.partition(b":")
            name = KNOWN.get(text) or name_of(text)
            # A line that begins with a blank goes on with the one before in old HTTP, and is refused here by its name.
            if name is None or not colon:
                raise BadHead("a header is not as it should be")
            self.fields.append((name, line))
            if name.is_read:
                if name.small in self._read:
                    self._read[name.small].append(value.strip(b" \t"))
                else:
                    self._read[name.small] = [value.strip(b" \t")]
        self.length: int | None = None
        self.chunked = False
        self._read_framing()
        said = self._read.get(b"connection")
        self.connection = words(b",".join(said)) if said else NO_WORDS

    def all(self, name: bytes) -> list[bytes]:
        """Of those that matter to us: see `names`."""
        return self._read.get(name, _NOTHING)

    def get(self, name: bytes) -> bytes:
        """The first of that name, or nothing."""
        found = self._read.get(name)
        return found[0] if found else b""

    @property
    def stays_open(self) -> bool:
        return self.minor == 1 and b"close" not in self.connection

    def _read_framing(self) -> None:
        """Where the body ends must be told once and in one way."""
        codings, lengths = self._read.get(b"transfer-encoding"), self._read.get(b"content-length")
        if codings:
            if lengths or self.minor == 0:
                raise BadHead("the length of the body is told in two ways")
            if len(codings) > 1 or codings[0].lower() != b"chunked":
                raise BadHead("this transfer coding is not known here", 501)
            self.chunked = True
        elif lengths:
            if len(lengths) > 1 or not _LENGTH.match(lengths[0]):
                raise BadHead("the length of the body is not a number, or told twice")
            self.length = int(lengths[0])


class Request(Head):
    __slots__ = ("block", "host", "is_safe", "method", "target", "wants_websocket", "written")

    def __init__(self, minor: int, block: bytes, method: bytes = b"GET", target: bytes = b"/") -> None:
        super().__init__(minor, block.split(b"\r\n") if block else [])
        self.block = block
        self.written: tuple[object, bytes] | None = None  # for which way, and how, it was last sent on
        self.wants_websocket = b"upgrade" in self.connection and self.get(b"upgrade").lower() == b"websocket"
        self._read_first_line(method, target)

    def _read_first_line(self, method: bytes, target: bytes) -> None:
        self.method, self.target = method, target
        self.host = b""
        self.is_safe = method in (b"GET", b"HEAD", b"OPTIONS")

    def again(self, method: bytes, target: bytes) -> Request:
        """Another request with the very same headers: they need not be read anew."""
        request = Request.__new__(Request)
        request.minor, request.block, request.fields, request._read = self.minor, self.block, self.fields, self._read
        request.length, request.chunked, request.connection = self.length, self.chunked, self.connection
        request.wants_websocket, request.written = self.wants_websocket, self.written
        request._read_first_line(method, target)
        return request

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    @property
    def wants_page(self) -> bool:
        """A person looks at the answer."""
        return self.method in (b"GET", b"HEAD") and b"text/html" in self.get(b"accept")


class Answer(Head):
    __slots__ = ("phrase", "status")

    def __init__(self, minor: int, lines: list[bytes], status: int, phrase: bytes) -> None:
        super().__init__(minor, lines)
        self.status, self.phrase = status, phrase


def read_request(head: bytes, before: Request | None = None) -> Request:
    """`head` is everything before the empty line; `before` the last one on the same connection, most often alike."""
    first, _, block = head.partition(b"\r\n")
    match = _REQUEST.match(first)
    if match is None:
        raise BadHead("the first line is not one of HTTP/1.1")
    method, target, minor = match.group(1), match.group(2), int(match.group(3))
    if before is not None and before.block == block and before.minor == minor:
        request = before.again(method, target)
    else:
        if not _is_clean(block):
            raise BadHead("there are characters in it that may not be there")
        request = Request(minor, block, method, target)
    _read_host(request)
    if request.method in (b"CONNECT", b"TRACE"):
        raise BadHead("this method is not for here", 405)
    if request.has_body and b"upgrade" in request.connection:
        raise BadHead("an upgrade has no body")
    return request


def read_answer(head: bytes) -> Answer:
    if not _is_clean(head):
        raise BadHead("there are characters in it that may not be there", 502)
    first, *lines = head.split(b"\r\n")
    match = _STATUS.match(first)
    if match is None:
        raise BadHead("the first line is not one of HTTP/1.1", 502)
    return Answer(int(match.group(1)), lines, int(match.group(2)), match.group(3) or b"")


def _is_clean(head: bytes) -> bool:
    """No control characters, and the two that end a line only together."""
    return not head.translate(None, _ALLOWED) and head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r")


def _read_host(request: Request) -> None:
    hosts = request.all(b"host")
    if len(hosts) != 1:
        raise BadHead("there must be one Host")
    request.host = hosts[0]
    if request.target.startswith(b"/"):
        return
    match = _ABSOLUTE.match(request.target)
    if match is None or match.group(1).lower() != request.host.lower():
        raise BadHead("this address is not served here")
    rest = match.group(2)
    request.target = rest if rest.startswith(b"/") else b"/" + rest


def write_head(first: bytes, lines: list[bytes]) -> bytes:
    return b"\r\n".join([first, *lines, b"", b""])
