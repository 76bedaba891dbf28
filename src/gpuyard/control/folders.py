"""Every group's folder is its members': whoever joins gets in, whoever leaves gets out, in all of it.

Who belongs to a group is in the store; what its folder says is on disk. Here the two are compared, at start and
whenever people or groups change, and the folder follows. A large folder takes its time; the door to it does not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from gpuyard.domain.errors import YardError
from gpuyard.domain.people import Group, User
from gpuyard.files.shares import Shares
from gpuyard.store import people
from gpuyard.store.database import Database
from gpuyard.store.feed import has_changes_of, newest_change

log = logging.getLogger(__name__)

FULL_LOOK_SECONDS = 600.0
AGAIN_SECONDS = 60.0
_KINDS = (people.USER_KIND, people.GROUP_KIND)

Members = dict[str, tuple[int, frozenset[int]]]  # by group: its number, and its members'


class FolderKeeper:
    def __init__(self, database: Database, shares: Shares) -> None:
        self._database = database
        self._shares = shares
        self._position = 0
        self._look_at = 0.0  # everything is looked at then, whether something changed or not
        self._told: dict[str, str] = {}  # what went wrong with a group's folder, so that it is told once
        self._woken = threading.Event()
        self._over = threading.Event()

    def run(self) -> None:
        for root in self._shares.without_lists():
            log.warning(
                "%s keeps no access lists: what is made in a group's folder there is the group's by its number alone, "
                "and containers cannot share it",
                root,
            )
        unsubscribe = self._database.feed.subscribe(self._woken.set)
        try:
            while not self._over.is_set():
                self._woken.clear()
                self._try_to_look()
                self._woken.wait(AGAIN_SECONDS)
        finally:
            unsubscribe()

    def end(self) -> None:
        self._over.set()
        self._woken.set()

    def _try_to_look(self) -> None:
        try:
            self.look()
        except YardError:
            log.exception("the groups' folders were not looked at; trying again in a minute")
            self._look_at = 0.0

    def look(self) -> None:
        """Bring every folder up to date, if there is anything new: first all doors, then what lies behind them."""
        wanted = self._what_is_new()
        if wanted is None:
            return
        left = [group for group, (gid, members) in wanted.items() if self._open(group, gid, members)]
        for group in left:
            if not self._over.is_set():
                self._go_through(group, *wanted[group])

    def _what_is_new(self) -> Members | None:
        now = time.monotonic()
        with self._database.read() as conn:
            newest = newest_change(conn)
            if now < self._look_at and not has_changes_of(conn, self._position, _KINDS):
                self._position = newest
                return None
            found = members_of(people.all_groups(conn), people.all_users(conn))
        self._position, self._look_at = newest, now + FULL_LOOK_SECONDS
        return found

    def _open(self, group: str, gid: int, members: frozenset[int]) -> bool:
        try:
            return self._shares.open_to(group, gid, members)
        except OSError as problem:
            self._failed(group, problem)
            return False

    def _go_through(self, group: str, gid: int, members: frozenset[int]) -> None:
        try:
            self._shares.go_through(group, gid, members, is_over=self._over.is_set)
        except OSError as problem:
            self._failed(group, problem)

    def _failed(self, group: str, problem: OSError) -> None:
        if self._told.get(group) != str(problem):
            log.error("the folder of group %s is not wholly its members': %s; trying again", group, problem)
            self._told[group] = str(problem)
        self._look_at = min(self._look_at, time.monotonic() + AGAIN_SECONDS)


def members_of(groups: Iterable[Group], users: Iterable[User]) -> Members:
    """Those with numbers of their own. Someone shut out for now stays a member."""
    found: dict[str, set[int]] = {group.name: set() for group in groups if group.gid}
    for user in users:
        for group in user.groups if user.uid else ():
            found.get(group, set()).add(user.uid)
    return {group.name: (group.gid, frozenset(found[group.name])) for group in groups if group.gid}
