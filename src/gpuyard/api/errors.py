"""The one place where a refusal becomes an answer: a status, a code with facts, and words."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import iter_route_contexts
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from gpuyard import words
from gpuyard.access.rights import Refused
from gpuyard.api.mistakes import UNREADABLE, in_our_words
from gpuyard.domain import errors
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because

_log = logging.getLogger(__name__)
STATUS: Mapping[type[errors.YardError], HTTPStatus] = {
    errors.BadInput: HTTPStatus.BAD_REQUEST,
    errors.LoginNeeded: HTTPStatus.UNAUTHORIZED,
    errors.NotAllowed: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.TooMany: HTTPStatus.TOO_MANY_REQUESTS,
    errors.EngineError: HTTPStatus.BAD_GATEWAY,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
RETRY_AFTER_SECONDS = 2
MOST_PROBLEMS = 50


class BodyRefused(HTTPException):
    """What came in cannot be taken. An HTTPException, because the framework lets only those through while it reads."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(HTTPStatus.BAD_REQUEST)
        self.reason = reason


def answer_errors(app: FastAPI) -> None:
    """Make every refusal of this app look the same. Called last, when all routes are there."""
    app.add_exception_handler(errors.YardError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)
    app.state.methods = _methods_by_path(app)


def answer(error: errors.YardError, language: words.LanguageName) -> Response:
    status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
    headers = {}
    if isinstance(error, errors.TooMany):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_seconds)))
    elif isinstance(error, errors.Unavailable):
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        if error.reason.code is Code.STORE_FULL:
            status = HTTPStatus.INSUFFICIENT_STORAGE
    elif isinstance(error, errors.LoginNeeded):
        headers["WWW-Authenticate"] = "Bearer"
    problems = error.problems if isinstance(error, errors.BadInput) else ()
    if error.reason.code is Code.STORE_CORRUPT:  # where the files lie is the admin's to know, from the server's log
        _log.error("%s", error)
        return as_json(body_of(because(Code.STORE_CORRUPT), (), language), status, headers)
    return as_json(body_of(error.reason, problems, language), status, headers)


def as_json(body: dict[str, Any], status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Escaped to ASCII: what is repeated to the sender may hold what no encoding can."""
    return Response(json.dumps(body), status, dict(headers or {}), media_type="application/json")


def body_of(reason: Reason, problems: Sequence[Reason], language: words.LanguageName) -> dict[str, Any]:
    told = [told_reason(problem, language) for problem in problems[:MOST_PROBLEMS]]
    return {"error": {**told_reason(reason, language), "problems": told}}


def told_reason(reason: Reason, language: words.LanguageName) -> dict[str, Any]:
    return {"code": reason.code.value, "message": words.say(reason, language), "facts": dict(reason.facts)}


def language_of(request: Request) -> words.LanguageName:
    return words.pick_language(request.headers.get("accept-language", ""))


# --- one handler per kind -----------------------------------------------------------------------------------------


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.YardError)
    actor = request.scope.get("yard.actor")
    if actor is not None and isinstance(error, Refused):
        await run_in_threadpool(request.app.state.parts.access.note_refusal, actor, error)
    return answer(error, language_of(request))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(errors.BadInput(*(in_our_words(e) for e in error.errors())), language_of(request))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    language = language_of(request)
    if isinstance(error, BodyRefused):
        return answer(errors.BadInput(error.reason), language)
    path = request.url.path[:200]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return answer(errors.NotFound(because(Code.NOT_FOUND, what="address", name=path)), language)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _wrong_method(request, language)
    problem = because(Code.BAD_VALUE, at="body", problem=UNREADABLE, value="")
    return as_json(body_of(problem, (), language), error.status_code, error.headers)


def _wrong_method(request: Request, language: words.LanguageName) -> Response:
    allowed: set[str] = set()
    for pattern, methods in request.app.state.methods:
        if pattern.match(request.url.path):
            allowed |= methods
    facts = {"problem": Problem.ONE_OF.value, "value": request.method[:20], "allowed": sorted(allowed)}
    body = body_of(because(Code.BAD_VALUE, at="method", **facts), (), language)
    return as_json(body, HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(sorted(allowed))})


def _methods_by_path(app: FastAPI) -> list[tuple[re.Pattern[str], set[str]]]:
    """The framework names only the methods of the first route that matches a path; we name all of them."""
    found = []
    for context in iter_route_contexts(app.routes):
        if context.path is not None and context.methods:
            found.append((compile_path(context.path)[0], set(context.methods)))
    return found


async def _broken(request: Request, error: Exception) -> Response:
    """A mistake of ours. The log has it in full; the answer tells nothing that could help anyone but us."""
    _log.error("%a %a failed: %s", request.method[:20], request.url.path[:200], type(error).__name__)
    message = {
        "en": "Something went wrong inside the server; its log says what.",
        "zh": "服务器内部出错，详情见服务器日志。",
    }
    body = {"code": "internal.error", "message": message[language_of(request)], "facts": {}, "problems": []}
    return as_json({"error": body}, HTTPStatus.INTERNAL_SERVER_ERROR)
