"""Heads of requests and answers, read strictly and written anew. Nothing here touches a connection.

Two programs that read the same bytes differently are how requests get smuggled past a proxy. So whatever is not plainly
allowed is refused, and what is sent on is written by us from what was understood, never copied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD_BYTES = 64 * 1024
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_NAME = re.compile(_TOKEN + rb"\Z")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*\Z")
_REQUEST = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])\Z")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?\Z")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)\Z", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,16}\Z")

Field = tuple[bytes, bytes, bytes]  # the name in small letters, as it was written, and the value


class BadHead(ValueError):
    """What came cannot be meant, or could be meant in two ways."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(slots=True)
class Head:
    """What requests and answers have in common."""

    minor: int  # HTTP/1.0 or HTTP/1.1
    fields: list[Field]
    length: int | None = None
    chunked: bool = False

    def all(self, name: bytes) -> list[bytes]:
        return [value for known, _, value in self.fields if known == name]

    def get(self, name: bytes) -> bytes:
        """The first of that name, or nothing."""
        for known, _, value in self.fields:
            if known == name:
                return value
        return b""

    def words(self, name: bytes) -> set[bytes]:
        """A list with commas, in small letters: `Connection: keep-alive, Upgrade`."""
        return {word.strip(b" \t").lower() for value in self.all(name) for word in value.split(b",")} - {b""}

    @property
    def stays_open(self) -> bool:
        return self.minor == 1 and b"close" not in self.words(b"connection")


@dataclass(slots=True)
class Request(Head):
    method: bytes = b"GET"
    target: bytes = b"/"
    host: bytes = b""

    @property
    def wants_websocket(self) -> bool:
        return b"upgrade" in self.words(b"connection") and self.get(b"upgrade").lower() == b"websocket"

    @property
    def is_safe(self) -> bool:
        return self.method in (b"GET", b"HEAD", b"OPTIONS")

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    @property
    def wants_page(self) -> bool:
        """A person looks at the answer."""
        return self.method in (b"GET", b"HEAD") and b"text/html" in self.get(b"accept")


@dataclass(slots=True)
class Answer(Head):
    status: int = 200
    phrase: bytes = b""


def read_request(head: bytes) -> Request:
    """`head` is everything before the empty line."""
    first, *lines = head.split(b"\r\n")
    match = _REQUEST.match(first)
    if match is None:
        raise BadHead("the first line is not one of HTTP/1.1")
    request = Request(int(match.group(3)), _fields(lines), method=match.group(1), target=match.group(2))
    _read_framing(request)
    _read_host(request)
    if request.method in (b"CONNECT", b"TRACE"):
        raise BadHead("this method is not for here", 405)
    if b"upgrade" in request.words(b"connection") and request.has_body:
        raise BadHead("an upgrade has no body")
    return request


def read_answer(head: bytes) -> Answer:
    first, *lines = head.split(b"\r\n")
    match = _STATUS.match(first)
    if match is None:
        raise BadHead("the first line is not one of HTTP/1.1", 502)
    minor, status, phrase = int(match.group(1)), int(match.group(2)), match.group(3) or b""
    answer = Answer(minor, _fields(lines), status=status, phrase=phrase)
    _read_framing(answer)
    return answer


def _fields(lines: list[bytes]) -> list[Field]:
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        # A line that begins with a blank goes on with the one before in old HTTP, and is refused here by its name.
        if not colon or not _NAME.match(name) or not _VALUE.match(value):
            raise BadHead("a header is not as it should be")
        fields.append((name.lower(), name, value.strip(b" \t")))
    return fields


def _read_framing(head: Head) -> None:
    """Where the body ends must be told once and in one way."""
    codings, lengths = head.all(b"transfer-encoding"), head.all(b"content-length")
    if codings:
        if lengths or head.minor == 0:
            raise BadHead("the length of the body is told in two ways")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise BadHead("this transfer coding is not known here", 501)
        head.chunked = True
    elif lengths:
        if len(lengths) > 1 or not _LENGTH.match(lengths[0]):
            raise BadHead("the length of the body is not a number, or told twice")
        head.length = int(lengths[0])


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


def write_head(first: bytes, fields: list[tuple[bytes, bytes]]) -> bytes:
    lines = [first, *(name + b": " + value for name, value in fields), b"", b""]
    return b"\r\n".join(lines)
