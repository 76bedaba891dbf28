"""Our jobs in dlc's words: states, the JSON of one job, the rows of a list. In: what the api answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from gpuyard.dialects.dlc.ids import job_id, pod_id, uid, workspace_id
from gpuyard.dialects.dlc.keys import TYPE_OF_ROLE
from gpuyard.dialects.dlc.libraries import installing
from gpuyard.dialects.dlc.priorities import to_theirs

Told = Mapping[str, Any]
OTHER_KIND = "BatchJob"  # of jobs that came another way
ENDED = ("Succeeded", "Failed", "Stopped")

_STATUS: Mapping[str, str] = {
    "queued": "Queuing",
    "placed": "EnvPreparing",
    "starting": "EnvPreparing",
    "running": "Running",
    "stopping": "Stopping",
    "paused": "Queuing",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "stopped": "Stopped",
}
# What a status that is asked for may be here. Those with no state of ours find nothing.
STATES: Mapping[str, tuple[str, ...]] = {
    "Creating": ("queued",),
    "Queuing": ("queued", "paused"),
    "Bidding": (),
    "EnvPreparing": ("placed", "starting"),
    "SanityChecking": (),
    "Running": ("running",),
    "Restarting": ("queued",),
    "Stopping": ("queued", "placed", "starting", "running", "stopping", "paused"),
    "SucceededReserving": (),
    "FailedReserving": (),
    "Succeeded": ("succeeded",),
    "Failed": ("failed",),
    "Stopped": ("stopped",),
}
_NOT_SEEN_YET = "waiting.new"
_REASON_CODES: Mapping[str, str] = {
    "Creating": "JobCreating",
    "Queuing": "JobQueuing",
    "Restarting": "JobRestarting",
    "EnvPreparing": "JobEnvPreparing",
    "Running": "JobRunning",
    "Stopping": "JobStopping",
    "Succeeded": "JobSucceeded",
    "Failed": "JobFailed",
    "Stopped": "JobStoppedByUser",
}
_TIME_OF_END: Mapping[str, str] = {
    "Succeeded": "GmtSuccessedTime",
    "Failed": "GmtFailedTime",
    "Stopped": "GmtStoppedTime",
}
LIST_HEADERS = (
    *("JobName", "JobId", "JobType", "Priority", "WorkspaceId", "UserId", "GmtCreateTime", "Status", "Duration"),
)


def status(job: Told) -> str:
    state = str(job["state"])
    if job.get("wanted") == "stop" and _STATUS.get(state) not in ENDED:
        return "Stopping"
    if state == "queued" and job.get("attempt"):
        return "Restarting"
    if state == "queued" and job.get("reason_code") == _NOT_SEEN_YET:
        return "Creating"
    return _STATUS.get(state, "Creating")


def kind(job: Told) -> str:
    origin = job.get("origin") or {}
    return str(origin.get("facts", {}).get("kind") or OTHER_KIND) if origin.get("door") == "dlc" else OTHER_KIND


def name(job: Told) -> str:
    """As it was given, also where it is called otherwise here."""
    origin = job.get("origin") or {}
    given = origin.get("facts", {}).get("name") if origin.get("door") == "dlc" else None
    return str(given or job["name"])


def instant(text: str | None) -> str:
    """`2026-11-16T09:30:00.123Z` -> `2026-11-16T09:30:00Z`; empty when it has not come yet."""
    return f"{text[:19]}Z" if text else ""


def seconds_between(start: str | None, end: str | None, now: datetime) -> int:
    if not start:
        return 0
    until = datetime.fromisoformat(end) if end else now
    return max(0, int((until - datetime.fromisoformat(start)).total_seconds()))


def row(job: Told, now: datetime) -> list[str]:
    """One line of `get job`."""
    return [
        name(job),
        job_id(str(job["id"])),
        kind(job),
        str(to_theirs(int(job["priority"]))),
        workspace_id(str(job["group"])),
        str(job["owner"]),
        instant(job["submitted_at"]),
        status(job),
        str(seconds_between(job["started_at"], job["ended_at"], now)),
    ]


def job_json(job: Told, request_id: str, now: datetime, events: Iterable[Told] | None = None) -> str:
    """`get job JOBID`, with the keys dlc has."""
    data = job_data(job, request_id, now)
    if events is not None:
        data["Events"] = [event(one) for one in events]
    return as_json(data)


def as_json(data: Any) -> str:
    return json.dumps(data, indent=3, ensure_ascii=False)


def job_data(job: Told, request_id: str, now: datetime) -> dict[str, Any]:
    facts = (job.get("origin") or {}).get("facts", {})
    told, ended = status(job), instant(job["ended_at"])
    data = {
        "ClusterId": "gpuyard",
        "CodeSource": {},
        "DataSources": [{"DataSourceId": id} for id in str(facts.get("data_sources", "")).split(",") if id],
        "DisplayName": name(job),
        "Duration": seconds_between(job["started_at"], job["ended_at"], now),
        "ElasticSpec": {},
        "EnabledDebugger": False,
        "GmtCreateTime": instant(job["submitted_at"]),
        "GmtSubmittedTime": instant(job["submitted_at"]),
        "GmtRunningTime": instant(job["started_at"]),
        "GmtFinishTime": ended,
        "JobId": job_id(str(job["id"])),
        "JobSpecs": job_specs(job),
        "JobType": kind(job),
        "Pods": pods(job),
        "Priority": to_theirs(int(job["priority"])),
        "ReasonCode": _REASON_CODES.get(told, ""),
        "ReasonMessage": reason_message(job),
        "RequestId": request_id,
        "ResourceId": facts.get("resource_id", ""),
        "ResourceLevel": "",
        "Settings": {},
        "Status": told,
        "ThirdpartyLibDir": facts.get("thirdparty_lib_dir", ""),
        "UserCommand": user_command(job),
        "UserId": job["owner"],
        "WorkspaceId": workspace_id(str(job["group"])),
        "WorkspaceName": job["group"],
    }
    at_the_end = {_TIME_OF_END[told]: ended} if told in _TIME_OF_END else {}
    return dict(sorted((data | at_the_end).items()))


def reason_message(job: Told) -> str:
    if status(job) == "Succeeded":
        return f"{kind(job)} {job_id(str(job['id']))} is successfully completed."
    return str(job["reason"])


def user_command(job: Told) -> str:
    facts = (job.get("origin") or {}).get("facts", {})
    roles = job.get("roles") or [{"command": []}]
    words = [str(word) for word in roles[0]["command"]]
    text = words[2] if words[:2] == ["sh", "-c"] and len(words) == 3 else shlex.join(words)
    return text.removeprefix(
        installing(str(facts.get("thirdparty_libs", "")), str(facts.get("thirdparty_lib_dir", "")))
    )


def job_specs(job: Told) -> list[dict[str, Any]]:
    """As they were asked for: a worker that was made master is counted among the workers."""
    roles = list(job.get("roles", []))
    facts = (job.get("origin") or {}).get("facts", {})
    if facts.get("promoted") == "true" and roles:
        roles = [{**roles[0], "name": "worker", "replicas": sum(role["replicas"] for role in roles)}]
    return [
        {
            "EcsSpec": "",
            "Image": role["image"] or "",
            "PodCount": role["replicas"],
            "ResourceConfig": {
                "CPU": "" if role["cpu"] is None else str(role["cpu"]),
                "GPU": str(role["cards"]),
                "GPUType": ",".join(role["models"]),
                "Memory": _amount(role["memory"]),
                "SharedMemory": _amount(role["shm"]),
            },
            "Type": TYPE_OF_ROLE.get(role["name"], role["name"].capitalize()),
        }
        for role in roles
    ]


def _amount(amount: int | None) -> str:
    """In the largest unit that leaves no rest: `4Gi`, `64Mi`."""
    if amount is None:
        return ""
    unit = next((unit for unit in ("Gi", "Mi", "Ki") if amount % _UNITS[unit] == 0), "")
    return f"{amount // _UNITS[unit]}{unit}"


_UNITS: Mapping[str, int] = {"Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10, "": 1}


# --- pods ---------------------------------------------------------------------------------------------------------


def pods(job: Told) -> list[dict[str, Any]]:
    """The replicas of the newest attempt."""
    attempts = job.get("attempts") or []
    if not attempts:
        return []
    newest = attempts[-1]
    return [_pod(job, replica, newest["created_at"]) for replica in newest["replicas"]]


def _pod(job: Told, replica: Told, created: str) -> dict[str, Any]:
    id = pod_id(job_id(str(job["id"])), str(replica["replica"]))
    role = str(replica["replica"]).rpartition("-")[0]
    return {
        "GmtCreateTime": instant(created),
        "GmtStartTime": instant(replica["started_at"]),
        "GmtFinishTime": instant(replica["ended_at"]),
        "Ip": "",
        "PodId": id,
        "PodUid": uid(f"{id} {created}"),
        "Status": pod_status(job, replica),
        "Type": TYPE_OF_ROLE.get(role, role.capitalize()),
    }


def pod_status(job: Told, replica: Told) -> str:
    state = replica["state"]
    if state == "running":
        return "Running"
    if state != "ended":
        return "Stopped" if status(job) in ENDED else "EnvPreparing"
    if replica["exit_code"] == 0:
        return "Succeeded"
    return "Stopped" if status(job) in ("Stopped", "Stopping", "Succeeded") else "Failed"


def replica_of(job: Told, role: str, index: int) -> str | None:
    """Our name of a pod. `worker-0` of a job whose only worker was made master is that master."""
    there = {str(one["name"]): int(one["replicas"]) for one in job.get("roles", [])}
    if index < there.get(role, 0):
        return f"{role}-{index}"
    if (role, index) == ("worker", 0) and set(there) == {"master"}:
        return "master-0"
    return None


def event(one: Told) -> dict[str, Any]:
    return {"Time": instant(one["at"]), "Reason": one["code"], "Message": one["message"]}


def concerns(one: Told, replica: str) -> bool:
    """Whether an event is about this replica, or about all of them."""
    return bool(one["facts"].get("replica", replica) == replica)


def as_instant(text: str) -> datetime:
    """A time as people type it; without a zone it is UTC, as all times that are shown. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
