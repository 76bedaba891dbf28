"""Our states and shapes in their words: phases, counters, and tables with columns as wide as scripts know them.

Needs no YAML: the client tells with it what the server answered. `Item` is a workload as our API shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuyard.dialects.volcano.names import is_task_name, pod_name

Item = Mapping[str, Any]

NOTHING_FOUND = "No resources found"
NAMESPACE = "default"
SCHEDULER = "volcano"
OPEN = "Open"
_SPARE = 3
_COLUMNS = (
    *(("Creation", 15), ("Phase", 12), ("JobType", 12), ("Replicas", 12), ("Min", 6), ("Pending", 10)),
    *(("Running", 10), ("Succeeded", 12), ("Failed", 10), ("Unknown", 12), ("RetryCount", 10)),
)
_QUEUE_COLUMNS = (
    *(("Name", 25), ("Weight", 8), ("State", 8), ("Inqueue", 8), ("Pending", 8), ("Running", 8)),
    ("Unknown", 8),
)
_PHASES = {
    "queued": "Pending",
    "placed": "Pending",
    "starting": "Pending",
    "running": "Running",
    "paused": "Aborted",
    "succeeded": "Completed",
    "stopped": "Terminated",
}
_ENDING = {"stop": "Terminating", "pause": "Aborting"}
_FAILS_AS = frozenset({"Aborted", "Terminated", "Completed"})
_NO_PODS_WAIT = frozenset({"paused", "succeeded", "failed", "stopped"})
_ONE_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
COUNTERS = ("Succeeded", "Pending", "Running", "Failed")


def facts_of(item: Item) -> Mapping[str, str]:
    """What this door wrote down of it; nothing for what came another way. It may have been written by hand and say
    anything: nothing of it is printed before it was looked at."""
    origin = item.get("origin") or {}
    facts = origin.get("facts") or {}
    return facts if origin.get("door") == "volcano" and isinstance(facts, Mapping) else {}


def came_here(item: Item) -> bool:
    """Whether it came through this door, where a name is one job; elsewhere names need not differ."""
    return (item.get("origin") or {}).get("door") == "volcano"


def phase(item: Item) -> str:
    state = item["state"]
    if state == "failed":
        fails_as = facts_of(item).get("fails_as", "")
        return fails_as if fails_as in _FAILS_AS else "Failed"
    if state != "stopping":
        return _PHASES[state]
    if item.get("reason_code") == "story.role_completed":
        return "Completing"
    return _ENDING.get(item.get("wanted", ""), "Restarting")


def namespace(item: Item) -> str:
    written = facts_of(item).get("namespace", "")
    return written if is_task_name(written) else NAMESPACE


def retry_count(item: Item) -> int:
    """Every start but the first, also after a suspend: so they count too."""
    return max(int(item["attempt"]) - 1, 0)


def least(item: Item) -> int:
    """How many must be there for it to run: what its file says, or all."""
    written = facts_of(item).get("min_available", "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 9 else int(item["replicas"])


def counters(item: Item) -> dict[str, int]:
    """What has ended or is suspended has no pods that wait."""
    counted = dict(item.get("replicas_by_state") or {})
    if item["state"] in _NO_PODS_WAIT:
        counted["pending"] = 0
    return {name: int(counted.get(name.lower(), 0)) for name in COUNTERS}


def task_names(item: Item) -> Mapping[str, str]:
    """role -> task."""
    tasks = mapping_in(facts_of(item).get("tasks"))
    return {role: task for role, task in tasks.items() if isinstance(task, str) and is_task_name(task)}


def mapping_in(text: str | None) -> dict[str, Any]:
    """A fact with an inside; empty when it makes no sense."""
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def job_type(item: Item) -> str:
    written = facts_of(item).get("job_type", "")
    return written if _ONE_WORD.fullmatch(written) else "Batch"


def pods(item: Item, roles: Iterable[Item]) -> list[tuple[str, str]]:
    """Every replica under our name and theirs: `worker-0`, `job-worker-0`."""
    tasks = task_names(item)
    return [
        (f"{role['name']}-{index}", pod_name(item["name"], tasks.get(role["name"], role["name"]), index))
        for role in roles
        for index in range(role["replicas"])
    ]


# --- tables -------------------------------------------------------------------------------------------------------


def job_table(items: Sequence[Item], *, shown: Sequence[Item], with_namespaces: bool = False) -> str:
    """`shown` of all `items`; the names of all make the first column as wide as it is."""
    wide = max([len("Name"), *(len(item["name"]) for item in items)]) + _SPARE
    space = max([len("Namespace"), *(len(namespace(item)) for item in items)]) + _SPARE
    columns = [("Name", wide), *_COLUMNS]
    lines = [_line(columns, [name for name, _ in columns])]
    lines += [_line(columns, _job_cells(item)) for item in shown]
    if with_namespaces:
        first = ["Namespace", *(namespace(item) for item in shown)]
        lines = [f"{cell:<{space}}{line}" for cell, line in zip(first, lines, strict=True)]
    return "\n".join(lines)


def _job_cells(item: Item) -> list[str]:
    count = counters(item)
    cells = [
        *(item["name"], item["submitted_at"][:10], phase(item), job_type(item)),
        *(item["replicas"], least(item), count["Pending"], count["Running"], count["Succeeded"], count["Failed"]),
        *(0, retry_count(item)),
    ]
    return [str(cell) for cell in cells]


def queue_table(queues: Iterable[tuple[str, float, Mapping[str, int]]]) -> str:
    """Name, weight, and how many jobs are in each of Inqueue, Pending and Running."""
    lines = [_line(_QUEUE_COLUMNS, [name for name, _ in _QUEUE_COLUMNS])]
    for name, weight, count in queues:
        numbers = [count.get(state, 0) for state in ("Inqueue", "Pending", "Running")]
        cells = [name, f"{weight:g}", OPEN, *map(str, numbers), "0"]
        lines.append(_line(_QUEUE_COLUMNS, cells))
    return "\n".join(lines)


def queue_state(item: Item) -> str:
    """Where a live job counts in its queue."""
    state = item["state"]
    if state in ("placed", "starting"):
        return "Inqueue"
    return "Running" if state in ("running", "stopping") else "Pending"


def _line(columns: Sequence[tuple[str, int]], cells: Sequence[str]) -> str:
    return "".join(f"{cell:<{width}}" for (_, width), cell in zip(columns, cells, strict=True))
