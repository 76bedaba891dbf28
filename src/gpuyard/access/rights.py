"""Who may do what. Pure and small: one table, one function that answers, one that refuses.

An admin may do everything. A lead sees and controls the workloads of the groups led, sets limits for the users in them
up to the group's own, and lets plain members go; only an admin brings someone in. A member has their own workloads. A
token's scope caps all of that. What one may not see is answered as if it did not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.domain.errors import NotAllowed, NotFound
from gpuyard.domain.people import Role, User
from gpuyard.domain.reasons import Code, because


class Action(StrEnum):
    """Everything that can be asked for. The values are what the audit trail says."""

    WHO_AM_I = "session.show"
    LOG_OUT = "session.end"
    CHANGE_OWN_PASSWORD = "password.change"  # noqa: S105
    SEE_TOKENS = "token.list"
    MAKE_TOKEN = "token.create"  # noqa: S105
    REVOKE_TOKEN = "token.revoke"  # noqa: S105
    SEE_KEYS = "key.list"
    ADD_KEY = "key.add"
    REMOVE_KEY = "key.remove"
    SEE_WORKLOAD = "workload.show"
    SUBMIT = "workload.submit"
    CONTROL_WORKLOAD = "workload.control"
    ENTER_WORKLOAD = "workload.enter"
    SHIP_FOLDER = "workdir.upload"
    SEE_IMAGES = "image.list"
    PULL_IMAGE = "image.pull"
    CHANGE_IMAGES = "image.change"
    SEE_CLUSTER = "cluster.show"
    CORDON = "node.cordon"
    LABEL = "node.label"
    SEE_USER = "user.show"
    ADD_USER = "user.create"
    CHANGE_USER = "user.change"
    SET_PASSWORD = "user.password"  # noqa: S105
    REMOVE_USER = "user.remove"
    SEE_GROUP = "group.show"
    ADD_GROUP = "group.create"
    CHANGE_GROUP = "group.change"
    REMOVE_GROUP = "group.remove"
    SET_MEMBER = "group.member"
    SET_QUOTA = "group.quota"
    MERGE_GROUPS = "group.merge"
    SEE_POLICY = "policy.show"
    CHANGE_POLICY = "policy.change"
    TRY_POLICY = "policy.try"
    SEE_AUDIT = "audit.show"
    BACK_UP = "store.backup"
    LOOK_BACK = "journal.replay"


# --- what is asked about ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """A workload, existing or about to be submitted."""

    name: str
    owner: str
    group: str


@dataclass(frozen=True, slots=True)
class Person:
    user: User

    @property
    def name(self) -> str:
        return self.user.name


@dataclass(frozen=True, slots=True)
class InGroup:
    name: str


@dataclass(frozen=True, slots=True)
class Seat:
    """A user's place in a group, as it is (None: no place) and as it is wanted (None: removed)."""

    group: str
    user: User
    now: Role | None
    wanted: Role | None

    @property
    def name(self) -> str:
        return self.group


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota about to be set. `group_limit` is the group's own for the same resource; None: it has none."""

    group: str
    user: str | None
    limit: int | None
    group_limit: int | None

    @property
    def name(self) -> str:
        return self.group


@dataclass(frozen=True, slots=True)
class TokenOf:
    """A token, existing or wanted."""

    name: str
    user: str
    scope: Scope = Scope.READ
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class KeyOf:
    """A public key for SSH, existing or wanted."""

    name: str
    user: str


Target = Work | Person | InGroup | Seat | Limit | TokenOf | KeyOf
_KIND: Mapping[type[Target], str] = {
    Work: "workload",
    Person: "user",
    InGroup: "group",
    Seat: "group",
    Limit: "group",
    TokenOf: "token",
    KeyOf: "key",
}


# --- the rules ----------------------------------------------------------------------------------------------------


def _anyone(actor: Actor, target: Target | None) -> bool:
    return True


def _admin(actor: Actor, target: Target | None) -> bool:
    return actor.is_admin


def _own_or_led(actor: Actor, target: Target | None) -> bool:
    if not isinstance(target, Work):
        return target is None
    return actor.is_admin or target.owner == actor.name or actor.user.leads(target.group)


def _own(actor: Actor, target: Target | None) -> bool:
    """A lead sees and stops a member's work, but does not sit down in it: it is like a home."""
    if not isinstance(target, Work):
        return target is None
    return actor.is_admin or target.owner == actor.name


def _into_own_group(actor: Actor, target: Target | None) -> bool:
    if not isinstance(target, Work):
        return target is None
    return target.owner == actor.name and (actor.is_admin or target.group in actor.user.groups)


