"""Opening, transactions, and what happens when the database is busy, full, broken, newer or away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.sql import SQL, Identifier, Literal
from tests.draw import a_job
from tests.postgres import PostgresServer, postgres_server
from tests.store.lines import submit

from gpuyard.domain.errors import BadInput, Conflict, Unavailable
from gpuyard.domain.reasons import Code
from gpuyard.store import facts, schema, workloads
from gpuyard.store.database import Database, parse_url
from gpuyard.store.migrate import build, migrate
from gpuyard.store.migrations import NEWEST, REVISIONS
from gpuyard.words import say

SOON = 20.0


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


# --- opening ------------------------------------------------------------------------------------------------------


def test_the_steps_lead_to_exactly_the_schema_a_new_database_gets(empty_database_url: str) -> None:
    """Compared as the database itself describes it: every column, type, collation, key, index and condition."""
    url = parse_url(empty_database_url)
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as database:
        with database.exclusive() as conn:
            migrate(conn)
            by_steps = description(conn)
        with database.exclusive() as conn:
            for table in by_steps:
                conn.exec_driver_sql(f"DROP TABLE {table}" + (" CASCADE" if database.dialect == "postgresql" else ""))
            build(conn)
            assert description(conn) == by_steps
            assert len(by_steps) == len(schema.metadata.tables) + 1


def description(conn: sa.Connection) -> dict[str, object]:
    inspector = sa.inspect(conn)
    tables = [name for name in inspector.get_table_names() if not name.startswith("sqlite_")]
    return {
        table: {
            "columns": [{**c, "type": c["type"].compile(conn.dialect)} for c in inspector.get_columns(table)],
            "key": inspector.get_pk_constraint(table),
            "foreign": sorted(inspector.get_foreign_keys(table), key=str),
            "unique": sorted(inspector.get_unique_constraints(table), key=str),
            "indexes": sorted(json.dumps(index, default=str) for index in inspector.get_indexes(table)),
            "options": inspector.get_table_options(table),
        }
        for table in tables
    }


def test_the_list_of_steps_is_the_one_the_files_make() -> None:
    from alembic.script import ScriptDirectory

    folder = Path(schema.__file__).parent / "migrations"
    steps = [script.revision for script in ScriptDirectory(str(folder)).walk_revisions()]
    assert tuple(reversed(steps)) == REVISIONS


def test_a_new_and_an_up_to_date_database_are_opened_without_the_migration_tool(empty_database_url: str) -> None:
    code = (
        "import sys; from gpuyard.store.database import Database; Database.open(sys.argv[1]).close(); "
        "sys.exit('alembic' in sys.modules)"
    )
    for _ in ("new", "up to date"):
        result = run_python(code, empty_database_url)
        assert result.returncode == 0, result.stderr


def test_a_database_written_by_a_newer_program_is_refused_and_left_alone(database: Database, database_url: str) -> None:
    submit(database, a_job())
    with database.write() as conn:
        conn.exec_driver_sql("UPDATE schema_version SET version_num = '9999'")
    with pytest.raises(Conflict) as caught:
        Database.open(database_url)
    assert caught.value.reason.code is Code.STORE_NEWER
    assert caught.value.reason.facts == {"found": "9999", "known": NEWEST}
    with database.read() as conn:
        assert workloads.get(conn, a_job().id) == a_job()


def test_opening_at_the_same_time_from_several_processes_builds_it_once(empty_database_url: str) -> None:
    code = "import sys; from gpuyard.store.database import Database; Database.open(sys.argv[1]).close()"
    openers = [
        subprocess.Popen([sys.executable, "-c", code, empty_database_url], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    errors = [opener.communicate()[1] for opener in openers]
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0], errors


BUILD_AT_ONCE = "Database.open(sys.argv[1]).close()"
BUILD_BY_STEPS = """
with Database(parse_url(sys.argv[1]), lock_seconds=15.0, patience_seconds=30.0).exclusive() as conn:
    if revision_of(conn) is None:
        migrate(conn)
