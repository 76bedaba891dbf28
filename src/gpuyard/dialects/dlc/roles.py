"""The roles of a params file: each with its own image and amounts; who of them leads, and who ends the job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.dlc import finding, keys
from gpuyard.dialects.dlc.finding import Findings
from gpuyard.dialects.native.places import MAX_WHERE_NODES, MODEL_RULE, NODE_RULE
from gpuyard.dialects.native.writing import exact_bytes, exact_milli
from gpuyard.domain.images import read_image_name
from gpuyard.domain.workload import ENV_NAME_RULE, MAX_REPLICAS

MEMORY_EXPECTED = "GB like 4, or an amount like 512Mi or 128Gi"
# Of an MPIJob only the first node runs the command; the others wait to be called, and are ended with it.
WAITING = "[ ! -x /usr/sbin/sshd ] || /usr/sbin/sshd -D; while :; do sleep 60; done"
_ASCEND = re.compile(r"ascend|huawei|\b910|\b310", re.IGNORECASE)

Role = dict[str, Any]


def read_roles(found: Findings, kind: str, command: str) -> tuple[dict[str, Role], dict[str, str]]:
    """The roles of our job file, and what is to be remembered of them."""
    _check_foreign(found, kind)
    shared = _shared(found)
    roles = {role: _role(found, role, command, shared) for role in keys.ROLES_OF[kind] if _is_there(found, role)}
    counts = [found.entries[key] for role in keys.ROLES_OF[kind] if (key := f"{role}_count") in found.entries]
    if not any(keys.ROLE_KEYS.get(key, ("",))[0] in keys.ROLES_OF[kind] for key in found.entries):
        found.wrong('required flag(s) "worker_count" not set')
    elif counts and all(count.value == "0" for count in counts):
        found.wrong("a job needs at least one node", counts[0].line_in_file)
    total = sum(role.get("replicas", 1) for role in roles.values())
    if kind in keys.NAMES_ALL and total > keys.MOST_NAMED:
        found.wrong(f"a {kind} has at most {keys.MOST_NAMED} nodes, not {total}", counts[0].line_in_file)
    _name_unused(found, kind, roles)
    return _arranged(kind, roles, found.text("success_policy"))


def _name_unused(found: Findings, kind: str, roles: Mapping[str, Role]) -> None:
    """What is said of nodes and cards that nobody asked for, and how a job ends that no chief ends."""
    for key, (role, part) in keys.ROLE_KEYS.items():
        if not found.text(key) or part == "count":
            continue
        if role not in roles and found.text(f"{role}_count") == "0":
            found.ignore(key, "door.unused.dlc_no_node")
        elif part == "gpu_type" and role in roles and "cards" not in roles[role]:
            found.ignore(key, "door.unused.dlc_no_gpu")
    policy = found.text("success_policy")
    if policy and (kind != keys.TENSORFLOW or (policy == "ChiefWorker" and "chief" not in roles)):
        found.ignore("success_policy", "door.unused.dlc_success")


def check_amounts(found: Findings) -> None:
    """What is wrong with the roles as far as it can be said without a kind."""
    for role in keys.ROLES:
        found.read(f"{role}_count", finding.whole(0, MAX_REPLICAS), f"a whole number up to {MAX_REPLICAS}")
        _amounts(found, role)


def _check_foreign(found: Findings, kind: str) -> None:
    """Amounts for a role that jobs of this kind do not have."""
    own = keys.ROLES_OF[kind]
    for key, entry in found.entries.items():
        role = keys.ROLE_KEYS.get(key, ("", ""))[0]
        if role and role not in own and found.text(f"{role}_count") != "0" and entry.value:
            found.wrong(f'a {kind} has no {keys.TYPE_OF_ROLE[role]}: "{key}"', entry.line_in_file)


def _is_there(found: Findings, role: str) -> bool:
    """A count alone makes a role; anything else of it without a count is a file that was not finished."""
    count = found.read(f"{role}_count", finding.whole(0, MAX_REPLICAS), f"a whole number up to {MAX_REPLICAS}")
    others = [key for key in found.entries if keys.ROLE_KEYS.get(key, ("", ""))[0] == role and found.text(key)]
    if f"{role}_count" not in found.entries and others:
        found.wrong(f'required flag(s) "{role}_count" not set')
    return bool(count)


def _shared(found: Findings) -> Role:
    """What every role gets."""
    shared: Role = {}
    if names := found.read("node_names", _nodes, "comma separated names of nodes"):
        shared["where"] = {"nodes": names}
    if envs := found.read("envs", _envs, "k=v,k=v"):
        shared["env"] = envs
    return shared


def _nodes(value: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if len(names) > MAX_WHERE_NODES or not all(NODE_RULE.fullmatch(name) for name in names):
        raise ValueError("not names of nodes")
    return names


def _envs(value: str) -> dict[str, str]:
    envs = {}
    for pair in value.split(","):
        name, equals, text = pair.partition("=")
        if not equals or not ENV_NAME_RULE.match(name.strip()):
            raise ValueError("not a variable")
        envs[name.strip()] = text
    return envs


def _role(found: Findings, role: str, command: str, shared: Role) -> Role:
    data: Role = {"command": command}
    if (count := int(found.text(f"{role}_count"))) != 1:
        data["replicas"] = count
    data |= _amounts(found, role)
    if image := found.read(f"{role}_image", _image, "the name of an image"):
        data["image"] = image
    if found.text(f"{role}_spec"):
        found.ignore(f"{role}_spec", "door.unused.dlc_spec")
    return data | shared


def _amounts(found: Findings, role: str) -> Role:
    data: Role = {}
    if cards := found.read(f"{role}_gpu", finding.gpu, "a number of GPUs like 0, 1 or 8"):
        data |= {"cards": exact_milli(cards), **_model(found, f"{role}_gpu_type")}
    if cpu := found.read(f"{role}_cpu", finding.cpu, "cores like 4, 0.5 or 500m"):
        data["cpu"] = exact_milli(cpu)
    if memory := found.read(f"{role}_memory", finding.memory, MEMORY_EXPECTED):
        data["memory"] = exact_bytes(memory)
    if shm := found.read(f"{role}_shared_memory", finding.memory, MEMORY_EXPECTED):
        data["shm"] = exact_bytes(shm)
    return data


def _model(found: Findings, key: str) -> Role:
    model = found.read(key, _model_name, "a model of GPU like nvidia_a100-sxm4-80gb")
    if not model:
        return {}
    return {"models": [model]} | ({"device": "ascend"} if _ASCEND.search(model) else {})


def _model_name(value: str) -> str:
    if not MODEL_RULE.fullmatch(value):
        raise ValueError("not a model")
    return value


def _image(value: str) -> str:
    if read_image_name(value) is None:
        raise ValueError("not an image")
    return value


def _arranged(kind: str, roles: dict[str, Role], success_policy: str) -> tuple[dict[str, Role], dict[str, str]]:
    facts: dict[str, str] = {}
    if kind in keys.PROMOTES and "master" not in roles and "worker" in roles:
        roles, facts = _promoted(roles["worker"]), {"promoted": "true"}
    if kind == "MPIJob" and "worker" in roles:
        roles["worker"]["command"] = WAITING
        roles["master"]["completes"] = True
    if kind == keys.TENSORFLOW and (ending := _ends_the_job(roles, success_policy)):
        roles[ending]["completes"] = True
    return roles, facts


def _promoted(workers: Role) -> dict[str, Role]:
    """The first worker is the master."""
    count = workers.get("replicas", 1)
    master = {key: value for key, value in workers.items() if key != "replicas"}
    if count == 1:
        return {"master": master}
    rest = dict(master) | ({"replicas": count - 1} if count > 2 else {})
    return {"master": master, "worker": rest}


def _ends_the_job(roles: Mapping[str, Role], success_policy: str) -> str:
    """Which role's end is the end of a TFJob: parameter servers never end by themselves."""
    if success_policy == "ChiefWorker" and "chief" in roles:
        return "chief"
    if not roles.keys() & {"ps", "evaluator", "graphlearn"}:
        return ""
    return next((role for role in ("worker", "chief") if role in roles), "")
