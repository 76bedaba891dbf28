"""What every request passes before anything else: which name it used, where it came from, and how much it brings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuyard import words
from gpuyard.api import errors as answers
from gpuyard.api.parts import ApiLimits
from gpuyard.domain.errors import BadInput, NotAllowed, YardError
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOADS = ("/api/v1/workdirs/", "/api/v1/images/load")  # bounded by the room that receives them, and never in memory

SECURITY_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    # Pages inside workloads are often of the same site as we are: they get no hand on a window of ours, nor any part.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Front:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], tls: bool, limits: ApiLimits) -> None:
        self._app = app
        self._hosts = hosts
        self._limits = limits
        self._headers = dict(SECURITY_HEADERS)
        if tls:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(message)
            await send(message)

        try:
            self._check(scope["method"], headers)
            _refuse_repeated(scope["query_string"])
            if not scope["path"].startswith(UPLOADS):
                receive = self._bounded(receive, headers)
        except YardError as error:
            language = words.pick_language(headers.get("accept-language", ""))
            await answers.answer(error, language)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, method: str, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) > 1:  # one of them would be believed here, the other by a proxy before us
            raise BadInput(because(Code.BAD_VALUE, at="Host", problem="it is there twice", value=""))
        host = hosts[0] if hosts else ""
        if "*" not in self._hosts and _without_port(host) not in self._hosts:
            raise BadInput(because(Code.BAD_VALUE, at="Host", problem="this server has another name", value=host[:80]))
        if method in SAFE_METHODS:
            return
        if any(_place_of(origin) != host.lower() for origin in headers.getlist("origin")):
            raise NotAllowed(because(Code.BAD_CSRF))

    def _add_headers(self, message: MutableMapping[str, Any]) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers.setdefault(name, value)

    def _bounded(self, receive: Receive, headers: Headers) -> Receive:
        """The same body, but not more of it and not slower than one may send."""
        limit = self._limits.body_bytes
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > limit:
            raise BadInput(because(Code.TOO_LARGE, what="body", size=int(declared[:20]), limit=limit))
        received, complete, due = 0, False, 0.0

        async def receive_bounded() -> Message:
            nonlocal received, complete, due
            if complete:  # only the end of the connection is still to come, and may come late
                return await receive()
            due = due or asyncio.get_running_loop().time() + self._limits.body_seconds
            try:
                async with asyncio.timeout_at(due):  # all of it, in however many pieces it drips in
                    message = await receive()
            except TimeoutError:
                problem = "it did not arrive in time"
                raise answers.BodyRefused(because(Code.BAD_VALUE, at="body", problem=problem, value="")) from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > limit:
                raise answers.BodyRefused(because(Code.TOO_LARGE, what="body", size=received, limit=limit))
            return message

        return receive_bounded


def _place_of(origin: str) -> str | None:
    """`https://yard.example:8470` -> `yard.example:8470`; None when it is no address at all."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _refuse_repeated(query: bytes) -> None:
    """No parameter of ours is a list: of two values one would be silently dropped."""
    if b"&" not in query:
        return
    seen: set[bytes] = set()
    for part in query.split(b"&"):
        name = part.partition(b"=")[0]
        if name in seen:
            at = name[:80].decode("ascii", "replace")
            raise BadInput(because(Code.BAD_VALUE, at=at, problem=Problem.REPEATED.value, value=""))
        seen.add(name)


def _without_port(host: str) -> str:
    """`yard.example:8470` -> `yard.example`; `[::1]:8470` -> `[::1]`."""
    name, _, port = host.lower().rpartition(":")
    return name if name and port.isdigit() else host.lower()
