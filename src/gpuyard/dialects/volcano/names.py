"""What things are called there, and here: jobs, tasks, pods."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_NAME = 63
LONGEST_ROLE = 16
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_NOT_IN_ROLES = re.compile(r"[^a-z0-9]+")

SUBDOMAIN_WORDS = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_WORDS = (
    "a DNS-1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def job_name(written: str) -> str:
    """`test_job1` is submitted as `test-job1`, and found again under both."""
    return written.strip().replace("_", "-")


def is_job_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and bool(_SUBDOMAIN.fullmatch(name))


def is_task_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and bool(_LABEL.fullmatch(name))


def pod_name(job: str, task: str, index: int) -> str:
    return f"{job}-{task}-{index}"


def role_names(tasks: Sequence[str]) -> list[str]:
    """A role for each task: `task-0` becomes `task0`. No two are alike."""
    roles: list[str] = []
    for task in tasks:
        plain = _NOT_IN_ROLES.sub("", task.lower())
        base = (plain if plain[:1].isalpha() else f"task{plain}")[:LONGEST_ROLE]
        number, role = 1, base
        while role in roles:
            number += 1
            role = f"{base[: LONGEST_ROLE - len(str(number))]}{number}"
        roles.append(role)
    return roles
