"""One request on its way inside, and the answer on its way back: both stream, neither is ever held whole."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuyard.domain import errors
from gpuyard.domain.doorways import Asked, Visit
from gpuyard.gateway.web import answers, origins
from gpuyard.gateway.web.answers import OwnAnswer
from gpuyard.gateway.web.bodies import (
    LAST_CHUNK,
    Body,
    ChunkedBody,
    EndlessBody,
    Piece,
    body_of_answer,
    body_of_request,
    chunks,
)
from gpuyard.gateway.web.framing import is_framed
from gpuyard.gateway.web.gate import Permit, Target
from gpuyard.gateway.web.heads import HEAD_BYTES, Answer, BadHead, Request, read_answer
from gpuyard.gateway.web.reaching import NotThere
from gpuyard.gateway.web.rewriting import UPGRADE, head_inside, head_outside
from gpuyard.gateway.web.targets import target_of
from gpuyard.gateway.web.texts import text
from gpuyard.gateway.web.upstream import Upstream

if TYPE_CHECKING:
    from gpuyard.gateway.web.connection import Connection

EARLY_BYTES = 64 * 1024  # of a body, taken in before it is known where to send it
ANSWER_HEAD_BYTES = 4 * HEAD_BYTES
_log = logging.getLogger(__name__)


class Exchange:
    """From the head of a request until the last byte of its answer, or until a WebSocket closes."""

    __slots__ = (
        "_answer_body",
        "_counted",
        "_early",
        "_head",
        "_keep",
        "_task",
        "asked",
        "body",
        "client",
        "permit",
        "request",
        "route",
        "stays",
        "target",
        "upstream",
        "visit",
        "web",
    )

    def __init__(self, client: Connection, request: Request, asked: Asked, visit: Visit) -> None:
        self.client, self.web, self.request = client, client.web, request
        self.asked, self.visit = asked, visit
        self.route = client.route_to(asked, visit)
        self.body: Body = body_of_request(request)
        self.permit: Permit | None = None
        self.target: Target | None = None
        self.upstream: Upstream | None = None
        self.stays = False  # a WebSocket: open as long as both sides want
        self._early = b""
        self._head = b""
        self._answer_body: Body | None = None
        self._keep = request.stays_open
        self._counted = False
        self._task: asyncio.Task[None] | None = None

    # --- in ---------------------------------------------------------------------------------------------------------

    def begin(self, rest: bytes) -> None:
        self._early = rest
        if not origins.is_own(self.request, self.web.scheme):
            self._refuse_in_words(403, "bad.origin")
            return
        permit = self.client.recent(self.request, self.visit)
        if permit is not None:
            self._enter(permit)
        else:
            self._task = self.web.spawn(self._ask(), self._broken)

    async def _ask(self) -> None:
        proof = self.web.proof_of(self.request, self.client.peer)
        try:
            permit = await self.web.gate.authorise(proof, self.visit)
        except errors.LoginNeeded as error:
            self._answer(self.web.pages.to_login(self.request, self.asked, self.visit, error))
            return
        except errors.YardError as error:
            self._answer(self.web.pages.refused(self.request, error))
            return
        self._enter(permit)

    def _enter(self, permit: Permit) -> None:
        self.permit = permit
        self.client.remember(self.request, permit)
        if not self.web.crowd.come(permit.actor.name):
            self._refuse_in_words(429, "too.many")
            return
        self._counted = True
        try:
            self.target = permit.target or target_of(permit)
        except errors.NotFound as error:
            self._answer(answers.refusal(self.request, error))
            return
        permit.target = self.target
        if not self.request.is_safe:
            self.web.context.activity.used(self.visit.workload)
        upstream = self.web.pool.take(self.target)
        if upstream is not None:
            self._send(upstream)
        else:
            self._task = self.web.spawn(self._reach(), self._broken)

    async def _reach(self) -> None:
        assert self.target is not None
        try:
            sock = await self._connect()
        except NotThere as missing:
            self._answer(missing.answer(self.request))
            return
        except errors.YardError as error:
            self._answer(answers.refusal(self.request, error))
            return
        self._send(await self.web.pool.adopt(sock, self.target))

    async def _connect(self) -> socket.socket:
        """What was remembered may lead to a replica that is gone: whoever finds its door closed looks anew, once."""
        assert self.permit is not None
        assert self.target is not None
        try:
            return await self.web.reaching.connect(self.permit, self.target, self.asked.prefix)
        except errors.YardError:
            permit = await self.web.gate.ask_anew(self.permit.proof, self.visit)
            target = target_of(permit)
            if target == self.target:
                raise
        permit.target = target
        self.permit, self.target = permit, target
        self.client.remember(self.request, permit)
        return await self.web.reaching.connect(permit, target, self.asked.prefix)

    def _send(self, upstream: Upstream) -> None:
        if self.client.is_gone:
            upstream.close()
            return
        self.upstream, upstream.listener = upstream, self
        upstream.transport.write(head_inside(self.request, self.route))
        if self.request.wants_websocket:  # what the client says before it is answered is kept
            return
        if self._early:
            early, self._early = self._early, b""
            self._pass_body(early)
        self.client.go_on()

    def from_client(self, data: bytes) -> None:
        if self.stays:
            assert self.upstream is not None
            self.upstream.transport.write(data)
            self.web.context.activity.used(self.visit.workload)
        elif self.upstream is None or self.request.wants_websocket:
            self._early += data
            if len(self._early) > EARLY_BYTES:
                self.client.hold()
        else:
            self._pass_body(data)

    def _pass_body(self, data: bytes) -> None:
        assert self.upstream is not None
        if self.body.ended:
            self.client.keep_for_later(data)
            return
        try:
            pieces = self.body.take(data)
        except BadHead as problem:
            self._fail(answers.message(self.request, 400, "refused.bad_value", str(problem)))
            return
        self._write_inside(pieces)
        if self.body.ended and self.body.rest:
            self.client.keep_for_later(self.body.rest)
            self.body.rest = b""

    def _write_inside(self, pieces: Sequence[Piece]) -> None:
        assert self.upstream is not None
        if self.request.chunked:
            pieces = [*chunks(pieces), LAST_CHUNK] if self.body.ended else chunks(pieces)
        if pieces:
            self.upstream.transport.writelines(pieces)

    # --- and back ---------------------------------------------------------------------------------------------------

    def from_inside(self, data: bytes) -> None:
        if self.stays:
            self.client.transport.write(data)
        elif self._answer_body is not None:
            self._pass_answer(data)
        else:
            self._head = self._head + data if self._head else data
            self._read_answer()

    def _read_answer(self) -> None:
        while self.upstream is not None and self._answer_body is None and not self.stays:
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                if len(self._head) > ANSWER_HEAD_BYTES:
                    self._refuse_in_words(502, "bad.answer")
                return
            head, self._head = self._head[:end], self._head[end + 4 :]
            try:
                answer = read_answer(head)
            except BadHead:
                self._refuse_in_words(502, "bad.answer")
                return
            if answer.status == 101:
                self._change(answer)
            elif answer.status >= 200:
                self._begin_answer(answer)
            elif self.request.minor == 1:
                self.client.transport.write(head_outside(answer, self.route, ()))

    def _change(self, answer: Answer) -> None:
        """From here on it is a pipe: what is in it concerns only the two ends."""
        if not self.request.wants_websocket:
            self._refuse_in_words(502, "bad.answer")
            return
        assert self.upstream is not None
        self.stays = True
        self.client.transport.write(head_outside(answer, self.route, UPGRADE) + self._head)
        early, self._early, self._head = self._early, b"", b""
        if early:
            self.upstream.transport.write(early)
        self.client.go_on()

    def _begin_answer(self, answer: Answer) -> None:
        body = body_of_answer(answer, self.request.method)
        framing: list[bytes] = []
        if isinstance(body, ChunkedBody) and self.request.minor == 1:
            framing.append(b"Transfer-Encoding: chunked")
        elif isinstance(body, EndlessBody | ChunkedBody):
            self._keep = False
        elif answer.length is not None and answer.status != 204:
            framing.append(b"Content-Length: %d" % answer.length)
        self._keep = self._keep and not self.web.stopping and not self.request.wants_websocket
        if not self._keep:
            framing.append(b"Connection: close")
        self._answer_body = body
        if not answer.stays_open and self.upstream is not None:
            self.upstream.last = True
        data, self._head = self._head, b""
        shown, framed = self.web.framing.line, is_framed(self.request)
        self._pass_answer(data, head_outside(answer, self.route, framing, shown, framed=framed))

    def _pass_answer(self, data: bytes, head: bytes = b"") -> None:
        """The head goes out with the first piece: every write costs as much as all the rest of a small answer."""
        body = self._answer_body
        assert body is not None
        try:
            pieces = body.take(data) if data else ()
        except BadHead:
            self._abort()
            return
        if isinstance(body, ChunkedBody) and self.request.minor == 1:
            pieces = [*chunks(pieces), LAST_CHUNK] if body.ended else chunks(pieces)
        if head:
            pieces = (head, *pieces)
        if len(pieces) == 1:
            self.client.transport.write(pieces[0])
        elif pieces:
            self.client.transport.writelines(pieces)
        if body.ended:
            self._finish()

    def _finish(self) -> None:
        upstream, body = self.upstream, self._answer_body
        self.upstream = None
        if upstream is not None:
            clean = body is not None and not body.rest and self.body.ended and not isinstance(body, EndlessBody)
            if clean and not upstream.last and not self.request.wants_websocket:
                self.web.pool.give(upstream, self.web.now)
            else:
                upstream.close()
        self._leave()
        self.client.finished(self._keep and self.body.ended)

    # --- when it does not go well -----------------------------------------------------------------------------------

    def inside_gone(self) -> None:
        """What runs inside has closed the connection."""
        upstream, self.upstream = self.upstream, None
        if self.stays:
            self._leave()
            self.client.close()
        elif isinstance(self._answer_body, EndlessBody):
            self._answer_body.ended = True
            self._finish()
        elif self._answer_body is not None:
            self._abort()
        elif upstream is not None and upstream.reused and not self._head and self._can_repeat():
            self._task = self.web.spawn(self._reach(), self._broken)
        else:
            self._refuse_in_words(502, "no.answer")

    def _can_repeat(self) -> bool:
        return self.request.is_safe and not self.request.has_body

    def inside_full(self) -> None:
        self.client.hold()

    def inside_ready(self) -> None:
        self.client.go_on()

    def client_gone(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self.upstream is not None:
            self.upstream.close()
            self.upstream = None
        self._leave()

    def client_full(self) -> None:
        if self.upstream is not None:
            self.upstream.hold()

    def client_ready(self) -> None:
        if self.upstream is not None:
            self.upstream.go_on()

    def end(self) -> None:
        """The right to be here is gone, or the gateway ends."""
        self._abort()

    def _abort(self) -> None:
        """Cut off, so that the other side notices that something is missing."""
        self.client_gone()
        self.client.close(cut=not self.stays)

    def _leave(self) -> None:
        if self._counted and self.permit is not None:
            self._counted = False
            self.web.crowd.go(self.permit.actor.name)

    def _refuse_in_words(self, status: int, name: str, **facts: object) -> None:
        said = text(name, answers.language_of(self.request), **facts)
        self._fail(answers.message(self.request, status, f"refused.{name.replace('.', '_')}", said))

    def _fail(self, answer: OwnAnswer) -> None:
        if self._answer_body is not None or self.stays:
            self._abort()
        else:
            self._answer(answer)

    def _broken(self) -> None:
        if not self.client.is_gone:
            self._refuse_in_words(500, "broken")

    def _answer(self, answer: OwnAnswer) -> None:
        """An answer of ours instead of one from inside."""
        if self.upstream is not None:
            self.upstream.close()
            self.upstream = None
        self._leave()
        if self.body.ended and self._early:
            self.client.keep_for_later(self._early)
        self.client.answer(answer, self.request, body_read=self.body.ended)
