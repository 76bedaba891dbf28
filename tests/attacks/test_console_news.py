"""Streams of the console that stay open for hours: what they tell to somebody whose rights have changed meanwhile, and
whether one bad moment of the store silences them for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.test_overview import listening, submitted
from tests.api.yard import Yard, running

from gpuyard.api.live import Live
from gpuyard.domain.errors import Unavailable
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database
from gpuyard.store.feed import newest_change, note_changes, prune
from gpuyard.world.view import View

SECONDS = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yield yard


def test_who_leads_no_more_hears_no_more_of_the_groups_work_on_a_page_left_open(server: Yard) -> None:
    server.group("attic")
    lea, mia = server.person("lea", role="lead", group="attic"), server.person("mia", group="attic")
    with listening(lea) as told, server.owner as owner:
        assert next(told)[0] == "hello"
        demoted = owner.put("/api/v1/groups/attic/members/lea", json={"role": "member"})
        assert demoted.status_code == 200, demoted.text
        deadline = time.monotonic() + SECONDS
        while True:  # the right to it is looked at every few seconds
            theirs, own = submitted(mia, group="attic"), submitted(lea, group="attic")
            server.start(theirs)
            heard: list[str] = []
            while own not in heard:
                _, data, _ = next(told)
                heard += data["workloads"]
            if theirs not in heard:
                return
            assert time.monotonic() < deadline, "she is still told of the work of a group that she leads no more"
            server.end(theirs)


def test_a_store_that_fails_just_when_all_is_looked_at_anew_does_not_silence_the_news(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'gpuyard.db'}")
    troubles: list[Unavailable] = []

    class Failing(View):
        def holding(self) -> list[Workload]:
            if troubles:
                raise troubles.pop()
            return super().holding()

    async def follow() -> None:
        live = Live(database, Failing(database, time.time))
        async with live.listening():
            troubles.append(Unavailable(because(Code.STORE_FULL)))
            sleep_too_long(database)
            await until(lambda: not troubles)
            with database.write() as conn:
                note_changes(conn, workloads.KIND, ["later"])
                newest = newest_change(conn)
            await until(lambda: live.position == newest)

    try:
        asyncio.run(follow())
    finally:
        database.close()


def sleep_too_long(database: Database) -> None:
    """What a listener missed is no longer kept."""
    now = time.time()
    with database.write() as conn:
        note_changes(conn, workloads.KIND, [f"work{n}" for n in range(5)])
        for at in (now - 10, now):
            prune(conn, at, kept_seconds=1, kept_changes=1)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not true():
            await asyncio.sleep(0.02)
