"""Backups: whole, of one moment, and good for either kind of database."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.draw import a_job, a_node
from tests.postgres import PostgresServer
from tests.store.lines import run_to_the_end, submit
from tests.store.test_database import damaged

from gpuyard.domain.errors import BadInput, Conflict, Unavailable
from gpuyard.domain.people import Group, Membership, Quota, Role, User
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import PastUse
from gpuyard.store import (
    audit,
    gates,
    guesses,
    login_tries,
    logins,
    nodes,
    people,
    schema,
    sharing,
    workloads,
    workplaces,
)
from gpuyard.store.backup import backup
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.store.migrations import NEWEST
from gpuyard.store.restore import restore


def fill(database: Database) -> None:
    """Something in every table."""
    submit(database, a_job("job0000001", replicas=2), a_job("job0000002", name="训练"))
    run_to_the_end(database, a_job("job0000001", replicas=2))
    with database.write() as conn:
        quotas = (Quota("vision", "nvidia", 8000), Quota("vision", "ascend", guaranteed=4000))
        people.create_group(conn, Group("vision", quotas, weight=2.5, fifo=True), 1.0)
        member = (Membership("vision", Role.LEAD),)
        people.create_user(conn, User("ann", memberships=member, uid=people.next_uid(conn, 7000)), "hash", 1.0)
        logins.add_token(conn, logins.TokenRow("t", "h", "ann", "n", "read", 1.1))
        logins.add_session(conn, logins.SessionRow("s", "ann", "c", 1.0, 2.0))
        nodes.save(conn, [a_node("a", 8)], 1.0)
        nodes.set_cordoned(conn, "a", True)
        nodes.set_labels(conn, "a", {"zone": "北"})
        sharing.charge(conn, {("vision", None): PastUse(1.0 / 3, 2.0), ("vision", "ann"): PastUse(0.25, 2.0)})
        sharing.add_run_times(conn, {("ann", "train"): (1.5, 2.5)})
        sharing.set_policy_text(conn, '{"backfill": false}')
        gates.add_code(conn, gates.GateCode("c", "ann", "job0000001", "lab", "owner", 1.0, 61.0))
        gates.add_session(conn, gates.GateSession("g", "ann", "job0000001", "lab", "token:t", 1.0, 9.0))
        workplaces.add(conn, "job0000001", stop_at=1.0 / 3)
        login_tries.put(conn, {"hash": login_tries.Tries(3.0, 1.0 / 3)})
        key = {"id": "k", "user_name": "ann", "name": "laptop", "public_key": "ssh-ed25519 A", "fingerprint": "f"}
        conn.execute(sa.insert(schema.ssh_keys), {**key, "created_at": 1.5})
        amounts = {"node": "a", "model": "H100", **dict.fromkeys(schema.LEDGER_AMOUNTS, 1 << 60)}
        conn.execute(sa.insert(schema.ledger), {"at": 3_600_000, "hours": 1, **amounts})
        conn.execute(sa.insert(schema.ledger_now), {"since": 7_200_000, **amounts})
        guesses.add(conn, [guesses.GuessRow("job0000001", 1.0 / 3, 2.0, 3.0, 4.5, None)])
        audit.append(conn, audit.AuditEntry(1.0 / 3, "ann", "submit", "job0000001", facts={"ü": "\x00"}))


def contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as conn:
        return {
            table.name: sorted(tuple(row) for row in conn.execute(sa.select(table)))
            for table in schema.metadata.sorted_tables
        }


@pytest.fixture(params=["sqlite", "postgresql"])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A second, empty database, of the same kind or the other."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/other/gpuyard.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


def test_a_backup_comes_back_whole_in_the_same_kind_of_database_and_in_the_other(
    database: Database, other_url: str, tmp_path: Path
) -> None:
    fill(database)
    assert all(contents(database).values()), "every table is part of this test"
    backup(database, tmp_path / "backup")
    restore(other_url, tmp_path / "backup")
    with closing(Database.open(other_url)) as other:
        assert contents(other) == contents(database)
        submit(other, a_job("job0000003"))
        with other.read() as conn:
            assert len(workloads.live(conn)) == 2
            assert audit.verify(conn) is None
        position = other.feed.position()
        assert position == database.feed.position() + 1


def test_a_backup_is_for_its_owner_only_and_leaves_nothing_unfinished(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    backup(database, folder / "b")
    backup(database, folder / "b")
    assert [path.name for path in folder.iterdir()] == ["b"]
    assert (folder / "b").stat().st_mode & 0o777 == 0o600


def test_a_backup_made_while_writers_run_belongs_to_one_moment(database: Database, tmp_path: Path) -> None:
    """Each transaction writes a job and its audit entry; a copy from two moments would have one without the other."""
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            job = a_job(f"job{number:07d}")
            with database.write() as conn:
                workloads.insert(conn, job, (), idempotency_key=None, request_digest=None)
                audit.append(conn, audit.AuditEntry(1.0, "ann", "submit", job.id))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            database.feed.wait_for_change(database.feed.position(), 20.0)
            backup(database, tmp_path / f"backup{number}")
    finally:
        done.set()
        writer.join()
    restore(f"sqlite:///{tmp_path}/other.db", tmp_path / "backup4")
    with closing(Database.open(f"sqlite:///{tmp_path}/other.db")) as other, other.read() as conn:
        jobs = {job.id for job in workloads.live(conn)}
        assert jobs
        assert jobs == {entry.object for entry in audit.page(conn, None, 100_000)}


def test_a_database_with_contents_is_replaced_only_by_force(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    submit(database, a_job("job0000001"))
    backup(database, tmp_path / "backup")
    submit(database, a_job("job0000002"))
    database.close()
    with pytest.raises(Conflict) as caught:
        restore(database_url, tmp_path / "backup")
    assert caught.value.reason.code is Code.ALREADY_THERE
    restore(database_url, tmp_path / "backup", force=True)
    with closing(Database.open(database_url)) as again, again.read() as conn:
        assert workloads.live(conn) == [a_job("job0000001")]


def test_a_database_in_use_is_not_replaced_even_by_force(database: Database, database_url: str, tmp_path: Path) -> None:
    fill(database)
    backup(database, tmp_path / "backup")
    lock = ControlLock.acquire(database, "server 17")
    before = contents(database)
    with pytest.raises(Conflict) as caught:
        restore(database_url, tmp_path / "backup", force=True)
    assert caught.value.reason.code is Code.IN_USE
    assert contents(database) == before
    lock.release()


def test_a_damaged_file_is_not_backed_up_and_is_brought_back_by_force(tmp_path: Path) -> None:
    path = tmp_path / "gpuyard.db"
    with closing(Database.open(f"sqlite:///{path}")) as database:
        fill(database)
        before = contents(database)
        backup(database, tmp_path / "backup")
        database.close()
        damaged(path, 4 * 4096)
        broken = path.read_bytes()
        with pytest.raises(Unavailable) as caught:
            backup(database, tmp_path / "useless")
        assert caught.value.reason.code is Code.STORE_CORRUPT
    assert not (tmp_path / "useless").exists()
    restore(f"sqlite:///{path}", tmp_path / "backup", force=True)
    with closing(Database.open(f"sqlite:///{path}")) as database:
        assert contents(database) == before
    assert (tmp_path / "gpuyard.db.replaced").read_bytes() == broken


def cut_short(text: bytes) -> bytes:
    return text[: len(text) // 2]


def flipped(text: bytes) -> bytes:
    middle = len(text) // 2
    return text[:middle] + bytes([text[middle] ^ 0xFF]) + text[middle + 1 :]


def without_end(text: bytes) -> bytes:
    return gzip.compress(b"".join(gzip.decompress(text).splitlines(keepends=True)[:-1]))


def without_a_row(text: bytes) -> bytes:
    lines = gzip.decompress(text).splitlines(keepends=True)
    row = next(number for number, line in enumerate(lines) if line.startswith(b"["))
    return gzip.compress(b"".join(lines[:row] + lines[row + 1 :]))


def with_a_strange_table(text: bytes) -> bytes:
    lines = gzip.decompress(text).splitlines(keepends=True)
    strange = json.dumps({"table": "pg_authid; DROP TABLE users", "columns": ["a"]}).encode() + b"\n"
    return gzip.compress(b"".join([lines[0], strange, *lines[1:]]))


def with_an_edited_audit(text: bytes) -> bytes:
    return gzip.compress(gzip.decompress(text).replace(b'"submit","job0000001"', b'"submit","job0000002"'))


def something_else(_: bytes) -> bytes:
    return gzip.compress(b'{"hello": 1}\n')


def not_even_gzip(_: bytes) -> bytes:
    return b"my thesis"


def empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    "spoil",
    [
        cut_short,
        flipped,
        without_end,
        without_a_row,
        with_a_strange_table,
        with_an_edited_audit,
        something_else,
        not_even_gzip,
        empty,
    ],
)
def test_a_spoilt_backup_is_refused_and_nothing_is_changed(
    database: Database, database_url: str, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    fill(database)
    backup(database, tmp_path / "backup")
    (tmp_path / "spoilt").write_bytes(spoil((tmp_path / "backup").read_bytes()))
    before = contents(database)
    with pytest.raises(BadInput) as caught:
        restore(database_url, tmp_path / "spoilt", force=True)
    assert caught.value.reason.code is Code.BAD_BACKUP
    assert contents(database) == before


def test_a_backup_from_a_newer_program_and_a_missing_one_are_refused(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    backup(database, tmp_path / "backup")
    newer = gzip.decompress((tmp_path / "backup").read_bytes()).replace(f'"{NEWEST}"'.encode(), b'"9999"')
    (tmp_path / "newer").write_bytes(gzip.compress(newer))
    with pytest.raises(Conflict) as caught:
        restore(database_url, tmp_path / "newer", force=True)
    assert caught.value.reason.code is Code.STORE_NEWER
    with pytest.raises(BadInput):
        restore(database_url, tmp_path / "nowhere", force=True)
