"""Who is asked first: larger priority, then the older, then the id so that the answer never depends on chance."""

from __future__ import annotations

from collections.abc import Iterable

from gpuyard.domain.workload import Workload


def turn(workload: Workload) -> tuple[int, float, str]:
    return (-workload.spec.priority, workload.submitted_at, workload.id)


def in_order(queue: Iterable[Workload]) -> list[Workload]:
    return sorted(queue, key=turn)
