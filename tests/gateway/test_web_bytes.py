"""Heads, bodies, frames and addresses: however the bytes are cut, they mean one thing or nothing."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.domain.doorways import Doorway, UnknownHost, Visit, read_what, safe_path
from gpuyard.domain.frames import (
    BINARY,
    CLOSE,
    MOST_BYTES,
    PING,
    TEXT,
    TOO_BIG,
    BadFrame,
    FrameReader,
    Message,
    apply_mask,
    write_frame,
)
from gpuyard.gateway.web.bodies import LAST_CHUNK, ChunkedBody, FixedBody, chunks
from gpuyard.gateway.web.heads import BadHead, Request, read_answer, read_request
from gpuyard.gateway.web.rewriting import Route, head_inside, head_outside

PIECES = st.lists(st.binary(min_size=1, max_size=300), max_size=6)
CUTS = st.lists(st.integers(0, 2000), max_size=12)
MASK = b"\x01\x02\x03\x04"
ROUTE = Route(b"http", b"127.0.0.1")


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@settings(deadline=None)
@given(PIECES, CUTS, st.binary(max_size=50))
def test_chunks_are_the_same_however_they_come(pieces: list[bytes], at: list[int], rest: bytes) -> None:
    body, seen = ChunkedBody(), b""
    after = b""
    for data in cut(b"".join([*chunks(pieces), LAST_CHUNK]) + rest, at):
        if body.ended:
            after += data
        else:
            seen += b"".join(body.take(data))
    assert (seen, body.ended) == (b"".join(pieces), True)
    assert body.rest + after == rest


@settings(deadline=None)
@given(st.binary(max_size=500), CUTS, st.binary(max_size=50))
def test_a_body_of_known_length_ends_where_it_was_told(data: bytes, at: list[int], rest: bytes) -> None:
    body, seen = FixedBody(len(data)), b""
    for piece in cut(data + rest, at):
        seen += b"".join(body.take(piece))
    assert (seen, body.rest, body.ended) == (data, rest, True)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING, CLOSE]), st.binary(max_size=125)), max_size=5), CUTS)
def test_frames_are_the_same_however_they_come(sent: list[tuple[int, bytes]], at: list[int]) -> None:
    reader, seen = FrameReader(masked=True), []
    data = b"".join(write_frame(kind, payload, MASK) for kind, payload in sent)
    for piece in cut(data, at):
        seen += reader.take(piece)
    assert seen == [Message(kind, payload) for kind, payload in sent]


def test_a_message_in_several_frames_is_one_and_may_have_a_ping_inside() -> None:
    reader = FrameReader(masked=False)
    data = b"\x02\x03abc" + b"\x89\x00" + b"\x00\x02de" + b"\x80\x01f"
    assert reader.take(data) == [Message(PING, b""), Message(BINARY, b"abcdef")]


@settings(deadline=None)
@given(st.lists(st.lists(st.binary(max_size=60), min_size=1, max_size=5), max_size=4), CUTS)
def test_messages_are_the_same_in_however_many_frames_they_come(sent: list[list[bytes]], at: list[int]) -> None:
    data, expected = bytearray(), list[Message]()
    for parts in sent:
        for number, part in enumerate(parts):
            kind, is_last = (0 if number else BINARY), number == len(parts) - 1
            data += bytes([kind | 0x80 * is_last, 0x80 | len(part)]) + MASK + apply_mask(part, MASK)
            data += write_frame(PING, part, MASK)  # may come between
        expected += [Message(PING, part) for part in parts[:-1]]
        expected += [Message(BINARY, b"".join(parts)), Message(PING, parts[-1])]
    reader, seen = FrameReader(masked=True), list[Message]()
    for piece in cut(bytes(data), at):
        seen += reader.take(piece)
    assert seen == expected


@pytest.mark.parametrize("each", [b"", b"a"])
def test_a_message_in_more_frames_than_anybody_needs_is_refused(each: bytes) -> None:
    """Empty ones never make it too long, and to put millions of them together would take hours."""
    frame = bytes([0, 0x80 | len(each)]) + MASK + each
    with pytest.raises(BadFrame) as refused:
        FrameReader(masked=True).take(b"\x02\x80" + MASK + frame * 1_000_000)
    assert refused.value.code == TOO_BIG


def test_a_message_that_is_too_long_in_all_is_refused_and_little_of_it_kept() -> None:
    frame = write_frame(BINARY, bytes(MOST_BYTES // 8), MASK)
    reader = FrameReader(masked=True)
    reader.take(b"\x02" + frame[1:])
    reader.take((b"\x00" + frame[1:]) * 7)
    with pytest.raises(BadFrame):
        reader.take(b"\x00" + frame[1:])


def test_half_a_million_frames_at_once_cost_what_half_a_million_cost() -> None:
    """If each moved all that follow it, this would take a quarter of an hour."""
    assert len(FrameReader(masked=True).take(write_frame(PING, b"ab", MASK) * 500_000)) == 500_000


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 200_000])
def test_frames_of_every_length(size: int) -> None:
    payload = bytes(size)
    for mask in (b"", b"abcd"):
        assert FrameReader(masked=bool(mask)).take(write_frame(BINARY, payload, mask)) == [Message(BINARY, payload)]


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadFrame):
        FrameReader(masked=True).take(data)


LINES = st.lists(st.binary(max_size=40), max_size=5)


@settings(deadline=None)
@given(st.binary(max_size=60), LINES)
def test_what_goes_inside_is_one_head_and_has_one_host_whatever_came(first: bytes, lines: list[bytes]) -> None:
    """The bytes of a head are anything; what we write from it must be read back as one request with the same target."""
    head = b"\r\n".join([b"GET /" + first + b" HTTP/1.1", b"Host: a.localhost", *lines])
    try:
        request = read_request(head)
    except BadHead:
        return
    written = head_inside(request, ROUTE)
    assert written.count(b"\r\n\r\n") == 1
    assert written.endswith(b"\r\n\r\n")
    again = read_request(written[:-4])
    assert (again.target, again.host, again.method) == (request.target, request.host, request.method)
    assert (again.length, again.chunked) == (request.length, request.chunked)


@settings(deadline=None)
@given(st.binary(max_size=30), LINES)
def test_what_goes_outside_is_one_head_whatever_the_program_said(phrase: bytes, lines: list[bytes]) -> None:
    try:
        answer = read_answer(b"\r\n".join([b"HTTP/1.1 200 " + phrase, *lines]))
    except BadHead:
        return
    written = head_outside(answer, ROUTE, [b"Content-Length: 0"])
    assert written.count(b"\r\n\r\n") == 1
    assert read_answer(written[:-4]).length == 0


def test_a_repeated_head_means_the_same_as_read_anew() -> None:
    head = b"GET /a HTTP/1.1\r\nHost: x.localhost\r\nCookie: a=1\r\nContent-Length: 3"
    first = read_request(head)
    again, anew = read_request(head.replace(b"/a", b"/b"), first), read_request(head.replace(b"/a", b"/b"))
    assert head_inside(again, ROUTE) == head_inside(anew, ROUTE)
    other = read_request(head.replace(b"a=1", b"a=2"), first)
    assert b"a=2" in head_inside(other, ROUTE)


def test_a_request_of_no_headers_can_be_drawn() -> None:
    assert not Request(1, b"").wants_page


# --- addresses ----------------------------------------------------------------------------------------------------

NAMES = Doorway("http", "localhost", 8471, hosts=frozenset({"127.0.0.1"}))
PATHS = Doorway("http", "localhost", 8471, paths=True)


def test_a_name_or_a_path_tells_what_is_visited() -> None:
    asked = NAMES.asked("Lab-W123456789.localhost:8471", "/x")
    assert (asked.visit, asked.base, asked.prefix) == (Visit("w123456789", "lab"), "localhost:8471", "")
    assert NAMES.asked("127.0.0.1:9", "/i/w123456789/lab/").visit is None
    asked = PATHS.asked("localhost", "/i/w123456789/p8080/x?y")
    assert (asked.visit, asked.prefix) == (Visit("w123456789", "p8080"), "/i/w123456789/p8080")
    assert PATHS.asked("localhost", "/i/w123456789/labx/").visit is None
    assert NAMES.root(Visit("w123456789", "lab"), "localhost:1") == "http://lab-w123456789.localhost:1"
    assert PATHS.root(Visit("w123456789", "lab"), "gpu:1") == "http://gpu:1/i/w123456789/lab"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_host_is_ours_or_unknown(host: str) -> None:
    try:
        asked = NAMES.asked(host, "/")
    except UnknownHost:
        return
    assert asked.base.partition(":")[0] in ("localhost", "127.0.0.1")


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_path_to_go_on_to_never_leads_to_another_host(text: str) -> None:
    path = safe_path(text)
    assert path.startswith("/")
    assert not path.startswith(("//", "/\\"))
    assert path.isascii()
    assert "\\" not in path
    assert not any(letter <= " " for letter in path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("lab", "lab"),
        ("8080", "p8080"),
        ("p1", "p1"),
        ("p0", None),
        ("p65536", None),
        ("x", None),
        ("", None),
        ("²", None),
    ],
)
def test_what_can_be_asked_for(text: str, what: str | None) -> None:
    assert read_what(text) == what
