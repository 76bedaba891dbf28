"""The application: every door of every noun, behind one front."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from gpuyard.api import (
    admin,
    cluster,
    entering,
    environments,
    fragments,
    gateway_info,
    groups,
    images,
    keys,
    ledger,
    logs,
    lookback,
    merging,
    overview,
    policy,
    previewing,
    session,
    tokens,
    users,
    why,
    workloads,
)
from gpuyard.api.crowd import Crowd
from gpuyard.api.description import describe
from gpuyard.api.errors import answer_errors
from gpuyard.api.following import Followers
from gpuyard.api.frames import frame_sources
from gpuyard.api.front import Front
from gpuyard.api.live import Live
from gpuyard.api.parts import Parts
from gpuyard.api.policies import Policies
from gpuyard.api.simulated import SimulatedDevices
from gpuyard.api.together import Together
from gpuyard.api.uploads import Uploads
from gpuyard.console.serving import Console
from gpuyard.domain.errors import YardError

NOUNS = (
    workloads,
    previewing,
    environments,
    why,
    logs,
    overview,
    cluster,
    fragments,
    ledger,
    images,
    session,
    tokens,
    keys,
    entering,
    gateway_info,
    users,
    groups,
    merging,
    policy,
    lookback,
    admin,
)
TIDY_SECONDS = 30.0
_log = logging.getLogger(__name__)


def described_app(version: str) -> FastAPI:
    """Every door, described, with nothing behind it yet."""
    app = FastAPI(
        title="gpuyard",
        version=version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    for noun in NOUNS:
        app.router.routes.extend(noun.doors.routes)  # as they are: `include_router` would make each of them once more
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def create_app(parts: Parts) -> FastAPI:
    app = described_app(parts.version)
    app.state.parts = parts
    app.state.simulated = SimulatedDevices(parts.database)
    app.state.policies = Policies(parts.database)
    app.state.together = Together(parts.database)
    app.state.crowd = Crowd(parts.limits.live_workloads_per_user)
    app.state.uploads = Uploads(parts.limits)
    app.state.followers = Followers(parts.limits.followers_per_user, parts.limits.followers)
    app.state.live = Live(parts.database, parts)
    answer_errors(app)
    app.add_middleware(Console, frames=lambda: frame_sources(parts.data))
    app.add_middleware(Front, hosts=parts.hosts, tls=parts.tls, limits=parts.limits)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    parts: Parts = app.state.parts
    feed = parts.database.feed
    unsubscribe = [feed.subscribe(tell) for tell in (app.state.followers.news.tell, app.state.live.tell)]
    tidying = asyncio.create_task(_tidy_now_and_then(parts))
    try:
        yield
    finally:
        for leave in unsubscribe:
            leave()
        tidying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tidying


async def _tidy_now_and_then(parts: Parts) -> None:
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        try:
            await run_in_threadpool(parts.access.tidy)
        except YardError as error:  # a busy store: the next round will do
            _log.warning("logins were not tidied: %s", error)
