"""The rest of a params file: how long, how often again, who may take its place; and what has no meaning here."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gpuyard.dialects.dlc import finding
from gpuyard.dialects.dlc.finding import Findings
from gpuyard.dialects.dlc.keys import TRUE, UNUSED_KEYS
from gpuyard.domain.resources import MAX_SECONDS

MOST_RETRIES = 100
SUCCESS_POLICIES = ("ChiefWorker", "AllWorkers")
_RESTARTS, _MOST_RESTARTS = "--enable-job-restart", "--max-num-of-job-restart"


def read_rest(found: Findings) -> dict[str, Any]:
    """Keys of our job file."""
    data: dict[str, Any] = {}
    if minutes := found.read(
        "job_max_running_time_minutes", finding.whole(0, MAX_SECONDS // 60), "minutes, or 0 for no limit"
    ):
        data["max_time"] = f"{minutes}m"
    if found.read("enable_preemptible_job", finding.truth, "true or false"):
        data["preemptible"] = True
    data |= _retries(found)
    policy = found.text("success_policy")
    if policy and policy not in SUCCESS_POLICIES:
        found.bad("success_policy", " or ".join(SUCCESS_POLICIES))
    for key, why in UNUSED_KEYS.items():
        if found.text(key):
            found.ignore(key, why)
    return data


def _retries(found: Findings) -> dict[str, Any]:
    """Of the fault tolerance: how often a job that failed is started again."""
    enabled = found.read("aimaster_enable", finding.truth, "true or false")
    words = found.text("aimaster_args").split()
    said = {word.lower(): value for word, value in pairwise(words) if word.startswith("--")}
    if not enabled:
        if words:
            found.ignore("aimaster_args", "door.unused.dlc_aimaster_off")
        return {}
    others = sorted(said.keys() - {_RESTARTS, _MOST_RESTARTS})
    if others:
        found.ignore("aimaster_args", "door.unused.dlc_aimaster")
    if said.get(_RESTARTS, "false").lower() not in TRUE:
        return {}
    most = said.get(_MOST_RESTARTS, "10")
    if not most.isascii() or not most.isdigit():
        found.bad("aimaster_args", f"a whole number after {_MOST_RESTARTS}")
        return {}
    return {"retries": min(MOST_RETRIES, int(most))}
