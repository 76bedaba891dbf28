"""One client connection: requests one after the other, each handed to whoever answers it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from gpuyard.domain.doorways import LAB, OWN, TERMINAL, Asked, UnknownHost, Visit, safe_path
from gpuyard.gateway.web import answers
from gpuyard.gateway.web.answers import OwnAnswer
from gpuyard.gateway.web.exchange import Exchange
from gpuyard.gateway.web.gate import Permit
from gpuyard.gateway.web.heads import HEAD_BYTES, BadHead, Request, read_request
from gpuyard.gateway.web.rewriting import Route

if TYPE_CHECKING:
    from gpuyard.gateway.web.server import Web

LATER_BYTES = 64 * 1024  # of further requests, sent before the first is answered
LINGER_SECONDS = 2.0
_OWN = OWN.encode()
_UNREADABLE = Request(1, b"")


class Talk(Protocol):
    """Whoever answers the present request. `stays`: open as long as both sides want, however quiet."""

    @property
    def stays(self) -> bool: ...
    @property
    def permit(self) -> Permit | None: ...
    def from_client(self, data: bytes) -> None: ...
    def client_gone(self) -> None: ...
    def client_full(self) -> None: ...
    def client_ready(self) -> None: ...
    def end(self) -> None: ...


class Connection(asyncio.Protocol):
    __slots__ = (
        "_buffer",
        "_held",
        "_is_new",
        "_last",
        "_permit",
        "_route",
        "_through",
        "counted_as",
        "is_gone",
        "is_made",
        "known_as",
        "lingers_until",
        "peer",
        "since",
        "talk",
        "transport",
        "web",
    )
    transport: asyncio.Transport

    def __init__(self, web: Web, counted_as: str | None = None) -> None:
        """`counted_as`: the address under which it is counted among the strangers already."""
        self.web = web
        self.talk: Talk | None = None
        self.counted_as = counted_as
        self.known_as = ""  # the person whose it is, once shown
        self.is_made = self.is_gone = False
        self.peer = ""
        self.since = web.now  # when something last happened, or the present head began
        self.lingers_until: float | None = None
        self._buffer = b""
        self._held = False
        self._is_new = True
        self._last: Request | None = None
        self._route: tuple[Asked, Route] | None = None
        self._permit: tuple[list[bytes], Permit] | None = None
        self._through = ""  # the proxy that speaks for its visitors

    @property
    def is_speaking(self) -> bool:
        """A head has begun, or should have: the first one is due at once."""
        return self._is_new or bool(self._buffer)

    # --- from the event loop ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        self.is_made = True
        if self.peer in self.web.proxies:
            self._through = self.peer
        if not self.web.welcome(self):
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.lingers_until is not None:
            return
        if self.talk is not None:
            self.since = self.web.now
            self.talk.from_client(data)
            return
        if not self._buffer:
            self.since = self.web.now
        self._buffer = self._buffer + data if self._buffer else data
        self._next_request()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self.web.gone(self)
        talk, self.talk = self.talk, None
        if talk is not None:
            talk.client_gone()

    def pause_writing(self) -> None:
        if self.talk is not None:
            self.talk.client_full()

    def resume_writing(self) -> None:
        self.since = self.web.now
        if self.talk is not None:
            self.talk.client_ready()

    # --- for those who answer ---------------------------------------------------------------------------------------

    def route_to(self, asked: Asked, visit: Visit) -> Route:
        if self._route is None or self._route[0] is not asked:
            prefix = asked.prefix.encode()
            strip = bool(prefix) and visit.what != LAB  # JupyterLab is told its prefix, nobody else knows it
            self._route = (asked, Route(self.web.scheme, self.peer.encode(), prefix, strip))
        return self._route[1]

    def recent(self, request: Request, visit: Visit) -> Permit | None:
        """What was allowed a moment ago to the same cookies at the same place: most often on this very connection."""
        known, cookies = self._permit, request.all(b"cookie")
        if known is not None and known[0] == cookies and known[1].visit is visit and self.web.gate.is_fresh(known[1]):
            return known[1]
        return self.web.gate.remembered(self.web.proof_of(request, self.peer), visit)

    def remember(self, request: Request, permit: Permit) -> None:
        self._permit = (request.all(b"cookie"), permit)
        if not self.known_as:
            self.web.know(self, permit.actor.name)

    def hold(self) -> None:
        if not self._held and not self.is_gone:
            self._held = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        if self._held and not self.is_gone:
            self._held = False
            self.transport.resume_reading()

    def keep_for_later(self, data: bytes) -> None:
        """The beginning of the next request."""
        self._buffer += data
        if len(self._buffer) > LATER_BYTES:
            self.hold()

    def answer(self, answer: OwnAnswer, request: Request, *, body_read: bool = True) -> None:
        keep = request.stays_open and body_read and not self.web.stopping and not request.wants_websocket
        if not self.is_gone:
            told = answer.to_bytes(
                with_body=request.method != b"HEAD",
                stays_open=keep,
                https_for_good=self.web.is_https_for_good,
                shown_by=self.web.framing.ancestors,
            )
            self.transport.write(told)
        self.finished(keep, unread=not body_read)

    def finished(self, keep: bool, *, unread: bool = False) -> None:
        """The answer is complete: on to the next request, or to the end."""
        self.talk = None
        self.since = self.web.now
        if self.is_gone:
            return
        if not keep or self.web.stopping:
            self._linger() if unread else self.close()
            return
        self.go_on()
        if self._buffer:
            self._next_request()

    def close(self, *, cut: bool = False) -> None:
        if not self.is_gone:
            if cut:
                self.transport.abort()
            else:
                self.transport.close()

    def _linger(self) -> None:
        """Something is still being sent to us. Closed at once, the kernel would take our answer back with it."""
        self.lingers_until = self.web.now + LINGER_SECONDS
        self.go_on()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    # --- the next request -------------------------------------------------------------------------------------------

    def _next_request(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES:
            if len(self._buffer) > HEAD_BYTES:
                self._refuse(BadHead("the head of the request is too large", 431))
            return
        head, rest = self._buffer[:end], self._buffer[end + 4 :]
        self._buffer = b""
        try:
            request = self._last = read_request(head, self._last)
            asked = self.web.asked(request)
            if self._through:
                self._take_visitor(request)
        except BadHead as problem:
            self._refuse(problem)
            return
        except UnknownHost:
            self._refuse(BadHead("this host is not served here", 421))
            return
        self.since, self._is_new = self.web.now, False
        self._begin(request, asked, rest)

    def _take_visitor(self, request: Request) -> None:
        """Through a proxy every request may be of another visitor."""
        peer = self.web.proxies.visitor(self._through, request.all(b"x-forwarded-for"))
        if peer != self.peer:
            self.peer, self._route, self._permit = peer, None, None

    def _begin(self, request: Request, asked: Asked, rest: bytes) -> None:
        visit, path = asked.visit, request.target[len(asked.prefix) :]
        if visit is None or visit.what == TERMINAL or path.startswith(_OWN):
            self.web.answer_ourselves(self, request, asked, path.decode("latin-1"), rest)
        elif not path.startswith(b"/"):
            if rest or request.has_body:
                self._refuse(BadHead("this address is not served here", 404))
            else:
                self.answer(answers.redirect(asked.prefix + safe_path("/" + path.decode("latin-1"))), request)
        else:
            talk = Exchange(self, request, asked, visit)
            self.talk = talk
            talk.begin(rest)

    def _refuse(self, problem: BadHead) -> None:
        """Nothing that follows on this connection can be trusted to begin where it seems to."""
        self._buffer = b""
        answer = answers.message(_UNREADABLE, problem.status, "refused.bad_request", str(problem))
        self.transport.write(answer.to_bytes(with_body=True, stays_open=False))
        self._linger()
