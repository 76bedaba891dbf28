"""Someone who asks for something: a user, by which means they are known, and how far that means reaches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpuyard.domain.people import User


class Scope(StrEnum):
    """How far a token reaches. It caps what its user may do; it never adds to it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def covers(self, needed: Scope) -> bool:
        return _RANK[self] >= _RANK[needed]


_RANK = {Scope.READ: 0, Scope.WRITE: 1, Scope.ADMIN: 2}


class Via(StrEnum):
    TOKEN = "token"  # noqa: S105
    SESSION = "session"
    OWNER = "owner"  # the secret file in the data folder
    SSH = "ssh"  # a password or a public key, for one SSH connection


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, as far as this one request is concerned."""

    user: User
    scope: Scope
    via: Via
    token_id: str = ""
    address: str = ""
    expires_at: float | None = None  # of the token or session; None: it does not run out
    session_hash: str = ""

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def is_admin(self) -> bool:
        return self.user.admin
