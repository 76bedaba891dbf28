"""The policy over HTTP: read by all, changed and tried by admins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Request

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.api import policies, policy_models, submitting, views
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.dialects import policy as dialect
from gpuyard.domain.people import User
from gpuyard.domain.policy import Policy
from gpuyard.domain.workload import Workload
from gpuyard.store import nodes, people, sharing
from gpuyard.store.database import Connection
from gpuyard.world.compare import Comparison, Tally

doors = Doors(prefix="/api/v1", tags=["policy"])
Seeing = Annotated[Caller, needs(Action.SEE_POLICY)]
Changing = Annotated[Caller, needs(Action.CHANGE_POLICY)]
Trying = Annotated[Caller, needs(Action.TRY_POLICY)]
OBJECT = "policy"
MOST_TOLD = 50
_ABOUT = "the whole policy, as GET gives it; what is left out has its default"
_ANY_DOCUMENT = {"schema": {"type": "object", "description": _ABOUT}}
DOCUMENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": _ANY_DOCUMENT, "application/yaml": _ANY_DOCUMENT},
    }
}


class Document:
    """What was sent: a policy as plain data, with the places of its values when it came as YAML."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self.data, self.marks = submitting.read_text(body, content_type)

    @property
    def changes(self) -> dict[str, Any] | None:
        """`{"set": {...}}`: some values instead of a whole."""
        inner = self.data.get("set")
        return inner if set(self.data) == {"set"} and isinstance(inner, dict) else None


async def sent_document(request: Request) -> tuple[bytes, str]:
    return await request.body(), request.headers.get("content-type", "")


Sent = Annotated[tuple[bytes, str], Depends(sent_document)]


@doors.get("/policy", response_model=dict[str, Any])
def show(caller: Seeing) -> Any:
    """The rules of order, sharing and placement, all of them, also those at their default. Of persons and groups that
    it names, everyone but an admin sees only their own."""
    with caller.parts.database.read() as conn:
        policy = policies.in_force(conn)
    return dialect.write_policy(policy if caller.actor.is_admin else _seen_by(caller.actor.user, policy))


def _seen_by(user: User, policy: Policy) -> Policy:
    people_first = tuple(name for name in policy.order.people if name == user.name)
    group_pools = {group: pools for group, pools in policy.group_pools.items() if group in user.groups}
    return replace(policy, order=replace(policy.order, people=people_first), group_pools=group_pools)


@doors.put("/policy", response_model=policy_models.PolicyChanged, openapi_extra=DOCUMENT)
def replace_policy(caller: Changing, sent: Sent) -> Any:
    """Set the whole policy. It holds from the next decision on; what runs is left alone."""
    document = Document(*sent)
    with caller.parts.database.write() as conn:
        after = dialect.read_policy(document.data, _known(conn), document.marks)
        told = _set(caller, conn, after)
    caller.policies.forget()
    return told


@doors.patch("/policy", response_model=policy_models.PolicyChanged)
def change_policy(caller: Changing, wish: policy_models.PolicySet) -> Any:
    """Set some values by their dotted path. The others stay."""
    with caller.parts.database.write() as conn:
        told = _set(caller, conn, _with(conn, wish.set))
    caller.policies.forget()
    return told


@doors.post("/policy/try", response_model=policy_models.PolicyTried, openapi_extra=DOCUMENT)
def try_policy(caller: Trying, sent: Sent) -> Any:
    """What a policy, or `{"set": {...}}`, would change on the present cluster. Nothing is changed."""
    document = Document(*sent)
    with caller.parts.database.read() as conn:
        before, after = policies.in_force(conn), meant(conn, document)
        notes = [caller.say(note) for note in dialect.notes_on(after, nodes.all(conn))]
    return _tried(differing(before, after), notes, caller.parts.compare(after))


def meant(conn: Connection, document: Document) -> Policy:
    """The whole policy that was sent, or the one in force with some values set."""
    if document.changes is not None:
        return _with(conn, document.changes)
    return dialect.read_policy(document.data, _known(conn), document.marks)


def _known(conn: Connection) -> dialect.Known:
    groups = frozenset(group.name for group in people.all_groups(conn))
    return dialect.Known(groups=groups, people=frozenset(user.name for user in people.all_users(conn)))


def _with(conn: Connection, changes: dict[str, Any]) -> Policy:
    document = dialect.write_policy(policies.in_force(conn))
    for path, value in changes.items():
        document = dialect.set_value(document, path, value)
    return dialect.read_policy(document, _known(conn))


def _set(caller: Caller, conn: Connection, after: Policy) -> policy_models.PolicyChanged:
    before = policies.in_force(conn)
    changed = differing(before, after)
    if changed:
        sharing.set_policy_text(conn, dialect.to_text(after))
        facts = {"changed": {one.key: [one.before, one.after] for one in changed}}
        audit.record(conn, caller.actor, Action.CHANGE_POLICY, OBJECT, caller.now, facts=facts)
    notes = [caller.say(note) for note in dialect.notes_on(after, nodes.all(conn))]
    return policy_models.PolicyChanged(policy=dialect.write_policy(after), changed=changed, warnings=notes)


def differing(before: Policy, after: Policy) -> list[policy_models.PolicyDifference]:
    found = dialect.differences(before, after)
    return [policy_models.PolicyDifference(key=key, before=was, after=now) for key, (was, now) in found.items()]


# --- what a trial found -------------------------------------------------------------------------------------------


def _tried(
    changed: list[policy_models.PolicyDifference], notes: list[str], found: Comparison
) -> policy_models.PolicyTried:
    return policy_models.PolicyTried(
        changed=changed,
        warnings=notes,
        starts=_briefs(found.starts),
        starts_count=len(found.starts),
        stays=_briefs(found.stays),
        stays_count=len(found.stays),
        evictions=[
            policy_models.EvictionOut(
                work=_brief(work), by=eviction.by, rule=eviction.rule.value, lost_seconds=eviction.lost_seconds
            )
            for work, eviction in found.evictions[:MOST_TOLD]
        ],
        evictions_count=len(found.evictions),
        spared=_briefs(found.spared),
        spared_count=len(found.spared),
        moves=[
            policy_models.MoveOut(work=_brief(move.workload), before=move.before, after=move.after)
            for move in found.moves[:MOST_TOLD]
        ],
        moves_count=len(found.moves),
        groups=[
            policy_models.GroupTally(group=group, before=_tally(before), after=_tally(after))
            for group, (before, after) in found.groups.items()
        ],
    )


def _briefs(works: Sequence[Workload]) -> list[policy_models.WorkBrief]:
    return [_brief(work) for work in works[:MOST_TOLD]]


def _brief(work: Workload) -> policy_models.WorkBrief:
    milli, device = views.cards_of(work)
    return policy_models.WorkBrief(
        id=work.id,
        name=work.spec.name,
        owner=work.owner,
        group=work.group,
        cards=views.from_milli(milli),
        device=device,
    )


def _tally(tally: Tally) -> policy_models.TallyOut:
    return policy_models.TallyOut(starting=tally.starting, waiting=tally.waiting, evicted=tally.evicted)
