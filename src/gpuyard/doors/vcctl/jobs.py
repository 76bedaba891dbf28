"""The commands about jobs that are there, but for their logs."""

from __future__ import annotations

from typing import Any

from gpuyard.dialects.volcano import telling
from gpuyard.doors.asking import in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import Failure
from gpuyard.doors.vcctl.finding import ENDED, find_all, find_job, replaced_by, the_only_one
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
    found = _newest_of_each_name(found)
    found.sort(key=lambda item: (telling.namespace(item), item["name"], item["submitted_at"]))
    is_ours = given.text("scheduler") in ("", telling.SCHEDULER)
    shown = [item for item in found if is_ours and given.text("selector") in item["name"]]
    print(telling.job_table(found, shown=shown, with_namespaces=everywhere))


def _newest_of_each_name(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A name is one job there: one that has ended makes way for a newer one of its owner's. The newest come first.
    What came another way is shown, whatever it is called."""
    seen: set[tuple[str, str, str]] = set()
    shown = []
    for item in items:
        key = (telling.namespace(item), item["owner"], item["name"])
        if item["state"] not in ENDED or key not in seen or not telling.came_here(item):
            shown.append(item)
        if telling.came_here(item):
            seen.add(key)
    return shown


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
    """With the ended ones that it has replaced: the list shows none of them, and should not begin to."""
    _require_name(given, "delete")
    with server_of(given) as server:
        found = find_all(server, given)
        job = the_only_one(found)
        for item in (job, *replaced_by(job, found)):
            server.delete(f"/workloads/{in_path(item['id'])}")
    print(f"delete job {job['name']} successfully")


def suspend(given: Given) -> None:
    _ask_of(given, "suspend", "pause")


def resume(given: Given) -> None:
    _ask_of(given, "resume", "resume")


def _ask_of(given: Given, verb: str, wish: str) -> None:
    _require_name(given, verb)
    with server_of(given) as server:
        job = the_only_one(find_all(server, given))
        server.post(f"/workloads/{in_path(job['id'])}/{wish}")


def _require_name(given: Given, verb: str) -> None:
    if not given.text("name"):
        raise Failure(f"job name is mandatory to {verb} a particular job")
