"""The change feed: nobody misses a change, and who waits is woken."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest
from tests.postgres import PostgresServer, postgres_server

from gpuyard.store.database import Database
from gpuyard.store.feed import Change, FeedTooOld, changes_since, newest_change, note_change, prune

SOON = 20.0


def note(database: Database, *ids: str) -> None:
    with database.write() as conn:
        for id in ids:
            note_change(conn, "workload", id)


def test_changes_are_numbered_in_order_and_read_in_parts(database: Database) -> None:
    note(database, "a", "b")
    note(database, "c")
    with database.read() as conn:
        first = changes_since(conn, 0, 2)
        rest = database.feed.changes_since(conn, first[-1].seq, 10)
        assert newest_change(conn) == rest[-1].seq == database.feed.position()
    assert [(change.kind, change.id) for change in first + rest] == [(("workload"), id) for id in "abc"]
    assert sorted({change.seq for change in first + rest}) == [change.seq for change in first + rest]


def test_waiting_ends_at_once_when_the_change_is_already_there(database: Database) -> None:
    note(database, "a")
    position = database.feed.position()
    assert database.feed.wait_for_change(position - 1, SOON) == position


def test_waiting_gives_back_the_same_number_when_time_is_up(database: Database) -> None:
    note(database, "a")
    position = database.feed.position()
    assert database.feed.wait_for_change(position, 0.05) == position


def test_a_change_by_another_process_wakes_the_waiting(database: Database, database_url: str) -> None:
    """Two `Database` objects share nothing but the database, as two processes do."""
    position = database.feed.position()
    with closing(Database.open(database_url)) as other:
        writer = threading.Timer(0.2, note, (other, "a"))
        writer.start()
        assert database.feed.wait_for_change(position, SOON) > position
        writer.join()


def test_a_change_by_another_process_before_the_first_wait_is_not_missed(database: Database, database_url: str) -> None:
    position = database.feed.position()
    with closing(Database.open(database_url)) as other:
        note(other, "a")
    assert database.feed.wait_for_change(position, SOON) > position


def test_subscribers_are_called_until_they_leave_and_a_failing_one_harms_nobody(database: Database) -> None:
    heard = threading.Semaphore(0)
    database.feed.subscribe(lambda: 1 // 0)  # type: ignore[arg-type]
    leave = database.feed.subscribe(heard.release)
    note(database, "a")
    assert heard.acquire(timeout=SOON)
    leave()
    leave()
    while heard.acquire(timeout=0.2):
        pass
    note(database, "b")
    assert not heard.acquire(timeout=0.3)


def test_a_transaction_that_failed_wakes_nobody(database: Database) -> None:
    note(database, "a")
    position = database.feed.position()

    def note_and_fail() -> None:
        with database.write() as conn:
            note_change(conn, "workload", "b")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        note_and_fail()
    assert database.feed.wait_for_change(position, 0.3) == position


def test_closing_ends_every_wait(database: Database) -> None:
    position = database.feed.position()
    waiter = threading.Thread(target=database.feed.wait_for_change, args=(position, 600.0))
    waiter.start()
    database.close()
    waiter.join(SOON)
    assert not waiter.is_alive()


def test_old_changes_are_pruned_and_a_follower_that_slept_too_long_is_told(database: Database) -> None:
    note(database, *(f"old{number}" for number in range(10)))
    with database.write() as conn:
        assert prune(conn, 1000.0, kept_seconds=60.0, kept_changes=3) == 0
    note(database, *(f"new{number}" for number in range(10)))
    with database.write() as conn:
        tenth = changes_since(conn, 0)[9].seq
        assert prune(conn, 1030.0, kept_seconds=60.0, kept_changes=3) == 0, "too young"
        assert prune(conn, 1061.0, kept_seconds=60.0, kept_changes=15) == 5, "old enough, but only five beyond fifteen"
        assert prune(conn, 1062.0, kept_seconds=60.0, kept_changes=3) == 5, "the old ten, not the young ten"
    with database.read() as conn:
        assert [change.id for change in changes_since(conn, tenth)] == [f"new{number}" for number in range(10)]
        with pytest.raises(FeedTooOld):
            changes_since(conn, tenth - 1)
        with pytest.raises(FeedTooOld):
            changes_since(conn, 0)


def test_the_feed_keeps_its_number_when_all_it_may_forget_is_forgotten(database: Database) -> None:
    note(database, "a", "b")
    position = database.feed.position()
    with database.write() as conn:
        prune(conn, 0.0, kept_seconds=1.0, kept_changes=0)
        assert prune(conn, 100.0, kept_seconds=1.0, kept_changes=0) == 1
    assert database.feed.position() == position
    note(database, "c")
    with database.read() as conn:
        assert changes_since(conn, position) == [Change(newest_change(conn), "workload", "c")]
        assert newest_change(conn) > position


def test_a_follower_hears_again_after_postgresql_was_killed_and_came_back(postgres: PostgresServer) -> None:
    with (
        postgres_server() as server,
        closing(Database.open(server.url)) as database,
        closing(Database.open(server.url)) as other,
    ):
        note(database, "a")
        position = database.feed.wait_for_change(0, SOON)
        server.kill()
        server.start()
        note(other, "b")
        assert database.feed.wait_for_change(position, SOON) > position