def _known_person(actor: Actor, target: Target | None) -> bool:
    if not isinstance(target, Person):
        return target is None
    led = any(actor.user.leads(group) for group in target.user.groups)
    return actor.is_admin or target.name == actor.name or led


def _own_group(actor: Actor, target: Target | None) -> bool:
    return target is None or actor.is_admin or target.name in actor.user.groups


def _seat(actor: Actor, target: Target | None) -> bool:
    """A lead lets plain members go; leads and admins are moved by admins only.

    Nor does a lead bring anyone in: whoever leads a group sees and stops its work, so joining one is never done to
    somebody by those who would gain from it.
    """
    if actor.is_admin or target is None:
        return True
    return (
        isinstance(target, Seat)
        and actor.user.leads(target.group)
        and target.now is Role.MEMBER
        and target.wanted in (None, Role.MEMBER)
        and not target.user.admin
    )


def _limit(actor: Actor, target: Target | None) -> bool:
    """A lead divides what the group has among its users, and never raises what the group has."""
    if actor.is_admin or target is None:
        return True
    if not isinstance(target, Limit) or target.user is None or not actor.user.leads(target.group):
        return False
    return target.limit is None or target.group_limit is None or target.limit <= target.group_limit


def _own_token(actor: Actor, target: Target | None) -> bool:
    return target is None or actor.is_admin or (isinstance(target, TokenOf) and target.user == actor.name)


def _own_key(actor: Actor, target: Target | None) -> bool:
    return target is None or actor.is_admin or (isinstance(target, KeyOf) and target.user == actor.name)


def _key_for_oneself(actor: Actor, target: Target | None) -> bool:
    """Not even an admin adds one for somebody else: it would let them in as that person."""
    return target is None or (isinstance(target, KeyOf) and target.user == actor.name)


def _no_wider_token(actor: Actor, target: Target | None) -> bool:
    """A token made by a token reaches no further and lasts no longer. For others only an admin with full reach."""
    if not isinstance(target, TokenOf):
        return target is None
    if target.user != actor.name and not (actor.is_admin and actor.scope is Scope.ADMIN):
        return False
    outlives = actor.via is Via.TOKEN and actor.expires_at is not None
    if outlives and (target.expires_at is None or target.expires_at > (actor.expires_at or 0.0)):
        return False
    return actor.scope.covers(target.scope)


@dataclass(frozen=True, slots=True)
class Rule:
    scope: Scope
    holds: Callable[[Actor, Target | None], bool]
    sees: Callable[[Actor, Target | None], bool] = _anyone  # when not, the target is answered as not found


RULES: Mapping[Action, Rule] = {
    Action.WHO_AM_I: Rule(Scope.READ, _anyone),
    Action.LOG_OUT: Rule(Scope.READ, _anyone),
    Action.CHANGE_OWN_PASSWORD: Rule(Scope.WRITE, _anyone),
    Action.SEE_TOKENS: Rule(Scope.READ, _own_token, _own_token),
    Action.MAKE_TOKEN: Rule(Scope.WRITE, _no_wider_token),
    Action.REVOKE_TOKEN: Rule(Scope.WRITE, _own_token, _own_token),
    Action.SEE_KEYS: Rule(Scope.READ, _own_key, _own_key),
    Action.ADD_KEY: Rule(Scope.ADMIN, _key_for_oneself),  # it outlives the token it is added with: full reach only
    Action.REMOVE_KEY: Rule(Scope.WRITE, _own_key, _own_key),
    Action.SEE_WORKLOAD: Rule(Scope.READ, _own_or_led, _own_or_led),
    Action.SUBMIT: Rule(Scope.WRITE, _into_own_group),
    Action.CONTROL_WORKLOAD: Rule(Scope.WRITE, _own_or_led, _own_or_led),
    Action.ENTER_WORKLOAD: Rule(Scope.WRITE, _own, _own_or_led),
    Action.SHIP_FOLDER: Rule(Scope.WRITE, _anyone),
    Action.SEE_IMAGES: Rule(Scope.READ, _anyone),
    Action.PULL_IMAGE: Rule(Scope.WRITE, _anyone),
    Action.CHANGE_IMAGES: Rule(Scope.ADMIN, _admin),
    Action.SEE_CLUSTER: Rule(Scope.READ, _anyone),
    Action.CORDON: Rule(Scope.ADMIN, _admin),
    Action.LABEL: Rule(Scope.ADMIN, _admin),
    Action.SEE_USER: Rule(Scope.READ, _known_person, _known_person),
    Action.ADD_USER: Rule(Scope.ADMIN, _admin),
    Action.CHANGE_USER: Rule(Scope.ADMIN, _admin),
    Action.SET_PASSWORD: Rule(Scope.ADMIN, _admin),
    Action.REMOVE_USER: Rule(Scope.ADMIN, _admin),
    Action.SEE_GROUP: Rule(Scope.READ, _own_group, _own_group),
    Action.ADD_GROUP: Rule(Scope.ADMIN, _admin),
    Action.CHANGE_GROUP: Rule(Scope.ADMIN, _admin),
    Action.REMOVE_GROUP: Rule(Scope.ADMIN, _admin),
    Action.SET_MEMBER: Rule(Scope.ADMIN, _seat, _own_group),
    Action.SET_QUOTA: Rule(Scope.ADMIN, _limit, _own_group),
    Action.MERGE_GROUPS: Rule(Scope.ADMIN, _admin),
    Action.SEE_POLICY: Rule(Scope.READ, _anyone),
    Action.CHANGE_POLICY: Rule(Scope.ADMIN, _admin),
    Action.TRY_POLICY: Rule(Scope.ADMIN, _admin),
    Action.SEE_AUDIT: Rule(Scope.ADMIN, _admin),
    Action.BACK_UP: Rule(Scope.ADMIN, _admin),
    Action.LOOK_BACK: Rule(Scope.ADMIN, _admin),
}

