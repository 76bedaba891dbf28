"""The job that is meant."""

from __future__ import annotations

import re
from typing import Any

from gpuyard.dialects.volcano.names import job_name
from gpuyard.dialects.volcano.telling import NAMESPACE, came_here, namespace
from gpuyard.doors.asking import Refusal, Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import JOBS, Failure, not_found

ENDED = frozenset({"succeeded", "failed", "stopped"})
_ID = re.compile(r"[a-z][a-z0-9]{9}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
MOST_OF_ONE_NAME = 100
MOST_OFFERED = 10


def find_job(server: Server, given: Given) -> dict[str, Any]:
    """The one of this name that is meant: a live one before those that have ended, the newest of them."""
    found = find_all(server, given)
    return next((item for item in found if item["state"] not in ENDED), found[0])


def the_only_one(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Of these, the one that is to be changed. Raises Failure where several are called so, as jobs that did not come
    through this door may be, or other people's: which one is for people to say."""
    live = [item for item in found if item["state"] not in ENDED]
    likely = live or [*{item["owner"]: item for item in reversed(found)}.values()]
    if len(likely) > 1:
        choice = ", ".join(f"{item['id']} ({item['owner']})" for item in likely[:MOST_OFFERED])
        more = ", ..." if len(likely) > MOST_OFFERED else ""
        raise Failure(f'several jobs are named "{likely[0]["name"]}"; give -N the id of one: {choice}{more}')
    return likely[0]


def replaced_by(job: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ended ones behind a job of this door: a name is one job here, so they have made way for it."""
    if not came_here(job):
        return []
    behind = [item for item in found if item["owner"] == job["owner"] and item["id"] != job["id"]]
    return [item for item in behind if item["state"] in ENDED and came_here(item)]


def find_all(server: Server, given: Given) -> list[dict[str, Any]]:
    """All of this name, the newest first: one's own, or else others' that one may see. An id will do too."""
    written = given.text("name")
    name = job_name(written)
    wanted = given.text("namespace") or NAMESPACE
    if _NAME.fullmatch(name):
        for mine in (True, False):
            page = server.get("/workloads", name=name, kind="job", mine=mine, limit=MOST_OF_ONE_NAME)
            found = [item for item in page["items"] if namespace(item) == wanted]
            if found:
                return found
    if _ID.fullmatch(written):
        try:
            return [server.get(f"/workloads/{in_path(written)}")]
        except Refusal as refusal:
            if refusal.status != 404:
                raise
    raise not_found(JOBS, written)
