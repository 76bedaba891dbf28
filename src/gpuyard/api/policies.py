"""The policy in force, at hand for every request, and rewritten when somebody it names is gone."""

from __future__ import annotations

from collections.abc import Callable

from gpuyard.dialects import policy as dialect
from gpuyard.domain.errors import NotAllowed
from gpuyard.domain.people import Role, User
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code, because
from gpuyard.store import sharing
from gpuyard.store.database import Connection, Database

LOOK_EVERY_SECONDS = 1.0


class Policies:
    """Asked for with every job, so looked up once a second only; a change made here counts at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._policy = Policy()
        self._text: str | None = None
        self._looked_at = float("-inf")

    def remembered(self, now: float) -> Policy | None:
        """Without waiting for anything. None: it is time to look again."""
        return self._policy if 0 <= now - self._looked_at < LOOK_EVERY_SECONDS else None

    def known(self, now: float) -> Policy:
        known = self.remembered(now)
        if known is not None:
            return known
        with self._database.read() as conn:
            text = sharing.policy_text(conn)
        if text != self._text:
            self._policy, self._text = dialect.from_text(text), text
        self._looked_at = now
        return self._policy

    def forget(self) -> None:
        self._looked_at = float("-inf")


def in_force(conn: Connection) -> Policy:
    return dialect.from_text(sharing.policy_text(conn))


def rewrite(conn: Connection, change: Callable[[Policy], Policy]) -> Policy:
    """The policy after the change, written when it is another one."""
    before = in_force(conn)
    after = change(before)
    if after != before:
        sharing.set_policy_text(conn, dialect.to_text(after))
    return after


def require_ceiling(policy: Policy, owner: User, group: str, priority: int) -> None:
    """Nobody asks for more than their role allows."""
    role = Role.ADMIN if owner.admin else Role.LEAD if owner.leads(group) else Role.MEMBER
    ceiling = policy.ceilings[role.value]
    if priority > ceiling:
        raise NotAllowed(because(Code.PRIORITY_CEILING, asked=priority, ceiling=ceiling, role=role.value))
