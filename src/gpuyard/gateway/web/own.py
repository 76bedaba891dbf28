"""A request to the gateway itself: its small body is read whole, then one of our pages answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuyard.domain.doorways import Asked
from gpuyard.gateway.web import answers
from gpuyard.gateway.web.answers import OwnAnswer
from gpuyard.gateway.web.bodies import body_of_request
from gpuyard.gateway.web.gate import Permit
from gpuyard.gateway.web.heads import BadHead, Request
from gpuyard.gateway.web.texts import text

if TYPE_CHECKING:
    from gpuyard.gateway.web.connection import Connection

BODY_BYTES = 16 * 1024
# A page answers, or somebody else goes on with the connection and what came on it early.
Reply = OwnAnswer | Callable[["Connection", bytes], None]


class OwnTalk:
    stays = False

    def __init__(self, client: Connection, request: Request, asked: Asked, path: str) -> None:
        self.client, self.request, self.asked, self.path = client, request, asked, path
        self.permit: Permit | None = None
        self.began = client.web.now
        self._body = body_of_request(request)
        self._read = b""
        self._early = b""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_reading(self) -> bool:
        """The body has not come yet. Anybody may send us one, so nobody has long for it, however it trickles in."""
        return not self._body.ended

    def begin(self, rest: bytes) -> None:
        if self._body.ended:
            self._early = rest
            self._go()
        elif rest:
            self.from_client(rest)

    def from_client(self, data: bytes) -> None:
        if self._body.ended:
            if self.request.wants_websocket:
                self._early += data
                if len(self._early) > BODY_BYTES:  # much is said before there is anybody to hear it
                    self.end()
            else:
                self.client.keep_for_later(data)
            return
        try:
            self._read += b"".join(self._body.take(data))
        except BadHead as problem:
            said = answers.message(self.request, problem.status, "refused.bad_request", str(problem))
            self.client.answer(said, self.request, body_read=False)
            return
        if len(self._read) > BODY_BYTES:
            said = answers.message(self.request, 413, "refused.too_large", "the body is too large")
            self.client.answer(said, self.request, body_read=False)
        elif self._body.ended:
            self._early = self._body.rest
            self._go()

    def _go(self) -> None:
        self._task = self.client.web.spawn(self._answer(), self._broken)

    async def _answer(self) -> None:
        reply = await self.client.web.pages.answer(self.request, self.asked, self.path, self._read, self.client.peer)
        if not isinstance(reply, OwnAnswer):
            reply(self.client, self._early)
            return
        if self._early and not self.request.wants_websocket:
            self.client.keep_for_later(self._early)
        self.client.answer(reply, self.request)

    def _broken(self) -> None:
        if not self.client.is_gone:
            said = text("broken", answers.language_of(self.request))
            self.client.answer(answers.message(self.request, 500, "refused.broken", said), self.request)

    def client_gone(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def client_full(self) -> None:
        """Its answers are small."""

    def client_ready(self) -> None:
        """Its answers are small."""

    def end(self) -> None:
        self.client_gone()
        self.client.close()
