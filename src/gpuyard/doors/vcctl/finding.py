"""The job that is meant."""

from __future__ import annotations

import re
from typing import Any

from gpuyard.dialects.volcano.names import job_name
from gpuyard.dialects.volcano.telling import NAMESPACE, namespace
from gpuyard.doors.asking import Refusal, Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import JOBS, Failure, not_found

ENDED = frozenset({"succeeded", "failed", "stopped"})
_ID = re.compile(r"[a-z][a-z0-9]{9}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
MOST_OF_ONE_NAME = 100


def find_job(server: Server, given: Given) -> dict[str, Any]:
    """The one of this name that is meant: a live one before those that have ended, the newest of them."""
    found = find_all(server, given)
    return next((item for item in found if item["state"] not in ENDED), found[0])


def the_only_one(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Of these, the one that is to be changed. Raises Failure where the name is that of several people's jobs: whoever
    may change them all must say which."""
    likely = [item for item in found if item["state"] not in ENDED] or found
    newest = {item["owner"]: item for item in reversed(likely)}
    if len(newest) > 1:
        choice = ", ".join(f"{item['id']} ({owner})" for owner, item in sorted(newest.items()))
        raise Failure(f'several people have a job named "{likely[0]["name"]}"; give -N the id of one: {choice}')
    return likely[0]


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
