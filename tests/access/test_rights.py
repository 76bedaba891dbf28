"""Who may do what, as a table of sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuyard.access import rights
from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.access.rights import Action, InGroup, Limit, Person, Seat, TokenOf, Work
from gpuyard.domain.errors import NotAllowed, NotFound
from gpuyard.domain.people import Membership, Role, User
from gpuyard.domain.reasons import Code

ADMIN = User("root", admin=True)
LEAD = User("lena", memberships=(Membership("vision", Role.LEAD), Membership("speech", Role.MEMBER)))
MEMBER = User("mara", memberships=(Membership("vision", Role.MEMBER),))
OTHER = User("otto", memberships=(Membership("speech", Role.MEMBER),))


def acting(user: User, scope: Scope = Scope.ADMIN, via: Via = Via.SESSION, expires_at: float | None = None) -> Actor:
    return Actor(user, scope, via, expires_at=expires_at)


MARAS_JOB = Work("job1", owner="mara", group="vision")
OTTOS_JOB = Work("job2", owner="otto", group="speech")

# (who, action, target, whether)
TABLE = [
    (ADMIN, Action.SEE_WORKLOAD, OTTOS_JOB, True),
    (ADMIN, Action.CONTROL_WORKLOAD, OTTOS_JOB, True),
    (LEAD, Action.SEE_WORKLOAD, MARAS_JOB, True),
    (LEAD, Action.CONTROL_WORKLOAD, MARAS_JOB, True),
    (LEAD, Action.SEE_WORKLOAD, OTTOS_JOB, False),
    (LEAD, Action.CONTROL_WORKLOAD, OTTOS_JOB, False),
    (MEMBER, Action.SEE_WORKLOAD, MARAS_JOB, True),
    (MEMBER, Action.CONTROL_WORKLOAD, MARAS_JOB, True),
    (MEMBER, Action.SEE_WORKLOAD, Work("job3", owner="lena", group="vision"), False),
    (MEMBER, Action.SEE_WORKLOAD, OTTOS_JOB, False),
    # Entering: it is like a home, so a lead stays outside.
    (MEMBER, Action.ENTER_WORKLOAD, MARAS_JOB, True),
    (ADMIN, Action.ENTER_WORKLOAD, MARAS_JOB, True),
    (LEAD, Action.ENTER_WORKLOAD, MARAS_JOB, False),
    (OTHER, Action.ENTER_WORKLOAD, MARAS_JOB, False),
    # Submitting: only as oneself, only into one's own groups.
    (MEMBER, Action.SUBMIT, Work("new", owner="mara", group="vision"), True),
    (MEMBER, Action.SUBMIT, Work("new", owner="mara", group="speech"), False),
    (MEMBER, Action.SUBMIT, Work("new", owner="otto", group="vision"), False),
    (ADMIN, Action.SUBMIT, Work("new", owner="root", group="speech"), True),
    (ADMIN, Action.SUBMIT, Work("new", owner="mara", group="vision"), False),
    # People.
    (MEMBER, Action.SEE_USER, Person(MEMBER), True),
    (MEMBER, Action.SEE_USER, Person(OTHER), False),
    (LEAD, Action.SEE_USER, Person(MEMBER), True),
    (LEAD, Action.SEE_USER, Person(OTHER), False),
    (LEAD, Action.ADD_USER, None, False),
    (LEAD, Action.CHANGE_USER, Person(MEMBER), False),
    (LEAD, Action.CHANGE_USER, Person(LEAD), False),
    (LEAD, Action.REMOVE_USER, Person(MEMBER), False),
    (LEAD, Action.SET_PASSWORD, Person(MEMBER), False),
    (MEMBER, Action.SEE_GROUP, InGroup("vision"), True),
    (MEMBER, Action.SEE_GROUP, InGroup("speech"), False),
    (LEAD, Action.ADD_GROUP, None, False),
    (LEAD, Action.REMOVE_GROUP, InGroup("vision"), False),
    # Seats: a lead lets plain members of the groups led go, and moves nobody else; only an admin brings someone in.
    (LEAD, Action.SET_MEMBER, Seat("vision", OTHER, None, Role.MEMBER), False),
    (LEAD, Action.SET_MEMBER, Seat("vision", OTHER, None, None), False),
    (ADMIN, Action.SET_MEMBER, Seat("vision", OTHER, None, Role.MEMBER), True),
    (LEAD, Action.SET_MEMBER, Seat("vision", MEMBER, Role.MEMBER, None), True),
    (LEAD, Action.SET_MEMBER, Seat("vision", MEMBER, Role.MEMBER, Role.LEAD), False),
    (LEAD, Action.SET_MEMBER, Seat("vision", LEAD, Role.LEAD, None), False),
    (LEAD, Action.SET_MEMBER, Seat("vision", ADMIN, None, Role.MEMBER), False),
    (LEAD, Action.SET_MEMBER, Seat("vision", MEMBER, Role.MEMBER, Role.ADMIN), False),
    (LEAD, Action.SET_MEMBER, Seat("speech", LEAD, Role.MEMBER, Role.LEAD), False),
    (LEAD, Action.SET_MEMBER, Seat("robots", LEAD, None, Role.MEMBER), False),
    (MEMBER, Action.SET_MEMBER, Seat("vision", MEMBER, Role.MEMBER, Role.LEAD), False),
    (MEMBER, Action.SET_MEMBER, Seat("vision", OTHER, None, Role.MEMBER), False),
    (ADMIN, Action.SET_MEMBER, Seat("vision", MEMBER, Role.MEMBER, Role.LEAD), True),
    # Limits: a lead divides, an admin gives.
    (LEAD, Action.SET_QUOTA, Limit("vision", "mara", 4000, 8000), True),
    (LEAD, Action.SET_QUOTA, Limit("vision", "mara", 8000, 8000), True),
    (LEAD, Action.SET_QUOTA, Limit("vision", "mara", 9000, 8000), False),
    (LEAD, Action.SET_QUOTA, Limit("vision", "mara", 9000, None), True),
    (LEAD, Action.SET_QUOTA, Limit("vision", None, 9000, 8000), False),
    (LEAD, Action.SET_QUOTA, Limit("speech", "lena", 1000, 8000), False),
    (MEMBER, Action.SET_QUOTA, Limit("vision", "mara", 1000, 8000), False),
    (ADMIN, Action.SET_QUOTA, Limit("vision", None, 99000, 8000), True),
    # Tokens: one's own.
    (MEMBER, Action.REVOKE_TOKEN, TokenOf("t1", "mara"), True),
    (MEMBER, Action.REVOKE_TOKEN, TokenOf("t1", "otto"), False),
    (ADMIN, Action.REVOKE_TOKEN, TokenOf("t1", "otto"), True),
    (MEMBER, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.ADMIN), True),
    (MEMBER, Action.MAKE_TOKEN, TokenOf("new", "otto", Scope.READ), False),
    (LEAD, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.READ), False),
    (ADMIN, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.READ), True),
    # The rest of the house.
    (MEMBER, Action.SEE_CLUSTER, None, True),
    (LEAD, Action.CORDON, None, False),
    (LEAD, Action.SEE_AUDIT, None, False),
    (LEAD, Action.BACK_UP, None, False),
    (LEAD, Action.LOOK_BACK, None, False),
]


@pytest.mark.parametrize(("user", "action", "target", "whether"), TABLE)
def test_the_table_of_rights_holds(user: User, action: Action, target: rights.Target | None, whether: bool) -> None:
    assert rights.may(acting(user), action, target) is whether


def test_every_action_has_a_rule() -> None:
    assert set(rights.RULES) == set(Action)


@pytest.mark.parametrize("action", list(Action))
def test_a_token_never_does_more_than_its_scope(action: Action) -> None:
    needed = rights.RULES[action].scope
    for scope in Scope:
        assert rights.may(acting(ADMIN, scope, Via.TOKEN), action) is scope.covers(needed)


@pytest.mark.parametrize("action", list(Action))
def test_a_one_time_password_opens_nothing_but_its_own_change(action: Action) -> None:
    held_up = replace(ADMIN, must_change_password=True)
    allowed = action in (Action.WHO_AM_I, Action.LOG_OUT, Action.CHANGE_OWN_PASSWORD)
    assert rights.may(acting(held_up), action) is allowed
    assert rights.may(acting(held_up, via=Via.OWNER), action)


def test_what_one_may_not_see_is_not_found() -> None:
    with pytest.raises(NotFound) as hidden:
        rights.require(acting(MEMBER), Action.CONTROL_WORKLOAD, OTTOS_JOB)
    assert hidden.value.reason.facts == {"what": "workload", "name": "job2"}


def test_what_one_may_see_but_not_do_is_not_allowed() -> None:
    with pytest.raises(NotAllowed) as refused:
        rights.require(acting(MEMBER), Action.SET_QUOTA, Limit("vision", "mara", 1, 1))
    assert refused.value.reason.code is Code.NOT_ALLOWED


@pytest.mark.parametrize(
    ("actor", "action", "whom"),
    [
        (acting(MEMBER), Action.LOOK_BACK, "admin"),
        (acting(LEAD), Action.CHANGE_POLICY, "admin"),
        (acting(ADMIN, Scope.READ, Via.TOKEN), Action.CHANGE_POLICY, "token"),
        (acting(MEMBER, Scope.READ, Via.TOKEN), Action.SUBMIT, "token"),
    ],
)
def test_who_is_refused_is_told_who_could_help(actor: Actor, action: Action, whom: str) -> None:
    with pytest.raises(NotAllowed) as refused:
        rights.require(actor, action)
    assert refused.value.reason.facts["whom"] == whom


def test_a_token_makes_no_token_wider_or_longer_than_itself() -> None:
    by_token = acting(MEMBER, Scope.WRITE, Via.TOKEN, expires_at=100.0)
    assert rights.may(by_token, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.WRITE, 100.0))
    assert not rights.may(by_token, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.ADMIN, 100.0))
    assert not rights.may(by_token, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.READ, 101.0))
    assert not rights.may(by_token, Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.READ, None))


def test_a_narrow_token_of_an_admin_makes_no_token_for_others() -> None:
    assert not rights.may(acting(ADMIN, Scope.WRITE, Via.TOKEN), Action.MAKE_TOKEN, TokenOf("new", "mara", Scope.READ))


def test_listings_show_ones_own_and_what_one_leads() -> None:
    assert rights.view_of(acting(ADMIN)).everything
    view = rights.view_of(acting(LEAD))
    assert (view.everything, view.owner, view.groups) == (False, "lena", ("vision",))


def test_a_persons_role_is_the_most_they_are_anywhere() -> None:
    assert [rights.role_of(user) for user in (ADMIN, LEAD, MEMBER)] == [Role.ADMIN, Role.LEAD, Role.MEMBER]
    assert rights.role_of(replace(LEAD, admin=True)) is Role.ADMIN
    assert rights.role_of(User("nobody")) is Role.MEMBER
