"""How a container's work ended: from the porter's own record, from the engine, or from what is left. Mostly pure."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
from collections.abc import Mapping
from typing import Any

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container.wording import why_not_started
from gpuyard.engines.process.supervision import record

log = logging.getLogger(__name__)

_END = "end.json"
_MOST_BYTES = 65_536


def read_end(door: str) -> dict[str, Any] | None:
    """The porter's record. The folder is in the user's hands: nothing there is followed, waited for or believed to be
    more than it can be."""
    try:
        fd = os.open(os.path.join(door, _END), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        told = json.loads(os.read(fd, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)
    return told if isinstance(told, dict) and _is_code(told.get("exit_code")) else None


def _is_code(value: object) -> bool:
    return type(value) is int and 0 <= value <= 255


def told_by_porter(told: Mapping[str, Any], *, was_stopped: bool, oom_kills: int) -> dict[str, Any]:
    code: int = told["exit_code"]
    problem = told.get("problem")
    if isinstance(problem, dict) and not was_stopped:
        detail = str(problem.get("detail", ""))[:500]
        return {"how": record.LAUNCH, "exit_code": None, "signal": None, "detail": detail, "problem": problem}
    is_oom = bool(told.get("oom")) or oom_kills > 0
    return _judged(code, was_stopped=was_stopped, is_oom=is_oom)


def told_by_engine(code: int, last_words: str, *, was_stopped: bool, oom_kills: int) -> dict[str, Any]:
    """The porter left no record: it was killed, or never came so far."""
    if not was_stopped and not oom_kills and code not in (128 + signal.SIGKILL, 128 + signal.SIGTERM):
        detail = f"its first process ended with code {code}"
        return {
            "how": record.LAUNCH,
            "exit_code": None,
            "signal": None,
            "detail": f"{detail}: {last_words}" if last_words else detail,
        }
    return _judged(code, was_stopped=was_stopped, is_oom=oom_kills > 0)


def refused(id: ReplicaId, said: str) -> dict[str, Any]:
    """The engine would not start it. What it said is for the log; the record, which its owner reads, has our words."""
    log.warning("%s could not be started: %s", id, said)
    why = why_not_started(said, id.short)
    problem = {"code": why.code.value, **why.facts}
    return {"how": record.LAUNCH, "exit_code": None, "signal": None, "detail": "", "problem": problem}


def lost() -> dict[str, Any]:
    return {"how": record.LOST, "exit_code": None, "signal": None, "detail": ""}


def _judged(code: int, *, was_stopped: bool, is_oom: bool) -> dict[str, Any]:
    number = code - 128 if 128 < code <= 192 else None
    if was_stopped:
        how = record.STOPPED
    elif code and is_oom:
        how = record.OOM
    elif number is not None:
        how = record.SIGNALLED
    else:
        how = record.EXITED if code else record.GOOD
    return {"how": how, "exit_code": code, "signal": number, "detail": ""}
