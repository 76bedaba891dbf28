"""What to tell about a job the server has just taken: its warnings, and whether it can start at all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpuyard.cli.output import note, printable
from gpuyard.cli.phrases import say
from gpuyard.domain.reasons import Code
from gpuyard.sdk.errors import YardApiError

if TYPE_CHECKING:
    from gpuyard.sdk.job import Job

LOOKS_AFTER_SECONDS = (0.1, 0.2)  # the scheduler looks at once; nobody should wait longer than this for a hint


def tell_warnings(job: Job) -> None:
    for text in job.warnings:
        note(say("run.warning", text=printable(text)))


def tell_if_never(job: Job) -> None:
    """A warning when it can never start. Not knowing is no failure: the job is taken."""
    try:
        for pause in LOOKS_AFTER_SECONDS:
            time.sleep(pause)
            job = job.refresh()
            if job.reason_code != Code.NEW.value:
                break
    except YardApiError:
        return
    if job.can_never_start:
        note(say("run.warning", text=never_in_words(job.reason)))


def never_in_words(reason: str) -> str:
    """That it can never start, said once: most reasons begin with it."""
    told = printable(reason)
    return told if say("never.words") in told else say("preview.never", reason=told)
