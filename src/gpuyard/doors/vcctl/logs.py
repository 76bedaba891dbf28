"""`job logs`: the output of a job, or why there is none yet."""

from __future__ import annotations

import sys
from typing import Any

from gpuyard.dialects.volcano import telling
from gpuyard.doors.asking import Server, in_path
from gpuyard.doors.cobra import Given
from gpuyard.doors.vcctl.failing import Failure
from gpuyard.doors.vcctl.finding import find_job
from gpuyard.doors.vcctl.master import server_of

MOST_LINES = 100_000
MOST_BYTES = 4 << 20
PIECE = 1 << 16
_NOT_YET = frozenset({"queued", "placed", "starting", "paused"})
_PHRASES = {
    "en": ("job {name} is {phase}: {reason}", "It would start now with:"),
    "zh": ("作业 {name} 处于 {phase}：{reason}", "这样修改就可以马上启动："),
}


def logs(given: Given) -> None:
    if not given.text("name"):
        raise Failure("job name is mandatory to show the logs of a particular job")
    lines = given.number("lines") if "lines" in given.flags else None
    if lines is not None and lines < 1:
        raise Failure(f'invalid argument "{given.text("lines")}" for "-L, --lines" flag: must be greater than 0')
    with server_of(given) as server:
        job = server.get(f"/workloads/{in_path(find_job(server, given)['id'])}")
        written = _write_logs(server, job, lines) if job["attempt"] else 0
        if job["state"] in _NOT_YET or (job["state"] != "succeeded" and not written):
            _say_why(server, job, beside=bool(written))


def _write_logs(server: Server, job: dict[str, Any], lines: int | None) -> int:
    """Of every replica, under its pod's name where there are several. How many bytes there were."""
    pods = telling.pods(job, job["roles"])
    written = 0
    for replica, pod in pods:
        if len(pods) > 1:
            _put(f"==> {pod} <==\n".encode())
        written += _write_log(server, job["id"], replica, lines)
    return written


def _write_log(server: Server, id: str, replica: str, lines: int | None) -> int:
    path = f"/workloads/{in_path(id)}/logs"
    if lines is None:
        with server.stream(f"{path}/download", replica=replica) as answer:
            return _pass_on(answer)
    place: dict[str, Any] = {"tail": min(lines, MOST_LINES)}
    written, size = 0, None
    while True:
        with server.stream(path, replica=replica, limit=MOST_BYTES, **place) as answer:
            written += _pass_on(answer)
            end = int(answer.getheader("X-Log-End") or 0)
            size = int(answer.getheader("X-Log-Size") or 0) if size is None else size
        if end >= size or end == place.get("offset"):
            return written
        place = {"offset": end}


def _pass_on(answer: Any) -> int:
    written = 0
    while piece := answer.read(PIECE):
        _put(piece)
        written += len(piece)
    return written


def _put(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say_why(server: Server, job: dict[str, Any], *, beside: bool) -> None:
    """Instead of a log, or beside what an earlier start of it has written."""
    says, remedies = _PHRASES.get(server.language, _PHRASES["en"])
    out = sys.stderr if beside else sys.stdout
    told: dict[str, Any] = {"reason": job["reason"], "facts": [], "remedies": []}
    if job["state"] == "queued":
        told = server.get(f"/workloads/{in_path(job['id'])}/why")
    print(says.format(name=job["name"], phase=telling.phase(job), reason=told["reason"]), file=out)
    for fact in told["facts"]:
        print(f"  - {fact['words']}", file=out)
    if told["remedies"]:
        print(remedies, file=out)
    for remedy in told["remedies"]:
        print(f"  - {remedy['words']}", file=out)
