"""The one way in: every route names the action it stands for, and is entered only by someone who may do it.

A route without a guard cannot be registered, unless it is listed here as open to everyone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from gpuyard import words
from gpuyard.access import rights
from gpuyard.access.actors import Actor
from gpuyard.access.rights import Action, Target
from gpuyard.access.service import Credentials
from gpuyard.api.crowd import Crowd
from gpuyard.api.errors import language_of
from gpuyard.api.parts import Parts
from gpuyard.api.policies import Policies
from gpuyard.api.simulated import SimulatedDevices
from gpuyard.api.together import Together
from gpuyard.domain.reasons import Reason

OPEN_TO_ALL = frozenset({"/healthz", "/api/v1/login", "/api/v1/openapi.json", "/api/v1/schema/job.json"})
COOKIE, TLS_COOKIE = "yard_session", "__Host-yard_session"
KEY_HEADER = "x-session-key"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, in which language, and what the platform is made of."""

    actor: Actor
    parts: Parts
    language: words.LanguageName
    simulated: SimulatedDevices
    together: Together
    crowd: Crowd
    policies: Policies

    @property
    def now(self) -> float:
        return self.parts.clock()

    def may(self, action: Action, target: Target | None = None) -> bool:
        return rights.may(self.actor, action, target)

    def require(self, action: Action, target: Target | None = None) -> None:
        rights.require(self.actor, action, target)

    def say(self, reason: Reason) -> str:
        return words.say(reason, self.language)


class Guard:
    """Finds out who asks and whether they may knock at this door at all."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> Caller:
        parts: Parts = request.app.state.parts
        credentials = credentials_of(request, parts.tls)
        # Most requests come from someone seen a moment ago: then no thread and no query is needed.
        actor = parts.access.remembered(credentials)
        if actor is None:
            actor = await run_in_threadpool(parts.access.authenticate, credentials)
        request.scope["yard.actor"] = actor
        rights.require(actor, self.action)
        shared = request.app.state
        language, own = language_of(request), (shared.simulated, shared.together, shared.crowd, shared.policies)
        return Caller(actor, parts, language, *own)


def needs(action: Action) -> Any:
    """`caller: Annotated[Caller, needs(Action.SUBMIT)]`"""
    return Depends(Guard(action))


def credentials_of(request: Request, tls: bool) -> Credentials:
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    return Credentials(
        bearer=bearer.strip() if scheme.lower() == "bearer" else None,
        cookie=request.cookies.get(cookie_name(tls)),
        address=address_of(request),
        session_key=request.headers.get(KEY_HEADER, ""),
    )


def cookie_name(tls: bool) -> str:
    return TLS_COOKIE if tls else COOKIE


def address_of(request: Request) -> str:
    """The peer of the connection. What a header claims about it is not believed."""
    return request.client.host if request.client else ""


class Doors(APIRouter):
    """A router that takes only guarded routes."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().add_api_route(path, endpoint, **options)
        route = self.routes[-1]
        assert isinstance(route, APIRoute)
        if not is_guarded(route.dependant) and self.prefix + path not in OPEN_TO_ALL:
            self.routes.pop()
            raise TypeError(f"{path} has no guard; say which action it stands for with needs(Action...)")


def is_guarded(dependant: Dependant) -> bool:
    return any(isinstance(part.call, Guard) for part in dependant.dependencies)
