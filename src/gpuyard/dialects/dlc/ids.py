"""Ids as dlc writes them, made from ours: reversible for jobs, found again by comparing for workspaces."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
JOB, WORKSPACE = "dlc", "ws"
CHECK_LENGTH, WORKSPACE_LENGTH = 3, 14
_OWN = re.compile(r"[a-z][a-z0-9]{9}\Z")  # as the domain has it, whose other rules would take long to load
WORKSPACE_RULE = re.compile(r"ws[0-9a-z]{14}\Z")
_POD = re.compile(r"(dlc[0-9a-z]{13})-([a-z][a-z0-9]{0,15})-([0-9]{1,6})\Z")


def job_id(id: str) -> str:
    """`dlc`, three characters that tell a typing mistake, and our own id: 13 characters of base 36, as they know it."""
    return f"{JOB}{_base36('job ' + id, CHECK_LENGTH)}{id}"


def own_id(text: str) -> str | None:
    """Our id of a job that dlc calls so; None when no job can be called so."""
    id = text[len(JOB) + CHECK_LENGTH :]
    return id if _OWN.match(id) and text == job_id(id) else None


@lru_cache(maxsize=1024)  # a list names the same few again and again
def workspace_id(group: str) -> str:
    return WORKSPACE + _base36(f"workspace {group}", WORKSPACE_LENGTH)


def group_of(workspace: str, groups: Iterable[str]) -> str | None:
    """Which of these groups is meant, by its workspace id or by its name."""
    known = list(groups)
    return next((group for group in known if workspace_id(group) == workspace), None) or (
        workspace if workspace in known else None
    )


def pod_id(job: str, replica: str) -> str:
    """`worker-0` of a job -> `dlc...-worker-0`."""
    return f"{job}-{replica}"


def pod_parts(pod: str) -> tuple[str, str, int] | None:
    """`dlc...-worker-0` -> the job's id as dlc writes it, the role, the number."""
    match = _POD.match(pod)
    return (match.group(1), match.group(2), int(match.group(3))) if match else None


def uid(text: str) -> str:
    """The same for the same text, in the form of a UUID."""
    digest = hashlib.sha256(f"uid {text}".encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _base36(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") % 36**length
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 36)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits))
