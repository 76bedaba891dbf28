"""What would happen if a job file were submitted now, and which changes would start it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query

from gpuyard import words
from gpuyard.api import models, submitting
from gpuyard.api.bringing import is_workspace
from gpuyard.api.errors import told_reason
from gpuyard.api.finding import glasses
from gpuyard.api.guard import Caller, Doors
from gpuyard.api.views import estimate_out
from gpuyard.api.workloads import DIALECT_QUERY, JOB_BODY, WORKDIR_QUERY, SentJob, Submitting
from gpuyard.dialects.brought import guess
from gpuyard.domain.reasons import NEVER_STARTS, Reason
from gpuyard.domain.workload import Spec, Workload
from gpuyard.scheduling.snapshot import Preview, Remedy

doors = Doors(prefix="/api/v1", tags=["workloads"])
Offers = Annotated[bool, Query(description="also look for changes that would start it, which takes longer")]


@doors.post(
    "/preview",
    response_model=models.PreviewOut,
    openapi_extra=JOB_BODY | {"parameters": [WORKDIR_QUERY, DIALECT_QUERY]},
)
def preview(caller: Submitting, sent: SentJob, remedies: Offers = False) -> Any:
    """What would happen if this were submitted now."""
    policy = caller.policies.known(caller.now)
    taken = sent.read(caller, policy)
    job = taken.job
    workload = submitting.draft(caller, job, policy)
    problems = submitting.problems_of(caller, job.spec)
    outlook = caller.parts.preview(workload, caller.actor.user.groups if remedies and not problems else None)
    return told(caller, job.spec, problems, outlook, taken.notes, _expected(caller, workload, outlook))


Whose = Annotated[Literal["auto", "native", "dlc", "volcano"], Query(description="auto: by what the file looks like")]
FileName = Annotated[str, Query(max_length=255, description="helps to tell whose file it is")]


@doors.post("/read", response_model=models.ReadOut, openapi_extra=JOB_BODY)
def read(caller: Submitting, sent: SentJob, dialect: Whose = "auto", filename: FileName = "") -> Any:
    """What a file of another system becomes as a job file of ours. Nothing is created."""
    policy = caller.policies.known(caller.now)
    if dialect == "auto":
        found = guess(sent.body.decode("utf-8", "replace"), filename)
        sent = replace(sent, dialect=found, content_type="application/yaml")
    taken = sent.read(caller, policy)
    group = None if is_workspace(taken.job.group) else taken.job.group
    job = submitting.written(taken.job.spec, group, policy)
    notes = [models.ProblemOut(**told_reason(note, caller.language)) for note in taken.notes]
    return models.ReadOut(dialect=sent.dialect, job=job, notes=notes)


def _expected(caller: Caller, workload: Workload, outlook: Preview) -> models.EstimateOut | None:
    never = outlook.reason is not None and outlook.reason.code in NEVER_STARTS
    ahead = caller.parts.outlook
    if ahead is None or outlook.starts or never:
        return None
    return estimate_out(ahead.preview(workload), caller.say)


def told(
    caller: Caller,
    spec: Spec,
    problems: Sequence[Reason],
    outlook: Preview,
    read: Sequence[Reason] = (),
    start: models.EstimateOut | None = None,
) -> models.PreviewOut:
    notes = [*submitting.image_notes(caller, spec), *outlook.notes]
    return models.PreviewOut(
        starts=outlook.starts and not problems,
        **_reason(caller, outlook),
        nodes=list(outlook.nodes),
        position=outlook.position,
        ahead=list(outlook.ahead),
        problems=[models.ProblemOut(**told_reason(problem, caller.language)) for problem in problems],
        warnings=[caller.say(note) for note in notes],
        notes=[caller.say(note) for note in read],
        remedies=[_offer(caller, remedy) for remedy in outlook.remedies],
        expected_start=start,
    )


def _reason(caller: Caller, outlook: Preview) -> dict[str, Any]:
    """Why it would wait, without what is not the asker's to know."""
    if outlook.reason is None:
        return {"never": False, "reason": None, "reason_code": None, "reason_facts": {}}
    with caller.parts.database.read() as conn:
        reason = glasses(caller, conn, [outlook.reason]).reason(outlook.reason)
    return {
        "never": reason.code in NEVER_STARTS,
        "reason": caller.say(reason),
        "reason_code": reason.code.value,
        "reason_facts": dict(reason.facts),
    }


def _offer(caller: Caller, remedy: Remedy) -> models.OfferOut:
    changes = dict(remedy.changes)
    told = words.remedy_words(changes, remedy.nodes, caller.language)
    return models.OfferOut(kind=remedy.kind, changes=changes, nodes=list(remedy.nodes), words=told)