# What remains open to someone who was given a one-time password.
BEFORE_PASSWORD_CHANGE = frozenset({Action.WHO_AM_I, Action.LOG_OUT, Action.CHANGE_OWN_PASSWORD})


def role_of(user: User) -> Role:
    """What someone is to the platform, in a word: an admin, or the most they are in any group."""
    if user.admin:
        return Role.ADMIN
    leads = any(membership.role is Role.LEAD for membership in user.memberships)
    return Role.LEAD if leads else Role.MEMBER


# --- the questions ------------------------------------------------------------------------------------------------


def must_change_first(actor: Actor, action: Action) -> bool:
    """The owner of the data folder was never asked for a password, so is not held up by a one-time one."""
    return actor.user.must_change_password and actor.via is not Via.OWNER and action not in BEFORE_PASSWORD_CHANGE


def may(actor: Actor, action: Action, target: Target | None = None) -> bool:
    """Without a target: may they knock at all? With one: may they do it to this very thing?"""
    rule = RULES[action]
    if must_change_first(actor, action) or not actor.scope.covers(rule.scope):
        return False
    return rule.holds(actor, target)


def require(actor: Actor, action: Action, target: Target | None = None) -> None:
    if may(actor, action, target):
        return
    if must_change_first(actor, action):
        raise NotAllowed(because(Code.PASSWORD_CHANGE_NEEDED))
    if target is not None and not RULES[action].sees(actor, target):
        raise Refused(action, target)
    raise NotAllowed(because(Code.NOT_ALLOWED, action=action.value, whom=_who_could_help(actor, action, target)))


def _who_could_help(actor: Actor, action: Action, target: Target | None) -> str:
    """`token`: the actor, with a wider one. `admin`: nobody else may. Empty: a lead may do as well."""
    rule = RULES[action]
    if rule.holds(actor, target):
        return "token"
    return "admin" if rule.holds is _admin else ""


# What a lead or an admin may change of somebody else's environment: how much it asks for and when it rests. Anything
# else would be code of theirs that runs as its owner, in the owner's home: an image, a variable, a mount.
OTHERS_MAY_CHANGE = frozenset({"cards", "device", "models", "cpu", "memory", "shm", "priority", "idle", "where"})


def require_change(actor: Actor, owner: str, keys: Iterable[str]) -> None:
    """Of an environment; `keys` are those of its file that would be different."""
    beyond = sorted(set(keys) - OTHERS_MAY_CHANGE)
    if beyond and actor.name != owner:
        raise NotAllowed(because(Code.OWNERS_ALONE, owner=owner, keys=beyond))


def sees_values(actor: Actor, owner: str) -> bool:
    """What is in a workload's variables and its shipped folder. A lead sees that there are some: their values may be
    keys to somewhere else."""
    return actor.is_admin or actor.name == owner


class Refused(NotFound):
    """It exists, but not for the asker. To them it reads like any other NotFound; the audit trail knows better."""

    def __init__(self, action: Action, target: Target, as_asked: str | None = None) -> None:
        super().__init__(because(Code.NOT_FOUND, what=_KIND[type(target)], name=as_asked or target.name))
        self.action = action
        self.target = target


@dataclass(frozen=True, slots=True)
class View:
    """Which workloads someone sees in listings."""

    everything: bool
    owner: str
    groups: tuple[str, ...]  # the groups led


def view_of(actor: Actor) -> View:
    led = tuple(m.group for m in actor.user.memberships if m.role is Role.LEAD)
    return View(actor.is_admin, actor.name, led)
