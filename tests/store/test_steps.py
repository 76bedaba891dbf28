"""From an older schema to the newest: what was there is still there and means the same."""

from __future__ import annotations

from contextlib import closing

import sqlalchemy as sa
from tests.draw import a_job

from gpuyard.domain.people import Group, Quota
from gpuyard.domain.workload import Attempt
from gpuyard.store import gates, logins, people, workloads
from gpuyard.store.database import Database, parse_url
from gpuyard.store.migrate import migrate, revision_of
from gpuyard.store.migrations import NEWEST
from gpuyard.store.workload_rows import new_row

USER = "INSERT INTO users VALUES ('ann', 'hash', {no}, 7000, {yes}, {no}, 1.0)"
TOKEN = "INSERT INTO tokens VALUES ('t1', 'h1', 'ann', 'ci', 'write', 1.0, NULL, 2.0, NULL)"


def test_tokens_of_the_first_schema_were_made_with_no_other(empty_database_url: str) -> None:
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as old, old.exclusive() as conn:
        migrate(conn, "0001")
        no, yes = ("false", "true") if old.dialect == "postgresql" else ("0", "1")
        conn.exec_driver_sql(USER.format(no=no, yes=yes))
        conn.exec_driver_sql(TOKEN)
    with closing(Database.open(empty_database_url)) as database:
        with database.read() as conn:
            assert revision_of(conn) == NEWEST
            before = logins.TokenRow("t1", "h1", "ann", "ci", "write", 1.0, None, 2.0, None)
            assert logins.get_token(conn, "t1") == before
        with database.write() as conn:
            logins.add_token(conn, logins.TokenRow("t2", "h2", "ann", "ci", "write", 1.0, parent="t1"))
            assert logins.made_with(conn, "t1") == ["t2"]


def test_quotas_and_groups_of_the_second_schema_keep_their_limits_and_count_alike(empty_database_url: str) -> None:
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as old, old.exclusive() as conn:
        migrate(conn, "0002")
        conn.exec_driver_sql("INSERT INTO groups VALUES ('vision', 7000, 1.0)")
        conn.exec_driver_sql("INSERT INTO quotas VALUES ('vision', '', 'nvidia', 8000), ('vision', 'ann', 'cpu', 5)")
    with closing(Database.open(empty_database_url)) as database:
        quotas = (Quota("vision", "nvidia", 8000), Quota("vision", "cpu", 5, "ann"))
        with database.read() as conn:
            assert people.all_groups(conn) == [Group("vision", quotas, 7000)]
        with database.write() as conn:
            people.set_quota(conn, Quota("vision", "nvidia", None, guaranteed=1000))
            people.remove_group(conn, "vision")
            assert conn.exec_driver_sql("SELECT count(*) FROM quotas").scalar() == 0


def test_attempts_of_the_second_schema_never_said_that_their_work_was_saved(empty_database_url: str) -> None:
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as old, old.exclusive() as conn:
        migrate(conn, "0002")
        row = {**new_row(a_job(), None, None), "attempt": 1}
        conn.execute(sa.insert(sa.table("workloads", *map(sa.column, row))), row)
        conn.exec_driver_sql("INSERT INTO attempts VALUES ('job0000001', 1, 2.0, 3.0, 4.0, NULL)")
    with closing(Database.open(empty_database_url)) as database, database.read() as conn:
        assert workloads.attempts(conn, "job0000001") == [Attempt(1, 2.0, (), started_at=3.0, ended_at=4.0)]


def test_what_someone_has_live_is_counted_from_an_index(database: Database) -> None:
    query = "SELECT count(*) FROM workloads WHERE state NOT IN ('succeeded', 'failed', 'stopped') AND owner = 'ann'"
    with database.write() as conn:
        assert workloads.count_live(conn, "ann") == 0
        if database.dialect == "postgresql":
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
            plan = conn.exec_driver_sql(f"EXPLAIN {query}").all()
        else:
            plan = conn.execute(sa.text(f"EXPLAIN QUERY PLAN {query}")).all()
    assert "ix_workloads_live_owner" in str(plan)


def test_attempts_of_the_eighth_schema_add_up_what_earlier_ones_held_and_saved(empty_database_url: str) -> None:
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as old, old.exclusive() as conn:
        migrate(conn, "0008")
        row = {**new_row(a_job(), None, None), "attempt": 3}
        conn.execute(sa.insert(sa.table("workloads", *map(sa.column, row))), row)
        for attempt in ("1, 2.0, 3.0, 14.0, NULL, 8.0, NULL", "2, 20.0, 21.0, 25.0, NULL, NULL, NULL"):
            conn.exec_driver_sql(f"INSERT INTO attempts VALUES ('job0000001', {attempt})")
        conn.exec_driver_sql("INSERT INTO attempts VALUES ('job0000001', 3, 30.0, NULL, NULL, NULL, NULL, NULL)")
    with closing(Database.open(empty_database_url)) as database, database.read() as conn:
        first, second, third = workloads.attempts(conn, "job0000001")
        assert (first.served_before, second.served_before, third.served_before) == (0.0, 12.0, 17.0)
        assert (first.kept_before, second.kept_before, third.kept_before) == (0.0, 5.0, 5.0)


def test_sessions_of_the_tenth_schema_end_with_the_ways_in_they_opened_and_tokens_stay(empty_database_url: str) -> None:
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as old, old.exclusive() as conn:
        migrate(conn, "0010")
        no, yes = ("false", "true") if old.dialect == "postgresql" else ("0", "1")
        conn.exec_driver_sql(USER.format(no=no, yes=yes))
        conn.exec_driver_sql(TOKEN.replace(")", ", NULL)"))
        conn.exec_driver_sql("INSERT INTO sessions VALUES ('s1', 'ann', 'csrf', 1.0, 9.0)")
        for table in ("gate_codes", "gate_sessions"):
            for secret, parent in (("g1", "session:s1"), ("g2", "token:t1"), ("g3", "owner")):
                row = f"'{secret}', 'ann', '', '', '{parent}', 1.0, 9.0"
                conn.exec_driver_sql(f"INSERT INTO {table} VALUES ({row})")
    with closing(Database.open(empty_database_url)) as database:
        with database.read() as conn:
            assert logins.session_by_hash(conn, "s1") is None
            assert gates.session_by_hash(conn, "g1") is None
            assert gates.session_by_hash(conn, "g2") is not None
            assert gates.session_by_hash(conn, "g3") is not None
            assert logins.get_token(conn, "t1") is not None
        with database.write() as conn:
            assert [gates.take_code(conn, secret, 2.0) is None for secret in ("g1", "g2")] == [True, False]
            session = logins.SessionRow("s2", "ann", "k2", 1.0, 9.0)
            logins.add_session(conn, session)
            assert logins.session_by_hash(conn, "s2") == session
            people.remove_user(conn, "ann")
            assert logins.session_by_hash(conn, "s2") is None
