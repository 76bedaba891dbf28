"""What sharing remembers: past use, learned run times, and the policy."""

from __future__ import annotations

from tests.draw import a_job, renamed
from tests.store.lines import submit

from gpuyard.domain.usage import PastUse
from gpuyard.store import sharing
from gpuyard.store.database import Database
from gpuyard.store.feed import changes_since


def test_past_use_is_kept_by_group_and_by_user_and_the_newest_word_counts(database: Database) -> None:
    vision, ann = ("vision", None), ("vision", "ann")
    with database.write() as conn:
        assert sharing.past_use(conn) == {}
        sharing.charge(conn, {vision: PastUse(1.5, 10.25), ann: PastUse(1.0, 10.25)})
        sharing.charge(conn, {vision: PastUse(2.5, 20.0), ("speech", None): PastUse(0.0, 20.0)})
        sharing.charge(conn, {})
    with database.read() as conn:
        assert sharing.past_use(conn) == {
            vision: PastUse(2.5, 20.0),
            ann: PastUse(1.0, 10.25),
            ("speech", None): PastUse(0.0, 20.0),
        }


def test_run_times_are_kept_by_owner_and_name_newest_first_and_no_more_than_twenty(database: Database) -> None:
    with database.write() as conn:
        assert sharing.run_times(conn) == {}
        sharing.add_run_times(conn, {("ann", "train"): (3.5,), ("bob", "训练"): (1.0, 2.0)})
        sharing.add_run_times(conn, {("ann", "train"): tuple(float(n) for n in range(30))})
        sharing.add_run_times(conn, {})
    with database.read() as conn:
        assert sharing.run_times(conn) == {
            ("ann", "train"): tuple(float(n) for n in range(20)),
            ("bob", "训练"): (1.0, 2.0),
        }


def test_run_times_go_once_no_job_of_that_owner_has_the_name(database: Database) -> None:
    submit(database, renamed(a_job(owner="ann"), "train"))
    with database.write() as conn:
        learned = {("ann", "train"): (1.0,), ("bob", "train"): (2.0,), ("ann", "old"): (3.0,)}
        sharing.add_run_times(conn, learned)
        assert sharing.forget_run_times(conn) == 2
        assert sharing.run_times(conn) == {("ann", "train"): (1.0,)}


def test_only_the_policy_is_news(database: Database) -> None:
    position = database.feed.position()
    with database.write() as conn:
        sharing.charge(conn, {("vision", None): PastUse(1.0, 1.0)})
        sharing.add_run_times(conn, {("ann", "train"): (1.0,)})
        assert sharing.policy_text(conn) is None
        sharing.set_policy_text(conn, '{"backfill": true}')
        sharing.set_policy_text(conn, '{"backfill": false}')
    with database.read() as conn:
        assert sharing.policy_text(conn) == '{"backfill": false}'
        assert {(change.kind, change.id) for change in changes_since(conn, position)} == {("policy", "policy")}
