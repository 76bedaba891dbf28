"""Why a workload is as it is, over HTTP: the proof, who comes first by which rule, and what would start it now."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from fastapi import Query

from gpuyard import words
from gpuyard.access.rights import Action, Refused
from gpuyard.api.finding import find_workload, glasses, visible
from gpuyard.api.guard import Caller, Doors
from gpuyard.api.views import REASONS_INSIDE, Glasses, expected, work_named
from gpuyard.api.why_models import AheadOut, BeforeOut, ReasonOut, RemedyOut, WhyOut
from gpuyard.api.workloads import Ref, Seeing
from gpuyard.domain.cluster import NodeState
from gpuyard.domain.errors import BadInput, NotFound
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ID_RULE, WORKPLACE_ROLE, Kind, State, Verdict, Workload
from gpuyard.scheduling.before import Answer, Past
from gpuyard.scheduling.snapshot import Ahead, Remedy, Why
from gpuyard.store import workloads as rows
from gpuyard.store.database import Connection
from gpuyard.world.outlook import NOTHING

doors = Doors(prefix="/api/v1", tags=["workloads"])

# Facts of rules that name persons; shown only of those whose work the asker may see.
PERSONS = ("who", "user", "other_user")
# What a dev environment can be started with instead, and how that is typed.
ENV_OPTIONS = {
    "cards": "--cards",
    "device": "--device",
    "models": "--model",
    "cpu": "--cpu",
    "memory": "--memory",
    "shm": "--shm",
}


@doors.get("/workloads/{ref}/why", response_model=WhyOut)
def why(
    caller: Seeing,
    ref: Ref,
    remedies: Annotated[bool, Query(description="false: without what would start it, which takes longer")] = True,
) -> Any:
    """Why it is as it is; for a waiting one the facts that show it, its place, and what would start it now."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
    proof = _proof(caller, workload, remedies) if workload.state is State.QUEUED else None
    reason = proof.reason if proof else workload.reason
    facts = [*_preempted(workload, reason), *(proof.facts if proof else ())]
    told = [reason, *facts]
    with caller.parts.database.read() as conn:
        ids = {ahead.workload for ahead in proof.ahead} if proof else set()
        known = visible(caller, conn, ids.union(*map(work_named, told)))
        seen = Glasses(caller.say, glasses(caller, conn).simulated_devices, known.__contains__)
        groups = {w.id: w.group for w in rows.get_many(conn, sorted(ids))}
    reason = seen.reason(reason)
    outlook = caller.parts.outlook
    moments = outlook.one(workload) if outlook is not None else NOTHING
    return WhyOut(
        id=workload.id,
        name=workload.spec.name,
        state=workload.state,
        reason=caller.say(reason),
        reason_code=reason.code.value,
        reason_facts=dict(reason.facts),
        sort=proof.sort.value if proof else None,
        sort_words=words.sort_words(_told_sort(proof), caller.language) if proof else None,
        facts=[_reason(fact, seen) for fact in facts],
        position=proof.position if proof else None,
        ahead=[_ahead(one, groups, known, seen) for one in proof.ahead] if proof else [],
        remedies=_remedies(caller, workload, proof.remedies) if proof else [],
        **expected(moments, caller.say),
    )


def _told_sort(proof: Why) -> str:
    """Machines that an admin took out are not broken."""
    troubles = {fact.facts.get("trouble") for fact in proof.facts}
    only_taken_out = proof.reason.code is Code.NO_NODES and troubles == {NodeState.CORDONED.value}
    return "taken_out" if only_taken_out else proof.sort.value


def _proof(caller: Caller, workload: Workload, remedies: bool) -> Why | None:
    """Remedies are for whoever may carry them out: another group only when it is the owner's and the asker's own."""
    mine = caller.actor.name == workload.owner
    return caller.parts.why(workload.id, remedies, caller.actor.user.groups if mine else ())


def _preempted(workload: Workload, reason: Reason) -> list[Reason]:
    """One that waits because it had to make room is told so for as long as it waits."""
    ending = workload.attempt.ending if workload.attempt else None
    if workload.state is not State.QUEUED or ending is None or ending.verdict is not Verdict.PREEMPTED:
        return []
    return [ending.reason] if ending.reason != reason else []


def _reason(reason: Reason, seen: Glasses) -> ReasonOut:
    shown = seen.reason(reason)
    return ReasonOut(code=shown.code.value, facts=dict(shown.facts), words=seen.say(shown))


