"""Logging in and out with a browser, and who one is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request, Response

from gpuyard.access.rights import Action, role_of
from gpuyard.api import models, views
from gpuyard.api.guard import Caller, Doors, address_of, cookie_name, needs
from gpuyard.api.parts import Parts

doors = Doors(prefix="/api/v1", tags=["session"])
# No link from elsewhere needs it: a page of the console comes without, and asks by itself once it is there.
SAME_SITE: Literal["strict"] = "strict"


@doors.post("/login", response_model=models.LoginOut)
def log_in(request: Request, response: Response, login: models.LoginIn) -> Any:
    """Begin a session. The answer sets its cookie and tells its key, which goes along with every request: a cookie
    reaches all ports of this host, so alone it opens nothing. The key is told here and never again."""
    parts: Parts = request.app.state.parts
    actor, both = parts.access.log_in(login.name, login.password, address_of(request))
    response.set_cookie(
        cookie_name(parts.tls),
        both.cookie,
        max_age=int(parts.access.rules.session_seconds),
        path="/",
        secure=parts.tls,
        httponly=True,
        samesite=SAME_SITE,
    )
    return models.LoginOut(
        user=views.user_out(actor.user), session_key=both.key, must_change_password=actor.user.must_change_password
    )


@doors.post("/logout", response_model=models.Done)
def log_out(caller: Annotated[Caller, needs(Action.LOG_OUT)], response: Response) -> Any:
    """End this session."""
    caller.parts.access.log_out(caller.actor)
    tls = caller.parts.tls
    response.delete_cookie(cookie_name(tls), path="/", secure=tls, httponly=True, samesite=SAME_SITE)
    return models.Done()


@doors.get("/whoami", response_model=models.WhoAmIOut)
def who_am_i(caller: Annotated[Caller, needs(Action.WHO_AM_I)]) -> Any:
    actor = caller.actor
    return models.WhoAmIOut(
        user=views.user_out(actor.user),
        role=role_of(actor.user),
        scope=actor.scope,
        via=actor.via,
        expires_at=views.instant_or_none(actor.expires_at),
        version=caller.parts.version,
        engine=caller.parts.images.engine,
    )


@doors.post("/password", response_model=models.Done)
def change_password(caller: Annotated[Caller, needs(Action.CHANGE_OWN_PASSWORD)], passwords: models.PasswordIn) -> Any:
    """One's own. All other sessions of the same person end, and all other tokens unless told to keep them. Whoever
    owns the data folder need not know the old one."""
    access, keep_tokens = caller.parts.access, passwords.keep_tokens
    access.change_password(caller.actor, passwords.old, passwords.new, keep_tokens=keep_tokens)
    return models.Done()
