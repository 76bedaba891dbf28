"""Users, groups and what they may use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

NAME_RULE = re.compile(r"^[a-z][a-z0-9_-]{0,31}\Z")


# As root every user and every group has a block of system numbers. A user's first one is who they are on the machine,
# the whole block is who they can be inside a container, where they are root. A group's first one is its group number.
BLOCK = 65_536
FIRST_BLOCK = 0x7000_0000
MOST_BLOCKS = 4096


class Role(StrEnum):
    """What a person is: to the whole platform (admin) or to one group (lead, member)."""

    ADMIN = "admin"
    LEAD = "lead"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Membership:
    group: str
    role: Role


@dataclass(frozen=True, slots=True)
class User:
    name: str
    admin: bool = False
    memberships: tuple[Membership, ...] = ()
    uid: int = 0  # the system user its work runs as, and its own group; 0 means: as whoever runs the server
    active: bool = True
    must_change_password: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(membership.group for membership in self.memberships)

    def leads(self, group: str) -> bool:
        return any(m.group == group and m.role is Role.LEAD for m in self.memberships)


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one resource: the most in use at a time, and what is guaranteed. For a whole group, or for one user inside it.

    resource is a device type (thousandths of a card), `cpu` (thousandths of a core) or `memory` (bytes).
    What is guaranteed may be lent to others while it is idle, and is taken back from preemptible work when needed.
    Only groups have guarantees.
    """

    group: str
    resource: str
    limit: int | None = None  # None: no limit
    user: str | None = None
    guaranteed: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    quotas: tuple[Quota, ...] = field(default_factory=tuple)
    gid: int = 0
    weight: float = 1.0  # its part under fair share, beside the other groups' weights
    fifo: bool = False  # strictly first in, first out: inside the group nobody overtakes anybody
