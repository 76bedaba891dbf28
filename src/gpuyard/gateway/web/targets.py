"""What a visit leads to inside: always read from the store, never from the address. Pure."""

from __future__ import annotations

from gpuyard.domain.doorways import FIRST_FREE_PORT, IDE, LAB, LARGEST_PORT, Visit
from gpuyard.domain.errors import NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, Workload
from gpuyard.gateway.web.gate import Permit, Target, running_replicas

SERVICES = (LAB, IDE)


def target_of(permit: Permit) -> Target:
    """Raises NotFound for what this workload does not show."""
    workload, visit = permit.workload, permit.visit
    if visit.what in SERVICES and workload.spec.kind is Kind.ENV:
        return Target(str(running_replicas(workload)[0].id), permit.actor.name, service=visit.what)
    port = visit.port
    role = _role_with(workload, port) if port is not None else None
    if port is None or role is None or port > LARGEST_PORT:
        raise _nothing(visit)
    for replica in running_replicas(workload):
        if replica.id.role == role:
            return Target(str(replica.id), permit.actor.name, port=port)
    raise _nothing(visit)


def _role_with(workload: Workload, port: int) -> str | None:
    """The role that declares this port. A dev environment need not declare what somebody tries out in it."""
    for role in workload.spec.roles:
        if any(declared.number == port for declared in role.ports):
            return role.name
    is_free = workload.spec.kind is Kind.ENV and port >= FIRST_FREE_PORT
    return workload.spec.roles[0].name if is_free else None


def _nothing(visit: Visit) -> NotFound:
    return NotFound(because(Code.NOT_FOUND, what="port" if visit.port else visit.what, name=visit.what.lstrip("p")))
