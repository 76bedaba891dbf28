"""`dlc create job`: the params file and the flags as one text, which the server reads. What the file says wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuyard.dialects.dlc import ids, params, tables
from gpuyard.dialects.dlc.keys import ALL_KEYS, TRUE
from gpuyard.doors.asking import Server
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc import asked, config
from gpuyard.doors.dlc.saying import Failed, failure_of, new_request_id, warn
from gpuyard.sdk.errors import YardApiError


def run(given: Given) -> int:
    file = given.text("params_file")
    text = _file(file) if "params_file" in given.flags else ""
    whole = params.with_flags(text, [(key, given.flags[key]) for key in ALL_KEYS if key in given.flags])
    with config.server(given) as server:
        request_id = new_request_id()
        try:
            made = server.post_text("/workloads", _with_group(server, whole), request_id, dialect="dlc")
        except YardApiError as refusal:
            raise _in_the_file(refusal, file) from refusal
        job = ids.job_id(str(made["id"]))
        print(tables.boxed(("JobId", "RequestId"), [(job, request_id)]), flush=True)
        for note in (*made["notes"], *made["warnings"]):
            warn(note)
        if not _is_interactive(whole):
            return 0
        from gpuyard.doors.dlc.watching import watch

        return watch(server, job)


def _file(name: str) -> str:
    """No more of it is read than the server takes."""
    if not name:
        raise Failed('flag needs a file: "--params_file"')
    try:
        with Path(name).open("rb") as file:
            data = file.read(params.MAX_BYTES + 1)
        if len(data) > params.MAX_BYTES:
            raise Failed(f"open {name}: too large, at most {params.MAX_BYTES // 1024} KB")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise Failed(f"open {name}: not a text file in UTF-8") from problem
    except OSError as problem:
        raise Failed(f"open {name}: {config.reason(problem)}") from problem


def _with_group(server: Server, text: str) -> str:
    """The id of the workspace replaced by the name of the group that it is here."""
    entry = next((entry for entry in params.split(text)[0] if entry.key == "workspace_id" and entry.value), None)
    if entry is None:
        return text
    group = asked.group(server, entry.value)
    lines = text.split("\n")
    lines[entry.line - 1] = f"workspace_id={group}"
    return "\n".join(lines)


def _is_interactive(text: str) -> bool:
    return any(entry.key == "interactive" and entry.value.lower() in TRUE for entry in params.split(text)[0])


def _in_the_file(refusal: YardApiError, file: str) -> Failed:
    """With the line in the file; what came as a flag has none, and is known by its name."""
    problems: list[Any] = list(refusal.problems)
    told = []
    for problem in problems:
        text, line = str(problem.facts.get("text") or problem.message), problem.facts.get("line")
        is_in_file = file and line and "text" in problem.facts
        told.append(f"{file} line {line}: {text}" if is_in_file else text)
    return Failed("; ".join(dict.fromkeys(told)), refusal.status) if told else failure_of(refusal)
