"""Users, groups, tokens, the audit trail and one's own login, by program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpuyard.sdk.answers import read_answer
from gpuyard.sdk.results import AuditLine, Group, Merge, Token, User, WhoAmI
from gpuyard.sdk.wire import Wire, in_path

if TYPE_CHECKING:
    from collections.abc import Callable

Limits = Mapping[str, str | int | float | None]


class People:
    """The part of the client that speaks of people."""

    wire: Wire
    if TYPE_CHECKING:
        get: Callable[..., Any]
        listing: Callable[..., list[dict[str, Any]]]

    def whoami(self) -> WhoAmI:
        told = self.get("/whoami")
        return WhoAmI(User.read(told["user"]), told["scope"], told["via"], told)

    def change_password(self, old: str | None, new: str) -> None:
        """One's own. Only who owns the server's data folder may do without the old one."""
        self.wire.ask("POST", "/api/v1/password", body={"old": old, "new": new})

    # --- users ----------------------------------------------------------------------------------------------------

    def users(self) -> list[User]:
        return [User.read(user) for user in self.listing("/users")]

    def user(self, name: str) -> User:
        return User.read(self.get(f"/users/{in_path(name)}"))

    def create_user(
        self, name: str, *, password: str | None = None, group: str | None = None, role: str = "member"
    ) -> User:
        """Without a password the server makes one, tells it once in the answer, and asks for a new one at login."""
        body = _given({"name": name, "password": password, "group": group, "role": role})
        return User.read(self.wire.told("POST", "/api/v1/users", body=body))

    def change_user(self, name: str, *, admin: bool | None = None, active: bool | None = None) -> User:
        body = _given({"admin": admin, "active": active})
        return User.read(self.wire.told("PATCH", f"/api/v1/users/{in_path(name)}", body=body))

    def set_password(self, name: str, password: str | None = None) -> str | None:
        """Returns the one-time password when none was given."""
        answer = self.wire.ask("POST", f"/api/v1/users/{in_path(name)}/password", body=_given({"password": password}))
        made: str | None = read_answer(answer.content).get("password")
        return made

    def remove_user(self, name: str) -> None:
        self.wire.ask("DELETE", f"/api/v1/users/{in_path(name)}")

    # --- groups ---------------------------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        return [Group.read(group) for group in self.listing("/groups")]

    def group(self, name: str) -> Group:
        return Group.read(self.get(f"/groups/{in_path(name)}"))

    def create_group(
        self,
        name: str,
        *,
        quota: Limits | None = None,
        guarantees: Limits | None = None,
        weight: float | None = None,
        fifo: bool | None = None,
    ) -> Group:
        more = _given({"guarantees": dict(guarantees) if guarantees else None, "weight": weight, "fifo": fifo})
        body = {"name": name, "quota": dict(quota or {}), **more}
        return Group.read(self.wire.told("POST", "/api/v1/groups", body=body))

    def change_group(self, name: str, *, weight: float | None = None, fifo: bool | None = None) -> Group:
        """Its part under fair share, and whether inside it nobody overtakes anybody."""
        body = _given({"weight": weight, "fifo": fifo})
        return Group.read(self.wire.told("PATCH", f"/api/v1/groups/{in_path(name)}", body=body))

    def set_quota(
        self,
        group: str,
        limits: Limits | None = None,
        *,
        guarantees: Limits | None = None,
        user: str | None = None,
    ) -> Group:
        """The most in use at a time, for the group or for one user inside it, and what a group can count on:
        `{"nvidia": 8, "memory": None}`."""
        given = {"limits": dict(limits) if limits else None, "guarantees": dict(guarantees) if guarantees else None}
        body = _given({**given, "user": user})
        return Group.read(self.wire.told("PUT", f"/api/v1/groups/{in_path(group)}/quota", body=body))

    def merge_group(self, source: str, into: str, *, preview: bool = False) -> Merge:
        """One group becomes part of another. `preview` only tells what would happen."""
        body = {"into": into, "preview": preview}
        return Merge.read(self.wire.told("POST", f"/api/v1/groups/{in_path(source)}/merge", body=body))

    def set_member(self, group: str, user: str, role: str = "member") -> None:
        path = f"/api/v1/groups/{in_path(group)}/members/{in_path(user)}"
        self.wire.ask("PUT", path, body={"role": role})

    def remove_member(self, group: str, user: str) -> None:
        self.wire.ask("DELETE", f"/api/v1/groups/{in_path(group)}/members/{in_path(user)}")

    def remove_group(self, name: str) -> None:
        self.wire.ask("DELETE", f"/api/v1/groups/{in_path(name)}")

    # --- tokens and the audit trail -------------------------------------------------------------------------------

    def tokens(self, user: str | None = None) -> list[Token]:
        """One's own, or (admins) those of another user."""
        return [Token.read(token) for token in self.listing("/tokens", user=user)]

    def create_token(
        self, name: str, *, scope: str = "write", days: float | None = None, user: str | None = None
    ) -> Token:
        """The secret is in the answer's `token`, this once."""
        body = _given({"name": name, "scope": scope, "days": days, "user": user})
        return Token.read(self.wire.told("POST", "/api/v1/tokens", body=body))

    def remove_token(self, id: str) -> None:
        self.wire.ask("DELETE", f"/api/v1/tokens/{in_path(id)}")

    def audit(self, limit: int | None = None) -> Iterator[AuditLine]:
        """Who did what, newest first, fetched page by page."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = self.get("/audit", cursor=cursor, limit=min(500, left or 500))
            for item in page["items"]:
                yield AuditLine.read(item)
            cursor = page["next"]
            left = None if left is None else left - len(page["items"])
            if cursor is None:
                return


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
