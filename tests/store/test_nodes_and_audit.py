"""Machines as seen and as wished; and the trail that cannot be edited unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from tests.draw import a_node

from gpuyard.domain.cluster import NodeState
from gpuyard.store import audit, nodes, schema
from gpuyard.store.audit import AuditEntry
from gpuyard.store.database import Database
from gpuyard.store.feed import changes_since, newest_change


def test_machines_are_read_back_and_only_what_changed_is_told(database: Database) -> None:
    a, b = a_node("a", 8, held=(3,)), a_node("b", 2, device="ascend")
    with database.write() as conn:
        assert nodes.save(conn, [b, a], 1.0) == ["b", "a"]
    position = database.feed.position()
    lost = replace(b, state=NodeState.LOST)
    with database.write() as conn:
        assert nodes.save(conn, [a, b], 2.0) == []
        assert nodes.save(conn, [a, lost], 3.0) == ["b"]
    with database.read() as conn:
        assert nodes.all(conn) == [a, lost]
        assert [(change.kind, change.id) for change in changes_since(conn, position)] == [("node", "b")]


def test_some_machines_are_read_as_all_are(database: Database) -> None:
    with database.write() as conn:
        nodes.save(conn, [a_node(name, 2) for name in ("c", "a", "b")], 1.0)
        nodes.set_cordoned(conn, "c", True)
        nodes.set_labels(conn, "a", {"zone": "north"})
        assert nodes.some(conn, ["c", "never", "a"]) == [nodes.all(conn)[0], nodes.all(conn)[2]]
        assert nodes.some(conn, []) == []


def test_the_images_a_machine_holds_are_part_of_what_is_known_of_it(database: Database) -> None:
    a, b = a_node("a", 2), replace(a_node("b", 2), images=("docker.io/library/python:3.12", "localhost/ours:latest"))
    with database.write() as conn:
        nodes.save(conn, [a, b], 1.0)
        assert nodes.all(conn) == [a, b]
        assert nodes.save(conn, [replace(a, images=("localhost/ours:latest",)), b], 2.0) == ["a"]
        assert nodes.save(conn, [a, replace(b, images=())], 3.0) == ["a", "b"]
        assert nodes.all(conn) == [a, replace(b, images=())]


def test_the_wish_to_keep_work_away_outlives_what_the_engine_says(database: Database) -> None:
    a = a_node("a", 1)
    with database.write() as conn:
        assert not nodes.set_cordoned(conn, "a", True)
        nodes.save(conn, [a], 1.0)
        assert nodes.set_cordoned(conn, "a", True)
        assert nodes.set_cordoned(conn, "a", True)
        nodes.save(conn, [a], 2.0)
        assert nodes.all(conn) == [replace(a, state=NodeState.CORDONED)]
        lost = replace(a, state=NodeState.LOST)
        nodes.save(conn, [lost], 3.0)
        assert nodes.all(conn) == [lost]
        nodes.forget(conn, ["a", "never"])
        assert nodes.all(conn) == []
        nodes.save(conn, [a], 4.0)
        assert nodes.cordoned(conn) == {"a"}
        assert nodes.set_cordoned(conn, "a", False)
        assert nodes.all(conn) == [a]


def test_labels_are_the_admins_words_and_outlive_what_the_engine_says(database: Database) -> None:
    a, b = a_node("a", 1), a_node("b")
    with database.write() as conn:
        assert not nodes.set_labels(conn, "a", {"zone": "x"})
        nodes.save(conn, [a, b], 1.0)
        assert nodes.set_labels(conn, "a", {"zone": "北", "disk": "ssd"})
    labelled = replace(a, labels=(("disk", "ssd"), ("zone", "北")))
    position = database.feed.position()
    with database.write() as conn:
        assert nodes.all(conn) == [labelled, b]
        assert nodes.set_labels(conn, "a", {"disk": "ssd", "zone": "北"})
        assert nodes.save(conn, [a, b], 2.0) == []
        assert nodes.save(conn, [labelled], 2.0) == []
        assert newest_change(conn) == position
        nodes.forget(conn, ["a"])
        nodes.save(conn, [a], 3.0)
        assert nodes.all(conn) == [labelled, b]
        assert nodes.set_labels(conn, "a", {})
        assert nodes.all(conn) == [a, b]
    with database.read() as conn:
        assert [(change.kind, change.id) for change in changes_since(conn, position)] == [("node", "a")] * 3


def trail(database: Database, length: int = 5) -> None:
    with database.write() as conn:
        for number in range(length):
            entry = AuditEntry(1.5 + number, "ann", "stop", f"job{number}", "10.0.0.1", "done", {"n": [number, "ü"]})
            assert audit.append(conn, entry) == number + 1


def test_the_trail_is_read_newest_first_in_parts(database: Database) -> None:
    trail(database)
    with database.read() as conn:
        first = audit.page(conn, None, 3)
        rest = audit.page(conn, first[-1].id, 3)
        assert [entry.id for entry in first + rest] == [5, 4, 3, 2, 1]
        assert first[0] == AuditEntry(5.5, "ann", "stop", "job4", "10.0.0.1", "done", {"n": [4, "ü"]}, 5)
        assert audit.verify(conn) is None


def test_odd_texts_are_kept_as_far_as_they_can_be_and_still_verify(database: Database) -> None:
    with database.write() as conn:
        audit.append(conn, AuditEntry(1, "a\x00b", "log in", "\ud800", "", "refused", {"name": "a\x00\ud800"}))
    with database.read() as conn:
        assert audit.verify(conn) is None
        assert audit.page(conn)[0].who == "a\ufffdb"


@pytest.mark.parametrize("column", ["at", "who", "action", "object", "address", "outcome", "facts", "digest"])
def test_an_edited_entry_is_found(database: Database, column: str) -> None:
    trail(database)
    new = {"at": 99.0, "facts": '{"n":[2]}'}.get(column, "eve")
    with database.write() as conn:
        conn.execute(sa.update(schema.audit).where(schema.audit.c.id == 3).values({column: new}))
    with database.read() as conn:
        assert audit.verify(conn) == 3


@pytest.mark.parametrize(("removed", "found"), [((3,), 3), ((1,), 1), ((5,), 5), ((4, 5), 4), ((1, 2, 3, 4, 5), 1)])
def test_a_removed_entry_is_found_wherever_it_was(database: Database, removed: tuple[int, ...], found: int) -> None:
    trail(database)
    with database.write() as conn:
        conn.execute(sa.delete(schema.audit).where(schema.audit.c.id.in_(removed)))
    with database.read() as conn:
        assert audit.verify(conn) == found


def test_an_entry_slipped_in_is_found(database: Database) -> None:
    trail(database)
    with database.write() as conn:
        row = conn.execute(sa.select(schema.audit).where(schema.audit.c.id == 5)).one()._asdict()
        conn.execute(sa.insert(schema.audit), {**row, "id": 6})
    with database.read() as conn:
        assert audit.verify(conn) == 6


def test_a_long_trail_verifies_across_batches(database: Database) -> None:
    trail(database, 2100)
    with database.read() as conn:
        assert audit.verify(conn) is None
