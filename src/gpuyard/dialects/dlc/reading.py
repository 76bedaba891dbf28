"""A params file read into our job file. What is wrong is told all at once, each with its line, in dlc's words."""

from __future__ import annotations

import re
from typing import Any

from gpuyard.dialects.brought import Brought, refused
from gpuyard.dialects.dlc import finding, keys
from gpuyard.dialects.dlc.finding import Findings
from gpuyard.dialects.dlc.ids import WORKSPACE_RULE
from gpuyard.dialects.dlc.libraries import installing
from gpuyard.dialects.dlc.names import LONGEST, is_name, plain_name
from gpuyard.dialects.dlc.params import MAX_BYTES, split
from gpuyard.dialects.dlc.priorities import HIGHEST, LOWEST, to_ours
from gpuyard.dialects.dlc.rest import read_rest
from gpuyard.dialects.dlc.roles import check_amounts, read_roles
from gpuyard.domain.people import NAME_RULE

NAME_EXPECTED = f"at most {LONGEST} characters that can be seen"
_CLOSED = re.compile(r"""(?:[^'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*+")*+\\?""", re.DOTALL)
_MAY_BE_CLOSED = re.compile(r"[#\n`]|<<|\$'")  # comments and texts within hold quotes that are no quotes
FOREIGN = "door.read.dlc_workspace"  # unless whoever knows the groups finds it among them
REMEMBERED = ("resource_id", "data_sources", "thirdparty_libs", "thirdparty_lib_dir")


def read(text: str) -> Brought:
    """Raises BadInput with everything that is wrong."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise refused(f"the params file is too large: at most {MAX_BYTES // 1024} KB")
    entries, mistakes = split(text)
    found = Findings({entry.key: entry for entry in entries})
    for mistake in mistakes:
        found.wrong(mistake.text, mistake.line)
    finding.check_keys(found)
    missing = [f'"{key}"' for key in keys.REQUIRED if key not in found.entries]
    if missing:
        found.wrong(f"required flag(s) {', '.join(missing)} not set")
    job = _job(found)
    found.raise_if_any()
    return Brought(job, tuple(found.unused), tuple(found.warnings))


def _job(found: Findings) -> dict[str, Any]:
    name = found.read("name", _name, NAME_EXPECTED) or ""
    job: dict[str, Any] = {"name": plain_name(name)}
    if name and name != job["name"]:
        found.warn("name", "door.read.name")
    if group := found.read("workspace_id", _workspace, "an id as 'dlc get workspace' shows it"):
        job["group"] = group
        if WORKSPACE_RULE.match(group):
            found.warn("workspace_id", FOREIGN)
    job["priority"] = to_ours(_priority(found))
    job |= read_rest(found)
    interactive = found.read("interactive", finding.truth, "true or false")
    command, kind = _command(found), _kind(found)
    if kind is None:
        check_amounts(found)
    else:
        roles, facts = read_roles(found, kind, command)
        remembered = {key: found.text(key) for key in REMEMBERED if found.text(key)}
        remembered |= {"interactive": "true"} if interactive else {}
        remembered |= {"name": name} if name != job["name"] else {}
        job |= {"roles": roles, "origin": {"door": "dlc", "facts": {"kind": kind, **facts, **remembered}}}
    return job


def _name(value: str) -> str:
    if not is_name(value):
        raise ValueError("not a name")
    return value


def _workspace(value: str) -> str:
    if not NAME_RULE.fullmatch(value):
        raise ValueError("not a workspace")
    return value


def _priority(found: Findings) -> int:
    expected = f"{LOWEST} to {HIGHEST}, {HIGHEST} is highest"
    return found.read("priority", finding.whole(LOWEST, HIGHEST), expected) or LOWEST


def _kind(found: Findings) -> str | None:
    kind = found.text("kind")
    if kind == keys.ELASTIC:
        found.warn("kind", "door.read.dlc_elastic")
    if kind in keys.KINDS or not kind:
        return kind or None
    line = found.entries["kind"].line_in_file
    there = ", ".join(keys.KINDS)
    if kind in keys.NOT_YET:
        found.wrong(f"kind {kind} cannot be run here yet; expected one of {there}", line)
        return None
    lowered = {known.lower(): known for known in keys.KINDS}
    near = lowered.get(finding.nearest(kind, tuple(lowered)), "")
    meant = f', did you mean "{near}"?' if near else ""
    found.wrong(f'unknown kind "{finding.shown(kind)}"{meant or ";"} expected one of {there}', line)
    return None


def _command(found: Findings) -> str:
    """With what is to be installed before it. No shell takes a quote that is never closed: such a file is not whole."""
    command = found.text("command")
    if not _CLOSED.fullmatch(command):
        if _MAY_BE_CLOSED.search(command):
            found.warn("command", "door.read.dlc_quote")
        else:
            found.bad("command", "every quotation mark to be closed")
    return installing(found.text("thirdparty_libs"), found.text("thirdparty_lib_dir")) + command
