"""This machine as a node: how much of it the server, and so its jobs, may use."""

from __future__ import annotations

import os
from pathlib import Path

from gpuyard.engines.process.supervision import cgroups

OWN_GROUPS = "/proc/self/cgroup"


def cpu_milli(cgroup_root: Path) -> int:
    cores = len(os.sched_getaffinity(0)) * 1000
    return min([cores, *_cpu_quota(cgroup_root)])


def memory(cgroup_root: Path) -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = cgroups.memory_limit(str(cgroup_root), OWN_GROUPS)
    except OSError:
        limit = None
    return min(total, limit) if limit else total


def _cpu_quota(root: Path) -> list[int]:
    """What the server's own cgroup allows, on either version; nothing when it does not say."""
    try:
        own = cgroups.own_groups(OWN_GROUPS)
        if (root / "cgroup.controllers").exists():
            quota, period = (root / own.get("", "/").lstrip("/") / "cpu.max").read_text().split()
        else:
            folder = root / "cpu" / own.get("cpu", "/").lstrip("/")
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return []
    return [int(quota) * 1000 // int(period)] if quota.isdigit() else []
