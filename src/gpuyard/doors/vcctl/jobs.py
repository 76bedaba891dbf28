"""The commands about jobs that are there, but for their logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuyard.dialects.volcano import telling
from gpuyard.doors.asking import Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import Failure
from gpuyard.doors.vcctl.finding import find_job
from gpuyard.doors.vcctl.master import server_of

MOST_LISTED = 10_000  # of the newest; a cluster that holds more ended jobs is not helped by all of them


def list_jobs(given: Given) -> None:
    everywhere = given.is_set("all-namespaces")
    wanted = given.text("namespace") or telling.NAMESPACE
    found: list[dict[str, Any]] = []
    with server_of(given) as server:
        for item in server.every("/workloads", kind="job", group=given.text("queue") or None):
            if everywhere or telling.namespace(item) == wanted:
                found.append(item)
            if len(found) == MOST_LISTED:
                break
    if not found:
        print(telling.NOTHING_FOUND)
        return
    found.sort(key=lambda item: (telling.namespace(item), item["name"], item["submitted_at"]))
    is_ours = given.text("scheduler") in ("", telling.SCHEDULER)
    shown = [item for item in found if is_ours and given.text("selector") in item["name"]]
    print(telling.job_table(found, shown=shown, with_namespaces=everywhere))


def view(given: Given) -> None:
    from datetime import UTC, datetime

    from gpuyard.dialects.volcano.viewing import age, job_view

    if not given.text("name"):
        raise Failure("job name (specified by --name or -N) is mandatory to view a particular job")
    with server_of(given) as server:
        at = f"/workloads/{in_path(find_job(server, given)['id'])}"
        events = server.get(f"{at}/events")["items"]
        job, file = server.get(at), server.get(f"{at}/file")
    now = datetime.now(UTC)
    ages = [age((now - datetime.fromisoformat(event["at"])).total_seconds()) for event in events]
    print(job_view(job, file, events, ages))


def delete(given: Given) -> None:
    name = _ask_of(given, "delete", lambda server, at: server.delete(at))
    print(f"delete job {name} successfully")


def suspend(given: Given) -> None:
    _ask_of(given, "suspend", lambda server, at: server.post(f"{at}/pause"))


def resume(given: Given) -> None:
    _ask_of(given, "resume", lambda server, at: server.post(f"{at}/resume"))


def _ask_of(given: Given, verb: str, ask: Callable[[Server, str], object]) -> str:
    """Ask something of the job that is named, at its address. Its name."""
    if not given.text("name"):
        raise Failure(f"job name is mandatory to {verb} a particular job")
    with server_of(given) as server:
        job = find_job(server, given)
        ask(server, f"/workloads/{in_path(job['id'])}")
    return str(job["name"])