def _ahead(ahead: Ahead, groups: dict[str, str], known: dict[str, Workload], seen: Glasses) -> AheadOut:
    workload = known.get(ahead.workload)
    return AheadOut(
        id=ahead.workload,
        group=groups.get(ahead.workload, ""),
        name=workload.spec.name if workload else None,
        owner=workload.owner if workload else None,
        rule=_reason(_impersonal(ahead.rule, persons=workload is not None), seen),
    )


def _impersonal(rule: Reason, *, persons: bool) -> Reason:
    """The rule without the names of persons, unless these are the asker's to know."""
    if persons:
        return rule
    return Reason(rule.code, {key: "" if key in PERSONS else value for key, value in rule.facts.items()})


def _about_visible(answer: Answer, known: Collection[str]) -> Reason:
    """The rule as the asker may know it. What kept the other from starting is told of visible work only: it may name
    persons, programs and images."""
    rule = _impersonal(answer.rule, persons=len(known) == 2)
    if answer.other in known:
        return rule
    return Reason(rule.code, {key: value for key, value in rule.facts.items() if key not in REASONS_INSIDE})


def _remedies(caller: Caller, workload: Workload, remedies: Iterable[Remedy]) -> list[RemedyOut]:
    return [_remedy(caller, workload, remedy) for remedy in remedies if _can_be_taken(workload, remedy)]


def _can_be_taken(workload: Workload, remedy: Remedy) -> bool:
    """A dev environment is started with other resources; it is not made into another one."""
    return workload.spec.kind is Kind.JOB or all(_env_key(key) in ENV_OPTIONS for key, _ in remedy.changes)


def _env_key(key: str) -> str:
    return key.removeprefix(f"roles.{WORKPLACE_ROLE}.")


def _command(workload: Workload, changes: Mapping[str, str]) -> str:
    if workload.spec.kind is Kind.JOB:
        sets = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in changes.items())
        return f"yard rerun {workload.id} {sets} --instead"
    options = " ".join(f"{ENV_OPTIONS[key]} {shlex.quote(value)}" for key, value in changes.items())
    return f"yard env restart {workload.spec.name} {options}"


def _remedy(caller: Caller, workload: Workload, remedy: Remedy) -> RemedyOut:
    is_job = workload.spec.kind is Kind.JOB
    changes = {key if is_job else _env_key(key): value for key, value in remedy.changes}
    return RemedyOut(
        kind=remedy.kind,
        changes=changes,
        nodes=list(remedy.nodes),
        words=words.remedy_words(changes, remedy.nodes, caller.language),
        command=_command(workload, changes),
    )


# --- one before the other -----------------------------------------------------------------------------------------


@doors.get("/workloads/{ref}/before/{other}", response_model=BeforeOut)
def comes_before(caller: Seeing, ref: Ref, other: Ref) -> Any:
    """Why did, or does, the one come before the other? One of the two is the asker's to see; of the other the id is
    known, and nothing but the rule and its numbers is told."""
    with caller.parts.database.read() as conn:
        one, two = _pair(caller, conn, ref, other)
        if one.id == two.id:
            raise BadInput(because(Code.BAD_VALUE, at="before", value=other, problem=Problem.SAME_WORKLOAD.value))
        pasts = [Past(workload, tuple(rows.story(conn, workload.id))) for workload in (one, two)]
        known = visible(caller, conn, [one.id, two.id])
    answer = caller.parts.before(pasts[0], pasts[1])
    rule = _about_visible(answer, known)
    with caller.parts.database.read() as conn:
        named = visible(caller, conn, work_named(rule))
    seen = Glasses(caller.say, frozenset(), named.__contains__)
    return BeforeOut(first=answer.first, other=answer.other, as_asked=answer.first == one.id, rule=_reason(rule, seen))


def _pair(caller: Caller, conn: Connection, ref: str, other: str) -> tuple[Workload, Workload]:
    """Both, when at least one is the asker's to see. Otherwise the answer is the same as for something unknown."""
    found = [_found(caller, conn, text) for text in (ref, other)]
    if all(isinstance(one, NotFound) for one in found):
        raise found[0] if isinstance(found[0], NotFound) else NotFound(Reason(Code.NOT_FOUND, {}))
    both = [_by_id(conn, text, one) for text, one in zip((ref, other), found, strict=True)]
    return both[0], both[1]


def _found(caller: Caller, conn: Connection, ref: str) -> Workload | NotFound:
    try:
        return find_workload(caller, conn, ref, Action.SEE_WORKLOAD)
    except NotFound as refusal:
        return refusal


def _by_id(conn: Connection, ref: str, found: Workload | NotFound) -> Workload:
    if isinstance(found, Workload):
        return found
    foreign = rows.get(conn, ref) if isinstance(found, Refused) and ID_RULE.fullmatch(ref) else None
    if foreign is None:
        raise found
    return foreign