"""


@pytest.mark.parametrize("way", [BUILD_AT_ONCE, BUILD_BY_STEPS], ids=["at once", "by steps"])
def test_building_the_schema_can_be_killed_at_any_moment_and_is_taken_up_again(
    empty_database_url: str, way: str
) -> None:
    """The moment moves over the whole way: connect, every table, commit."""
    code = (
        "import sys, alembic.runtime.environment; from gpuyard.store.database import Database, parse_url; "
        f"from gpuyard.store.migrate import migrate, revision_of; print('go', flush=True)\n{way}"
    )
    for delay_ms in (0, 8, 16, 24, 40, 60):
        builder = subprocess.Popen([sys.executable, "-c", code, empty_database_url], stdout=subprocess.PIPE)
        assert builder.stdout is not None
        assert builder.stdout.readline() == b"go\n"
        time.sleep(delay_ms / 1000)
        builder.kill()
        builder.wait()
        builder.stdout.close()
    with closing(Database.open(empty_database_url)) as database:
        submit(database, a_job())
        with database.read() as conn:
            assert workloads.live(conn) == [a_job()]


@pytest.mark.parametrize("url", ["", "mysql://x", "sqlite://", "sqlite:///:memory:", "nonsense", "http://a/b"])
def test_addresses_that_are_no_database_of_ours_are_refused(url: str) -> None:
    with pytest.raises(BadInput):
        Database.open(url)


def test_a_file_and_its_side_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with closing(Database.open(f"sqlite:///{tmp_path}/made/gpuyard.db")) as database:
        submit(database, a_job())
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "made").iterdir()}
    assert set(modes) == {"gpuyard.db", "gpuyard.db-wal", "gpuyard.db-shm"}
    assert set(modes.values()) == {0o600}


# --- damage -------------------------------------------------------------------------------------------------------


def damaged(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(os.urandom(4096))


@pytest.mark.parametrize("page", [0, 1, 2, 3, 10])
def test_a_damaged_file_is_refused_with_the_command_that_brings_it_back(tmp_path: Path, page: int) -> None:
    path = tmp_path / "gpuyard.db"
    with closing(Database.open(f"sqlite:///{path}")) as database:
        submit(database, *(a_job(f"job{number:07d}") for number in range(200)))
    damaged(path, page * 4096)
    with pytest.raises(Unavailable) as caught:
        Database.open(f"sqlite:///{path}")
    reason = caught.value.reason
    assert reason.code is Code.STORE_CORRUPT
    assert f"yard restore FILE --data {tmp_path}" in say(reason, "en")


def test_a_file_that_is_something_else_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "gpuyard.db"
    path.write_text("my thesis\n" * 1000)
    with pytest.raises(Unavailable):
        Database.open(f"sqlite:///{path}")
    assert path.read_text() == "my thesis\n" * 1000


# --- transactions -------------------------------------------------------------------------------------------------


def test_a_read_belongs_to_one_moment_and_does_not_wait_for_the_writer(database: Database) -> None:
    submit(database, a_job("job0000001"))
    with database.write() as writing:
        workloads.insert(writing, a_job("job0000002"), (), idempotency_key=None, request_digest=None)
        with database.read() as reading:
            assert len(workloads.live(reading)) == 1
    with database.read() as reading:
        assert len(workloads.live(reading)) == 2
        submit(database, a_job("job0000003"))
        assert len(workloads.live(reading)) == 2


def test_a_write_inside_a_write_is_a_mistake_and_is_said_at_once(database: Database) -> None:
    with database.write(), pytest.raises(RuntimeError, match="inside another"), database.write():
        pass
    submit(database, a_job())


def test_nothing_can_be_written_in_a_read(database: Database) -> None:
    with pytest.raises(sa.exc.DBAPIError), database.read() as conn:
        facts.put(conn, "a", "b")


def test_waiting_too_long_for_another_process_is_told_as_busy(database: Database, database_url: str) -> None:
    with closing(Database.open(database_url, lock_seconds=0.2)) as other, database.write():
        with pytest.raises(Unavailable) as caught:
            submit(other, a_job())
        assert caught.value.reason.code is Code.BUSY_STORE
    submit(database, a_job())


def test_waiting_too_long_for_another_thread_is_told_as_busy(database_url: str) -> None:
    with closing(Database.open(database_url, lock_seconds=0.2)) as database:
        told: list[Code] = []

        def write() -> None:
            try:
                submit(database, a_job())
            except Unavailable as error:
                told.append(error.reason.code)

        with database.write():
            other = threading.Thread(target=write)
            other.start()
            other.join(SOON)
        assert told == [Code.BUSY_STORE]


def test_many_threads_read_and_write_together(database: Database) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                submit(database, a_job(f"t{number}x{turn:07d}"))
                with database.read() as conn:
                    workloads.live(conn)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.read() as conn:
        assert len(workloads.live(conn)) == 240


# --- full and away ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting a small disk is not permitted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return


def submit_until_refused(database: Database) -> tuple[int, Code]:
    """How many are stored, the one before this included, and why the next was not."""
    for number in range(1, 10_000):
        try:
            submit(database, a_job(f"job{number:07d}"))
        except Unavailable as error:
            return number, error.reason.code
    raise AssertionError("it was never refused")


def test_a_full_disk_is_told_reading_goes_on_and_writing_returns_with_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    with closing(Database.open(f"sqlite:///{small_disk}/gpuyard.db")) as database:
        submit(database, a_job("job0000000"))
        fill_up(filler)
        acknowledged, refusal = submit_until_refused(database)
        assert refusal is Code.STORE_FULL
        with database.read() as conn:
            assert len(workloads.live(conn)) == acknowledged
        filler.unlink()
        submit(database, a_job("late000000"))
        with database.read() as conn:
            assert len(workloads.live(conn)) == acknowledged + 1
            assert conn.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_nothing_acknowledged_is_lost_when_postgresql_is_killed_and_work_goes_on(postgres: PostgresServer) -> None:
    with postgres_server() as server, closing(Database.open(server.url)) as database:
        for number in range(4):
            submit(database, a_job(f"job{number:07d}"))
            server.kill()
            back = threading.Timer(0.5, server.start)
            back.start()
            submit(database, a_job(f"new{number:07d}"))
            with database.read() as conn:
                assert len(workloads.live(conn)) == 2 * (number + 1)
            back.join()


def test_a_server_that_stays_away_is_told_as_busy(postgres: PostgresServer) -> None:
    with postgres_server() as server, closing(Database.open(server.url, patience_seconds=0.5)) as database:
        server.kill()
        with pytest.raises(Unavailable) as caught:
            submit(database, a_job())
        assert caught.value.reason.code is Code.BUSY_STORE
        with pytest.raises(Unavailable), database.read():
            pass
        server.start()
        submit(database, a_job())


def test_a_connection_lost_in_the_middle_of_a_write_is_told_and_leaves_no_trace(postgres: PostgresServer) -> None:
    with postgres_server() as server, closing(Database.open(server.url)) as database:

        def write_while_it_dies() -> None:
            with database.write() as conn:
                workloads.insert(conn, a_job(), (), idempotency_key=None, request_digest=None)
                server.kill()
                server.start()

        with pytest.raises(Unavailable):
            write_while_it_dies()
        with database.read() as conn:
            assert workloads.live(conn) == []


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_who_waited_to_write_sees_what_was_written_meanwhile_whatever_the_database_has_as_its_isolation(
    postgres: PostgresServer, isolation: str
) -> None:
    url = postgres.database_with_tables()
    with psycopg.connect(url, autocommit=True) as admin:
        name = Identifier(admin.info.dbname)
        for setting, value in (("isolation", isolation), ("read_only", "on")):
            words = SQL("ALTER DATABASE {} SET {} = {}")
            admin.execute(words.format(name, Identifier(f"default_transaction_{setting}"), Literal(value)))
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        seen: list[str] = []

        def write_second() -> None:
            with database_of_second.write() as conn:
                seen.extend(job.id for job in workloads.live(conn))

        with closing(Database.open(url)) as first, closing(Database.open(url)) as database_of_second:
            second = threading.Thread(target=write_second)
            with first.write() as conn:
                second.start()
                deadline = time.monotonic() + SOON
                while admin.execute(waits).fetchone() == (0,):
                    assert time.monotonic() < deadline, "the second does not wait for the lock"
                workloads.insert(conn, a_job(), (), idempotency_key=None, request_digest=None)
            second.join()
    assert seen == [a_job().id]


def test_a_wrong_database_name_is_told_at_once_and_not_waited_for(postgres: PostgresServer) -> None:
    with pytest.raises(sa.exc.OperationalError, match="does not exist"):
        Database.open(postgres.url_of("no_such_database"), patience_seconds=600.0)
