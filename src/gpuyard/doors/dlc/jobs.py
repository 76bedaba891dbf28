"""`dlc get job` and `dlc stop job`."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gpuyard.dialects.dlc import keys, tables, telling
from gpuyard.dialects.dlc.names import replaced
from gpuyard.doors.asking import PAGE, Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.dlc import asked, config
from gpuyard.doors.dlc.saying import BAD_REQUEST, Failed, new_request_id, ok, warn

LONGEST_SEARCH = 63
OUTPUTS = ("table", "plain", "json")


def get(given: Given) -> int:
    with config.server(given) as server:
        if given.words:
            return _one(server, given)
        return _list(server, given)


def _one(server: Server, given: Given) -> int:
    job = asked.job(server, given.words[0])
    events = None
    if given.is_set("events") or given.is_set("events_only"):
        items = server.get(f"/workloads/{in_path(str(job['id']))}/events")["items"]
        events = items[-_most_events(given) :]
    if given.is_set("events_only"):
        print(telling.as_json([telling.event(event) for event in events or ()]))
    else:
        print(telling.job_json(job, new_request_id(), datetime.now(UTC), events))
    return 0


def _most_events(given: Given) -> int:
    most = given.number("max_events_num")
    if most < 1:
        raise Failed(f'invalid argument "{most}" for "--max_events_num" flag: expected 1 or more')
    return most


# --- the list -----------------------------------------------------------------------------------------------------


def _list(server: Server, given: Given) -> int:
    output = given.text("output") or ("table" if sys.stdout.isatty() else "plain")
    if output not in OUTPUTS:
        raise Failed(f'invalid argument "{output}" for "--output" flag: expected {", ".join(OUTPUTS)}')
    if given.text("resource_id"):
        warn("--resource_id is not used here: the quota is that of the workspace")
    found, now = _page(server, given), datetime.now(UTC)
    if given.is_set("show_detail") or output == "json":
        whole = [server.get(f"/workloads/{in_path(str(job['id']))}") for job in found]
        request_id = new_request_id()
        print(telling.as_json([telling.job_data(job, request_id, now) for job in whole]))
        return 0
    draw = tables.boxed if output == "table" else tables.columns
    print(draw(telling.LIST_HEADERS, [telling.row(job, now) for job in found]))
    return 0


def _page(server: Server, given: Given) -> list[dict[str, Any]]:
    number, size = given.number("page_num"), given.number("page_size")
    if number < 1 or size < 1:
        raise Failed("--page_num and --page_size count from 1")
    return list(itertools.islice(_matching(server, given), (number - 1) * size, number * size))


def _matching(server: Server, given: Given) -> Iterator[dict[str, Any]]:
    """The newest first. What the server cannot choose by is chosen here."""
    statuses, kind, pattern = _statuses(given), _kind(given), _pattern(given)
    since, until = window_of(given)
    states = ",".join(dict.fromkeys(state for status in statuses for state in telling.STATES[status]))
    if statuses and not states:
        return
    wanted = given.number("page_num") * given.number("page_size")
    filters = {
        "kind": "job",
        "state": states or None,
        "search": replaced(given.text("display_name"))[:LONGEST_SEARCH] or None,
        "group": asked.group(server, given.text("workspace_id")) if given.text("workspace_id") else None,
        "since": since.isoformat() if since else None,
        "until": until.isoformat() if until else None,
        "limit": min(PAGE, max(10, wanted)),
    }
    for job in server.every("/workloads", **filters):
        if statuses and telling.status(job) not in statuses:
            continue
        if kind and telling.kind(job) != kind:
            continue
        if pattern is None or pattern.search(telling.name(job)):
            yield job


def _statuses(given: Given) -> list[str]:
    statuses = [word.strip() for word in given.text("status").split(",") if word.strip()]
    for status in statuses:
        if status not in telling.STATES:
            known = ", ".join(telling.STATES)
            raise Failed(f'invalid argument "{status}" for "--status" flag: expected {known}')
    return statuses


def _kind(given: Given) -> str:
    kind = given.text("job_type")
    if kind and kind not in (*keys.KINDS, *keys.NOT_YET):
        raise Failed(f'invalid argument "{kind}" for "--job_type" flag: expected {", ".join(keys.KINDS)}')
    return kind


def _pattern(given: Given) -> re.Pattern[str] | None:
    text = given.text("display_name_regex")
    try:
        return re.compile(text) if text else None
    except re.error as problem:
        raise Failed(f'invalid argument "{text}" for "--display_name_regex" flag: {problem}') from problem


def window_of(given: Given) -> tuple[datetime | None, datetime | None]:
    """From when until when. Raises Failed for one that ends before it begins: nothing is ever in it."""
    start, end = _moment(given, "start_time"), _moment(given, "end_time")
    if start and end and end < start:
        written = given.text("end_time")
        raise Failed(f'invalid argument "{written}" for "--end_time" flag: it is before "--start_time"')
    return start, end


def _moment(given: Given, flag: str) -> datetime | None:
    text = given.text(flag)
    if not text:
        return None
    try:
        return telling.as_instant(text)
    except ValueError as problem:
        expected = "expected a time like 2026-11-16T09:30:00Z"
        raise Failed(f'invalid argument "{text}" for "--{flag}" flag: {expected}') from problem


# --- stop ---------------------------------------------------------------------------------------------------------


def stop(given: Given) -> int:
    id = given.words[0]
    with config.server(given) as server:
        job = asked.job(server, id)
        if telling.status(job) not in telling.ENDED and not _is_confirmed(given, id):
            raise Failed(f"Job [{id}] was not stopped: it was not confirmed")
        answer = server.post(f"/workloads/{in_path(str(job['id']))}/stop")
    status = telling.status(answer)
    if status in telling.ENDED:
        raise Failed(f"Job can't be stopped, because it is {status}", BAD_REQUEST)
    ok(f"Job [{id}] was stopped successfully")
    return 0


def _is_confirmed(given: Given, id: str) -> bool:
    if given.is_set("force") or given.is_set("quiet"):
        return True
    print(f"Are you sure you want to stop job [{id}]? (y/N): ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
