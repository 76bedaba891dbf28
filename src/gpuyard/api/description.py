"""The published OpenAPI description, completed: job files, the ways to prove who one is, and every refusal."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gpuyard.api.guard import COOKIE, KEY_HEADER, OPEN_TO_ALL
from gpuyard.api.models import ErrorOut
from gpuyard.dialects import native

ABOUT = (
    "The platform a team puts on its GPU and NPU machines. Refusals carry a code, facts and words (`Accept-Language`)."
)
REFUSALS = {
    "400": "What was sent cannot be meant; `problems` names everything that is wrong.",
    "401": "Nobody is logged in, or the login is no longer good.",
    "403": "It is known who asks, and they may not.",
    "404": "There is no such thing, or it is not the asker's to know.",
    "405": "This address does not take this method; `Allow` names those it takes.",
    "409": "It cannot be done in the present state of things.",
    "429": "Too many tries; `Retry-After` says how long to wait.",
    "503": "A part is busy just now; nothing was changed; `Retry-After` says when to try again.",
    "507": "The server's disk is full; nothing was changed.",
}
OPEN_REFUSALS = ("400", "401", "405", "429", "503", "507")


def describe(app: FastAPI) -> dict[str, Any]:
    """Made once, when first asked for."""
    if not app.openapi_schema:
        schema = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        _add_schemas(schema)
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                _complete(operation, is_open=path in OPEN_TO_ALL)
        app.openapi_schema = schema
    return app.openapi_schema


def _add_schemas(schema: dict[str, Any]) -> None:
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    job = json.loads(json.dumps(native.job_schema()).replace("#/$defs/role", "#/components/schemas/JobRole"))
    schemas["JobRole"] = job.pop("$defs")["role"]
    job.pop("$schema", None)
    schemas["JobFile"] = job
    error = ErrorOut.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(error.pop("$defs"))
    schemas["ErrorOut"] = error
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        "session_key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
    }


def _complete(operation: dict[str, Any], *, is_open: bool) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    for status, about in REFUSALS.items():
        if not is_open or status in OPEN_REFUSALS:
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorOut"}}}
            responses.setdefault(status, {"description": about, "content": content})
    if not is_open:
        operation["security"] = [{"token": []}, {"session": [], "session_key": []}]
