"""`dlc get workspace`, `get quota` and `get specs`: groups, what they may use, and which cards there are."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpuyard.dialects.dlc import ids, tables
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc import asked, config

GIB = 1 << 30


def get(given: Given) -> int:
    with config.server(given) as server:
        groups = asked.groups(server)
    rows = [[group, ids.workspace_id(group), role] for group, role in sorted(groups.items())]
    print(tables.boxed(("WorkspaceName", "WorkspaceId", "Role"), rows))
    return 0


def quota(given: Given) -> int:
    with config.server(given) as server:
        wanted = asked.group(server, given.text("workspace_id")) if given.text("workspace_id") else None
        items = server.get("/quota")["items"]
    rows = [
        [
            item["group"],
            ids.workspace_id(item["group"]),
            item["user"] or "-",
            item["resource"],
            *(_amount(item["resource"], item[key]) for key in ("limit", "guaranteed", "used")),
        ]
        for item in items
        if wanted in (None, item["group"])
    ]
    print(tables.boxed(("WorkspaceName", "WorkspaceId", "User", "Resource", "Limit", "Guaranteed", "Used"), rows))
    return 0


def _amount(resource: str, value: Any) -> str:
    if value is None:
        return "-"
    return f"{value / GIB:g}Gi" if resource == "memory" else f"{value:g}"


def specs(given: Given) -> int:
    """There are no machine types here: which models of card there are, and how many."""
    with config.server(given) as server:
        nodes = server.get("/nodes")["items"]
    there: Counter[tuple[str, str]] = Counter()
    free: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        for card in node["cards"]:
            there[card["model"], card["device"]] += 1
            free[card["model"], card["device"]] += int(not card["used"] and not card["trouble"])
    rows = [[model, device, str(count), str(free[model, device])] for (model, device), count in sorted(there.items())]
    print(tables.boxed(("GPUType", "Device", "Total", "Free"), rows))
    return 0
