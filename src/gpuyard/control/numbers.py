"""At start: whoever has a system number of an older version gets a block of them, and their files follow."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from gpuyard.domain.places import SHARE, USER, Root
from gpuyard.files.renumbering import give_home, renumber
from gpuyard.store import people, renumbering
from gpuyard.store.database import Database

log = logging.getLogger(__name__)


def give_blocks(database: Database, roots: Sequence[Root], first: int) -> None:
    """Before any work is started. Cut off, it goes on at the next start. Raises OSError for a folder out of reach."""
    with database.read() as conn:
        if not renumbering.is_needed(conn, first):
            return
    with database.write() as conn:
        given = renumbering.begin(conn, first)
    if given.later:
        log.warning("keep their old system numbers until a start at which no work runs: %s", ", ".join(given.later))
    if not given:
        return
    log.info("giving the files of %d users and %d groups to new system numbers", len(given.uids), len(given.gids))
    gids = {**given.uids, **given.gids}  # everybody's own group has their number
    for folder in (Path(root.outside) / name for root in roots for name in (USER, SHARE)):
        stayed = renumber(folder, given.uids, gids) if folder.is_dir() else 0
        if stayed:
            log.warning("%d entries in %s could not be given to new numbers", stayed, folder)
    _give_homes(database, roots, set(given.uids.values()))
    with database.write() as conn:
        renumbering.finish(conn)
    log.info("all files have been given to new system numbers")


def _give_homes(database: Database, roots: Sequence[Root], uids: set[int]) -> None:
    with database.read() as conn:
        users = [user for user in people.all_users(conn) if user.uid in uids]
    for user in users:
        for home in (Path(root.home(user.name)) for root in roots):
            if home.is_dir():
                give_home(home, user.uid)
