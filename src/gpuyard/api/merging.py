"""One group merged into another, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.api import policies, policy_models
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.quotas import Ledger, over_guaranteed
from gpuyard.dialects.policy import merge_groups
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.files.shares import ShareNotMoved
from gpuyard.store import merging
from gpuyard.store.merging import Merge

doors = Doors(prefix="/api/v1", tags=["groups"])
Merging = Annotated[Caller, needs(Action.MERGE_GROUPS)]
Name = Annotated[str, Path(description="the group that is gone afterwards")]


@doors.post("/groups/{name}/merge", response_model=policy_models.MergeOut)
def merge(caller: Merging, name: Name, wish: policy_models.MergeIn) -> Any:
    """Its members, quotas, past use and work become the other group's. What runs goes on; then it is removed."""
    if wish.preview:
        with caller.parts.database.read() as conn:
            plan = merging.look(conn, name, wish.into)
        return _told(caller, plan, _leads(plan), done=False)
    with caller.parts.database.write() as conn:
        half_life = policies.in_force(conn).order.half_life
        plan = merging.merge(conn, name, wish.into, now=caller.now, by=caller.actor.name, half_life=half_life)
        policies.rewrite(conn, lambda policy: merge_groups(policy, name, wish.into))
        facts = {"into": wish.into, "live": plan.live, "ended": plan.ended, "members": len(plan.joining)}
        audit.record(conn, caller.actor, Action.MERGE_GROUPS, name, caller.now, facts=facts)
        notes = [*_leads(plan), *over_guaranteed(conn, {quota.resource for quota in plan.quotas if quota.guaranteed})]
    caller.parts.access.forget()
    caller.policies.forget()
    return _told(caller, plan, [*notes, *_move_files(caller, plan)], done=True)


def _leads(plan: Merge) -> list[Reason]:
    names = {"source": plan.source.name, "target": plan.target.name}
    return [because(Code.LEAD_NO_MORE, user=user, **names) for user in plan.leads_no_more]


def _move_files(caller: Caller, plan: Merge) -> list[Reason]:
    """After everything is written: should it fail, the groups are merged all the same, and it is told what to do."""
    names = {"source": plan.source.name, "target": plan.target.name}
    gids = (plan.source.gid, plan.target.gid)
    try:
        moved = caller.parts.shares.fold_in(plan.source.name, plan.target.name, gids, in_use=plan.running > 0)
    except ShareNotMoved as problem:
        return [because(Code.SHARE_NOT_MOVED, detail=str(problem), **names)]
    return [because(Code.SHARE_MOVED, **names)] if moved else []


def _told(caller: Caller, plan: Merge, notes: list[Reason], *, done: bool) -> policy_models.MergeOut:
    return policy_models.MergeOut(
        source=plan.source.name,
        into=plan.target.name,
        done=done,
        joining=list(plan.joining),
        leads_no_more=list(plan.leads_no_more),
        quotas=Ledger().lines(replace(plan.target, quotas=plan.quotas)),
        live=plan.live,
        running=plan.running,
        ended=plan.ended,
        warnings=[caller.say(note) for note in notes],
    )
