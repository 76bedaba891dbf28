"""What a replica sees that came through a front door: told as its own system would."""

from __future__ import annotations

from gpuyard.dialects.brought import DLC, VOLCANO
from gpuyard.domain.told import NOTHING, Told
from gpuyard.domain.workload import ReplicaId, Workload


def told(workload: Workload, replica: ReplicaId, *, own_ports: bool = False) -> Told:
    """With ports of its own where the work of all shares one network, otherwise with those that everybody knows.

    Never raises: what a door remembers may have been written by hand, and then perhaps means nothing.
    """
    origin = workload.spec.origin
    if origin is None:
        return NOTHING
    if origin.door == DLC:
        from gpuyard.dialects.dlc import inside as dlc

        return dlc.told(workload, replica, own_ports=own_ports)
    if origin.door == VOLCANO:
        from gpuyard.dialects.volcano import inside as volcano

        return volcano.told(workload, replica, own_ports=own_ports)
    return NOTHING
