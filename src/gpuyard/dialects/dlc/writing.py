"""Our job written as a params file. Only jobs that came through dlc can be: other files say more than it can."""

from __future__ import annotations

from gpuyard.dialects.dlc import params
from gpuyard.dialects.dlc.libraries import installing
from gpuyard.dialects.dlc.priorities import to_theirs
from gpuyard.dialects.native.writing import exact_bytes, exact_milli
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Cause, Origin, RoleSpec, Spec

Pairs = list[tuple[str, str]]


def write(spec: Spec, group: str | None) -> str:
    origin = spec.origin or Origin("dlc", (("kind", "BatchJob"),))
    pairs: Pairs = [("name", origin.fact("name") or spec.name), ("kind", origin.fact("kind"))]
    for role in _as_asked(spec, origin):
        pairs += _role(role)
    pairs += [("command", _command(spec, origin)), ("priority", str(to_theirs(spec.priority)))]
    pairs += [("workspace_id", group)] if group else []
    pairs += _shared(spec.roles[0])
    if spec.max_seconds is not None:
        pairs.append(("job_max_running_time_minutes", str(round(spec.max_seconds / 60))))
    if spec.preemptible:
        pairs.append(("enable_preemptible_job", "true"))
    if restarts := spec.retries.get(Cause.EXIT, 0):
        args = f"--enable-job-restart True --max-num-of-job-restart {restarts}"
        pairs += [("aimaster_enable", "true"), ("aimaster_args", args)]
    if any(role.name == "chief" and role.completes for role in spec.roles):
        pairs.append(("success_policy", "ChiefWorker"))
    remembered = [(name, value) for name, value in origin.facts if name not in ("kind", "promoted", "name")]
    return params.join(pairs + remembered)


def _as_asked(spec: Spec, origin: Origin) -> list[RoleSpec]:
    """A worker that was made master is counted among the workers again."""
    if origin.fact("promoted") != "true":
        return list(spec.roles)
    count = sum(role.replicas for role in spec.roles)
    master = spec.roles[0]
    return [RoleSpec("worker", master.command, count, master.resources, master.image)]


def _role(role: RoleSpec) -> Pairs:
    asked = role.resources
    pairs: Pairs = [("count", str(role.replicas))]
    if asked.cpu_milli is not None:
        pairs.append(("cpu", str(exact_milli(asked.cpu_milli))))
    pairs.append(("gpu", str(exact_milli(asked.cards.milli)) if asked.cards else "0"))
    if asked.cards and asked.cards.models:
        pairs.append(("gpu_type", asked.cards.models[0]))
    for key, amount in (("memory", asked.memory), ("shared_memory", asked.shm)):
        if amount is not None:
            pairs.append((key, _memory(amount)))
    if role.image is not None:
        pairs.append(("image", role.image))
    return [(f"{role.name}_{key}", value) for key, value in pairs]


def _memory(amount: int) -> str:
    if amount % GIB == 0:
        return str(amount // GIB)
    written = exact_bytes(amount)
    return f"{written}i" if isinstance(written, str) else f"{written}B"


def _command(spec: Spec, origin: Origin) -> str:
    before = installing(origin.fact("thirdparty_libs"), origin.fact("thirdparty_lib_dir"))
    return spec.roles[0].command[-1].removeprefix(before)


def _shared(role: RoleSpec) -> Pairs:
    pairs: Pairs = []
    if role.where.nodes:
        pairs.append(("node_names", ",".join(role.where.nodes)))
    if role.env:
        pairs.append(("envs", ",".join(f"{name}={value}" for name, value in role.env)))
    return pairs
