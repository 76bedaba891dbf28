"""One control at a time, and a control that lost its place writes nothing more."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from tests.postgres import PostgresServer, postgres_server

from gpuyard.domain.errors import Conflict
from gpuyard.domain.reasons import Code
from gpuyard.store.control_lock import CONTROL_LOCK, ControlLock, LostControl
from gpuyard.store.database import Database


def test_the_second_control_is_refused_and_told_who_holds_the_lock(database: Database, database_url: str) -> None:
    lock = ControlLock.acquire(database, "server 17 on host a")
    with closing(Database.open(database_url)) as other, pytest.raises(Conflict) as caught:
        ControlLock.acquire(other, "server 18 on host b")
    assert caught.value.reason.code is Code.IN_USE
    assert caught.value.reason.facts["by"] == "server 17 on host a"
    lock.release()


def test_after_a_release_the_next_one_gets_a_newer_epoch(database: Database) -> None:
    first = ControlLock.acquire(database, "a")
    first.release()
    first.release()
    second = ControlLock.acquire(database, "b")
    assert second.epoch == first.epoch + 1
    second.release()


def test_what_is_released_is_free_at_once(database: Database) -> None:
    for _ in range(20):
        ControlLock.acquire(database, "a").release()


def test_the_lock_of_a_killed_process_is_free_again(database: Database, database_url: str) -> None:
    code = (
        "import sys; from gpuyard.store.database import Database; from gpuyard.store.control_lock import ControlLock; "
        "lock = ControlLock.acquire(Database.open(sys.argv[1]), 'x'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, database_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Conflict):
            ControlLock.acquire(database, "y")
        holder.kill()
    acquire_soon(database).release()


def acquire_soon(database: Database) -> ControlLock:
    """PostgreSQL needs a moment to notice that a client is gone."""
    for _ in range(1000):
        try:
            return ControlLock.acquire(database, "y")
        except Conflict:
            database.feed.wait_for_change(1 << 60, 0.02)
    raise AssertionError("the lock was never let go")


def test_a_holder_that_was_overtaken_is_stopped_inside_its_next_write(database: Database) -> None:
    old = ControlLock.acquire(database, "old")
    old.release()  # as if its connection had been cut: it still believes that it holds the lock
    new = ControlLock.acquire(database, "new")
    with pytest.raises(LostControl), database.write() as conn:
        old.check(conn)
    with database.write() as conn:
        new.check(conn)
    with pytest.raises(LostControl):
        old.renew(database)
    new.renew(database)
    new.release()


def test_the_lock_is_taken_again_after_postgresql_restarted(postgres: PostgresServer) -> None:
    with postgres_server() as server, closing(Database.open(server.url)) as database:
        lock = ControlLock.acquire(database, "a")
        server.restart()
        lock.renew(database)
        with psycopg.connect(server.url) as connection:
            row = connection.execute(f"SELECT pg_try_advisory_lock({CONTROL_LOCK})").fetchone()
        assert row == (False,)
        lock.release()


def test_a_holder_notices_that_another_took_the_lock_while_the_server_was_away(postgres: PostgresServer) -> None:
    with postgres_server() as server, closing(Database.open(server.url)) as database:
        lock = ControlLock.acquire(database, "a")
        server.restart()
        with closing(Database.open(server.url)) as other:
            successor = ControlLock.acquire(other, "b")
            with pytest.raises(LostControl):
                lock.renew(database)
            successor.release()
