"""`job view`: everything of one job, in their block of labels. Two spaces for each level, a TAB before the value."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gpuyard.dialects.volcano.commands import in_folder
from gpuyard.dialects.volcano.quantities import show_bytes, show_milli
from gpuyard.dialects.volcano.telling import (
    SCHEDULER,
    Item,
    counters,
    facts_of,
    least,
    mapping_in,
    namespace,
    phase,
    retry_count,
    task_names,
)

API_VERSION = "batch.volcano.sh/v1alpha1"
NONE = "<none>"
_GOOD_ENDS = frozenset({"ended.succeeded", "ended.stopped", "ended.paused"})
_EVENT = "{:<15}\t{:<40}\t{:<30}\t{:<40}\t{}"
_POD_NOTES = (
    "Cri . Cci . Io / Container - Type:          ",
    "Kubernetes . Io / Availablezone:            ",
    "Network . Alpha . Kubernetes . Io / Network:",
)


def job_view(item: Item, file: Mapping[str, Any], events: Sequence[Item], ages: Sequence[str]) -> str:
    """`file` is its job file, `ages` say how long ago each of the events was."""
    facts = facts_of(item)
    lines = [*_head(item, facts), "Spec:", *_spec(item, file, facts), "Status:", *_status(item)]
    return "\n".join([*lines, *_events(events, ages)])


def _head(item: Item, facts: Mapping[str, str]) -> list[str]:
    created = f"{item['submitted_at'][:10]} {item['submitted_at'][11:19]} +0000 UTC"
    return [
        f"Name:       \t{item['name']}",
        f"Namespace:  \t{namespace(item)}",
        f"Labels:     \t{_told(facts.get('labels'))}",
        f"Annotations:\t{_told(facts.get('annotations'))}",
        f"API Version:\t{API_VERSION}",
        "Kind:       \tJob",
        "Metadata:",
        f"  Creation Timestamp:\t{created}",
        "  Generate Name:     \t",
        "  Generation:        \t1",
        "  Resource Version:  \t",
        "  Self Link:         \t",
        f"  UID:               \t{item['id']}",
    ]


def _spec(item: Item, file: Mapping[str, Any], facts: Mapping[str, str]) -> list[str]:
    plugins = mapping_in(facts.get("plugins"))
    lines = [
        f"  Min Available:     \t{least(item)}",
        "  Plugins:",
        f"    Env:\t{_go_list(plugins.get('env'))}",
        f"    Ssh:\t{_go_list(plugins.get('ssh'))}",
        f"  Scheduler Name:    \t{SCHEDULER}",
        "  Tasks:",
    ]
    tasks, folders = task_names(item), mapping_in(facts.get("folders"))
    for role in item["roles"]:
        name = role["name"]
        in_file = (file.get("roles") or {}).get(name) or file
        task = tasks.get(name, name)
        lines += _task(task, role, in_file.get("ports") or [], str(folders.get(name) or ""))
        lines.append(f"        Restart Policy:   \t{_restarts(file.get('retries'))}")
    return lines


def _as_written(command: Sequence[str], folder: str) -> Sequence[str]:
    """Without the way to the working folder, which is told by itself."""
    way = in_folder("", folder)
    if len(command) != 3 or list(command[:2]) != ["sh", "-c"] or not folder or not command[2].startswith(way):
        return command
    line = command[2].removeprefix(way)
    return shlex.split(line.removeprefix("exec ")) if line.startswith("exec ") else ["sh", "-c", line]


def _restarts(retries: Any) -> str:
    count = retries.get("exit") if isinstance(retries, Mapping) else retries
    return "OnFailure" if count else "Never"


def _task(name: str, role: Item, ports: Sequence[Item], folder: str) -> list[str]:
    lines = [f"    Name:\t{name}", f"    Replicas:\t{role['replicas']}", "    Template:", "      Metadata:"]
    lines += ["        Annotations:", *(f"          {note}\t" for note in _POD_NOTES)]
    lines += ["        Creation Timestamp:\t0001-01-01 00:00:00 +0000 UTC", "      Spec:", "        Containers:"]
    words = [line for word in _as_written(role["command"], folder) for line in word.rstrip("\n").split("\n")]
    lines += ["          Command:", *(f"            {_plain(word)}" for word in words)]
    lines += [f"          Image:\t{role['image'] or ''}", f"          Name: \t{name}", "          Ports:"]
    for port in ports:
        lines += [
            f"            Container Port:\t{port['number']}",
            f"            Name:          \t{port.get('name', '')}",
        ]
    lines += ["          Resources:"]
    cpu = show_milli(round(role["cpu"] * 1000)) if role["cpu"] else "0"
    memory = show_bytes(role["memory"]) if role["memory"] else "0"
    for what in ("Limits", "Requests"):
        lines += [f"            {what}:", f"              Cpu:   \t{cpu}", f"              Memory:\t{memory}"]
    return [*lines, f"            Working Dir:\t{_plain(folder)}", "        Image Pull Secrets:"]


def _status(item: Item) -> list[str]:
    labels = {"Succeeded": "Succeeded:    ", "Pending": "Pending:      ", "Running": "Running:      "}
    labels["Failed"] = "Failed:       "
    lines = [f"  {labels[name]}\t{count}" for name, count in counters(item).items() if count]
    retries = retry_count(item)
    lines += [f"  RetryCount:   \t{retries}"] if retries else []
    lines += [f"  Min Available:\t{least(item)}", "  State:", f"    Phase:\t{phase(item)}"]
    return lines


def _events(events: Sequence[Item], ages: Sequence[str]) -> list[str]:
    if not events:
        return [f"Events: \t{NONE}"]
    rule = ["-------"] * 5
    lines = ["Events:", _EVENT.format("Type", "Reason", "Age", "Form", "Message"), _EVENT.format(*rule)]
    for event, age in zip(events, ages, strict=True):
        lines.append(
            _EVENT.format(_type(event["code"]), _reason(event["code"]), age, "gpuyard", _plain(event["message"]))
        )
    return lines


def _type(code: str) -> str:
    is_bad = (code.startswith("ended.") and code not in _GOOD_ENDS) or code == "story.retry"
    return "Warning" if is_bad else "Normal"


def _reason(code: str) -> str:
    """`story.stop_asked` as their reasons are written: `StopAsked`."""
    return "".join(word.capitalize() for word in code.rpartition(".")[2].split("_"))


def age(seconds: float) -> str:
    """As they write how long ago something was: `90s`, `5m30s`, `3h`, `2d4h`."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole >= -1 else "<invalid>"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"
    if hours < 17520:
        return f"{hours // 24}d"
    years = hours // 24 // 365
    return f"{years}y{hours // 24 % 365}d" if hours < 70080 else f"{years}y"


def _plain(text: object) -> str:
    """On one line, without anything that a terminal obeys."""
    return "".join(character if character.isprintable() else "�" for character in str(text))


def _told(text: str | None) -> str:
    """Labels as they were written down, if that makes sense."""
    labels = {_plain(key): _plain(value) for key, value in mapping_in(text).items()}
    return json.dumps(labels, ensure_ascii=False, separators=(",", ":")) if labels else NONE


def _go_list(words: Any) -> str:
    return f"[{' '.join(map(_plain, words))}]" if isinstance(words, list) else "[]"
