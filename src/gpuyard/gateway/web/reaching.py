"""Getting through to what a visit leads to. JupyterLab and VS Code are started when somebody first comes to them."""

from __future__ import annotations

import asyncio
import socket
import time

from gpuyard.domain.doorways import IDE, LAB
from gpuyard.domain.errors import NotFound, YardError
from gpuyard.domain.reasons import Code
from gpuyard.gateway.context import Context, Service
from gpuyard.gateway.web import answers
from gpuyard.gateway.web.answers import OwnAnswer, language_of
from gpuyard.gateway.web.gate import Permit, Target
from gpuyard.gateway.web.heads import Request
from gpuyard.gateway.web.texts import text

LOOK_SECONDS = 0.05
HOLD_SECONDS = 0.6  # a request waits this long for a program that starts; then the visitor is told
AGAIN_SECONDS = 2.0
NAMES = {LAB: "JupyterLab", IDE: "VS Code"}


class NotThere(Exception):
    """Nobody answers inside, yet. Knows how to say so."""

    def __init__(self, status: int, said: str, /, *, refresh: int = 0, **facts: object) -> None:
        super().__init__(said)
        self.status, self.said, self.refresh, self.facts = status, said, refresh, facts

    def answer(self, request: Request) -> OwnAnswer:
        said = text(self.said, language_of(request), **self.facts)
        code = f"refused.{self.said.replace('.', '_')}"
        return answers.message(request, self.status, code, said, refresh=self.refresh)


class Reaching:
    def __init__(self, context: Context) -> None:
        self._broker = context.broker
        self._recipes = context.recipes
        self._toolbox = context.config.folder / "toolbox" / "current"
        self._started: dict[Target, float] = {}

    async def connect(self, permit: Permit, target: Target, prefix: str) -> socket.socket:
        if target.port is not None:
            return await self._to_port(target, target.port)
        sock = await self._to_service(target)
        if sock is not None:
            return sock
        await self._start(permit, target, prefix)
        deadline = time.monotonic() + HOLD_SECONDS
        while time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
            sock = await self._to_service(target)
            if sock is not None:
                return sock
        raise NotThere(503, f"starting.{target.service}", refresh=1)

    async def _to_port(self, target: Target, port: int) -> socket.socket:
        try:
            return await self._broker.connect(target.replica, target.user, port=port)
        except YardError as error:
            if _nobody_there(error):
                raise NotThere(502, "no.listener", port=port) from None
            raise

    async def _to_service(self, target: Target) -> socket.socket | None:
        """None when it is not there yet."""
        try:
            return await self._broker.connect(target.replica, target.user, path=target.socket_name)
        except YardError as error:
            if _nobody_there(error):
                return None
            raise

    async def _start(self, permit: Permit, target: Target, prefix: str) -> None:
        """At most every few seconds for each; the porter sees to it that there is one of a name."""
        now = time.monotonic()
        if now - self._started.get(target, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        self._started = {known: at for known, at in self._started.items() if now - at < AGAIN_SECONDS}
        ended = await self._how_it_ended(target)
        service = self._recipe(permit, target, prefix)
        self._started[target] = now
        try:
            await self._broker.serve(target.replica, target.user, service.name, service.argv, service.env, service.cwd)
        except NotFound as error:
            if error.reason.facts.get("name") != service.argv[0]:
                raise
            self._started.pop(target, None)
            raise self._not_seen_there(permit) from error
        if ended is not None and target.service is not None:
            if self._is_older_than_toolbox(permit):
                raise self._not_seen_there(permit)
            facts = {"name": NAMES[target.service], "code": ended, "log": f"$YARD_DOOR/{target.service}.log"}
            raise NotThere(503, "failed.service", refresh=2, **facts)

    async def _how_it_ended(self, target: Target) -> int | None:
        """Its exit code when it has run and ended by itself."""
        try:
            known = (await self._broker.services(target.replica, target.user)).get(target.service or "")
        except YardError:
            return None
        return known.get("exit_code") if known is not None and not known.get("running") else None

    def _is_older_than_toolbox(self, permit: Permit) -> bool:
        """Work sees the toolbox that was there when it was started."""
        try:
            chosen_at = self._toolbox.lstat().st_mtime
        except OSError:
            return False
        return permit.workload.attempt is not None and permit.workload.attempt.created_at < chosen_at

    def _not_seen_there(self, permit: Permit) -> NotThere:
        return NotThere(503, "old.toolbox", name=permit.workload.spec.name)

    def _recipe(self, permit: Permit, target: Target, prefix: str) -> Service:
        service = self._recipes(target.service or "", f"{prefix}/", permit.workload.owner, target.replica)
        if service is None:
            raise NotThere(503, "no.toolbox")
        return service


def _nobody_there(error: YardError) -> bool:
    return isinstance(error, NotFound) or error.reason.code is Code.NOBODY_LISTENS
