"""`dlc get pod` and `dlc logs`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from gpuyard.dialects.dlc import ids, tables, telling
from gpuyard.doors.asking import Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc import asked, config
from gpuyard.doors.dlc.jobs import window_of
from gpuyard.doors.dlc.saying import NOT_FOUND, Failed, warn
from gpuyard.doors.dlc.watching import read_log
from gpuyard.doors.dlc.windows import Window

NO_LOGS = "[WARN] No logs found for the pod"
USUAL_WINDOW = timedelta(days=7)
MOST_LINES = 100_000
HEADERS = ("PodId", "Type", "Status", "GmtStartTime", "GmtFinishTime")


def get(given: Given) -> int:
    with config.server(given) as server:
        job = asked.job(server, given.words[0])
        if len(given.words) == 1:
            print(tables.boxed(HEADERS, [[str(pod[key]) for key in HEADERS] for pod in telling.pods(job)]))
            return 0
        replica = _replica(job, given.words[0], given.words[1])
        events = server.get(f"/workloads/{in_path(str(job['id']))}/events")["items"]
    most = given.number("max_events_num")
    about = [telling.event(event) for event in events if telling.concerns(event, replica)][-max(1, most) :]
    name = ids.pod_id(given.words[0], replica)
    pod = next((pod for pod in telling.pods(job) if pod["PodId"] == name), {"PodId": name, "Status": "Creating"})
    print(telling.as_json(pod | {"Events": about}))
    return 0


def _replica(job: dict[str, Any], id: str, pod: str) -> str:
    """Our name of the replica that is this pod of this job. Raises Failed when there is none."""
    parts = ids.pod_parts(pod)
    found = telling.replica_of(job, parts[1], parts[2]) if parts and parts[0] == id else None
    if found is None:
        first = ids.pod_id(id, f"{job['roles'][0]['name']}-0")
        raise Failed(f"Pod {pod} of job {id} not found; its first one is {first}", NOT_FOUND)
    return found


# --- logs ---------------------------------------------------------------------------------------------------------


def logs(given: Given) -> int:
    lines = given.number("max_events_num")
    if not 1 <= lines <= MOST_LINES:
        raise Failed(f'invalid argument "{lines}" for "--max_events_num" flag: expected 1 to {MOST_LINES}')
    start, end = window_of(given)
    with config.server(given) as server:
        id = given.words[0]
        job = asked.job(server, id)
        pod = given.words[1] if len(given.words) > 1 else ids.pod_id(id, f"{job['roles'][0]['name']}-0")
        replica = _replica(job, id, pod)
        print(f"[INFO] Job [{id}] is [{telling.status(job)}], logs of pod [{pod}]")
        print(f"[INFO] The last {lines} lines at most", flush=True)
        if not _ran_between(job, replica, start or datetime.now(UTC) - USUAL_WINDOW, end):
            return _nothing(job)
        window = Window(ids.pod_id(id, replica), int(job["attempt"]))
        reached = _show(server, job, replica, lines, window.begins_at(start) if start else 0)
        if end is not None:
            window.ended(end, reached or 0)
        return _nothing(job) if reached is None else 0


def _nothing(job: dict[str, Any]) -> int:
    print(NO_LOGS, flush=True)
    status = telling.status(job)
    if status in ("Creating", "Queuing", "Restarting"):
        warn(f"It is [{status}]: {job['reason']}")
    return 0


def _ran_between(job: dict[str, Any], replica: str, start: datetime, end: datetime | None) -> bool:
    """Lines have no times here: when the pod ran at another time, none of them can be meant."""
    attempts = job["attempts"]
    if not attempts:
        return False
    seen = next((one for one in attempts[-1]["replicas"] if one["replica"] == replica), None)
    began = (seen and seen["started_at"]) or attempts[-1]["created_at"]
    ended = (seen and seen["ended_at"]) or attempts[-1]["ended_at"]
    return (end is None or telling.as_instant(began) <= end) and (not ended or telling.as_instant(ended) >= start)


def _show(server: Server, job: dict[str, Any], replica: str, lines: int, begin: int) -> int | None:
    """As much as there is now, from this byte on; the byte after it. None when there is nothing."""
    piece = read_log(server, str(job["id"]), replica=replica, tail=lines)
    if piece.start < begin:
        piece = read_log(server, str(job["id"]), replica=replica, offset=begin)
    last = b""
    while piece.data:
        sys.stdout.buffer.write(piece.data)
        last = piece.data
        piece = read_log(server, str(job["id"]), replica=replica, offset=piece.end)
    if last and not last.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    return piece.end if last else None
