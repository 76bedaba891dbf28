"""A replica's record put into the domain's words. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from gpuyard.domain.reasons import NO_USE_RETRYING, Code, Reason, because
from gpuyard.domain.workload import Cause, Life, ReplicaId, Seen
from gpuyard.engines.process.supervision import record

_SEEN_BEFORE = NO_USE_RETRYING | {Code.UPLOAD_UNDER_WAY, Code.CONTAINER_FAILED}
_LIVES = {record.STARTING: Life.STARTING, record.RUNNING: Life.RUNNING, record.ENDED: Life.ENDED}


def seen(id: ReplicaId, status: Mapping[str, Any], node: str) -> Seen:
    life = _LIVES.get(status.get("life", ""), Life.STARTING)
    if life is not Life.ENDED:
        return Seen(life, started_at=status.get("started_at"))
    cause, reason = _why(id, status, node)
    return Seen(life, status.get("exit_code"), cause, reason, status.get("started_at"), status.get("ended_at"))


def _why(id: ReplicaId, status: Mapping[str, Any], node: str) -> tuple[Cause | None, Reason | None]:
    name = id.short
    match status.get("how"):
        case record.GOOD | record.STOPPED:
            return None, None
        case record.EXITED:
            return Cause.EXIT, because(Code.EXIT_CODE, exit_code=status["exit_code"], replica=name)
        case record.SIGNALLED:
            return Cause.EXIT, because(Code.SIGNALLED, signal=_signal_name(status["signal"]), replica=name)
        case record.OOM:
            return Cause.OOM, because(Code.OUT_OF_MEMORY, memory=status["memory"], replica=name)
        case record.LAUNCH:
            return Cause.LAUNCH, _why_not_started(status, name)
        case record.REBOOTED:
            return Cause.LOST, because(Code.REBOOTED, node=node, replica=name)
        case _:
            return Cause.LOST, because(Code.SUPERVISOR_LOST, replica=name)


def _why_not_started(status: Mapping[str, Any], name: str) -> Reason:
    """What was seen just before the start, told from inside: believed as far as it is one of the codes for that."""
    problem = status.get("problem") or {}
    code = next((code for code in _SEEN_BEFORE if code.value == problem.get("code")), None)
    if code is None:
        return because(Code.LAUNCH_FAILED, detail=_writable(status["detail"]), replica=name)
    told = {key: value for key, value in problem.items() if isinstance(value, str) and key != "code"}
    facts = {_writable(key)[:100]: _writable(value)[:1000] for key, value in list(told.items())[:20]}
    return Reason(code, facts | {"replica": name})


def _writable(text: str) -> str:
    """Names of files, and whatever a user's program tells, can hold halves of characters that no answer can."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
