"""What the ids on the command line stand for, asked of the server."""

from __future__ import annotations

from typing import Any

from gpuyard.dialects.dlc import ids
from gpuyard.doors.asking import Server, in_path
from gpuyard.doors.dlc.saying import NOT_FOUND, Failed
from gpuyard.sdk.errors import YardApiError


def own_id(job: str) -> str:
    """Raises Failed for what no job can be called."""
    id = ids.own_id(job)
    if id is None:
        raise Failed(f"Job {job} not found", NOT_FOUND)
    return id


def job(server: Server, id: str) -> dict[str, Any]:
    """A job with everything that is known of it."""
    try:
        found: dict[str, Any] = server.get(f"/workloads/{in_path(own_id(id))}")
    except YardApiError as refusal:
        if refusal.status == NOT_FOUND:
            raise Failed(f"Job {id} not found", NOT_FOUND) from refusal
        raise
    return found


def groups(server: Server) -> dict[str, str]:
    """The workspaces one may work in, and as what: one's own groups; an admin's are all there are."""
    user = server.get("/whoami")["user"]
    roles = {str(member["group"]): str(member["role"]) for member in user["memberships"]}
    if not user["admin"]:
        return roles
    return {str(group["name"]): roles.get(str(group["name"]), "admin") for group in server.get("/groups")["items"]}


def group(server: Server, workspace: str) -> str:
    """By its id or its name. Raises Failed when one is not in it."""
    found = ids.group_of(workspace, groups(server))
    if found is None:
        raise Failed(f"Workspace {workspace} not found; see 'dlc get workspace'", NOT_FOUND)
    return found
