"""Lists: what is shown to whom, in which order, page by page; and what a name means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job, renamed
from tests.store.lines import submit

from gpuyard.domain.errors import BadInput
from gpuyard.domain.workload import State, Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database
from gpuyard.store.workloads import EVERYTHING, Visibility, WorkloadFilter

OWNERS, GROUPS, STATES = ("ann", "bob", "eve"), ("vision", "speech"), (State.QUEUED, State.FAILED, State.SUCCEEDED)


def many() -> list[Workload]:
    """Every owner in every group in every state, several submitted at the same moment."""
    jobs = []
    for number in range(72):
        job = a_job(
            f"j{number * 7919 % 1000:09d}",
            owner=OWNERS[number % 3],
            group=GROUPS[number // 3 % 2],
            at=1000.0 + number // 4,
            name=f"name{number % 5}",
        )
        state = STATES[number // 6 % 3]
        jobs.append(replace(job, state=state, ended_at=2000.0 if state is not State.QUEUED else None))
    return jobs


def shown(job: Workload, filters: WorkloadFilter, visible: Visibility) -> bool:
    """What a list should hold, said in the plainest way."""
    return (
        (visible.everything or job.owner == visible.owner or job.group in visible.groups)
        and (filters.owner is None or job.owner == filters.owner)
        and (not filters.groups or job.group in filters.groups)
        and (not filters.states or job.state in filters.states)
        and (filters.name is None or job.spec.name == filters.name)
        and (filters.kind is None or job.spec.kind.value == filters.kind)
    )


def read_all(database: Database, filters: WorkloadFilter, visible: Visibility, limit: int) -> list[Workload]:
    found: list[Workload] = []
    cursor: str | None = None
    while True:
        with database.read() as conn:
            some, cursor = workloads.page(conn, filters=filters, visible_to=visible, before=cursor, limit=limit)
        assert len(some) <= limit
        found += some
        if cursor is None:
            return found


def test_every_filter_and_every_view_shows_exactly_what_it_should_newest_first(database: Database) -> None:
    jobs = many()
    submit(database, *jobs)
    newest_first = sorted(jobs, key=lambda job: (job.submitted_at, job.id), reverse=True)
    views = [EVERYTHING, Visibility(owner="ann"), Visibility(owner="bob", groups=("speech",)), Visibility()]
    filters = [
        WorkloadFilter(owner=owner, groups=groups, states=states, name=name)
        for owner in (None, "ann", "bob", "nobody\x00")
        for groups in ((), ("vision",), ("speech", "vision"))
        for states in ((), (State.FAILED,), (State.QUEUED, State.SUCCEEDED))
        for name in (None, "name3")
    ] + [WorkloadFilter(kind="job"), WorkloadFilter(kind="board")]
    for view in views:
        for wanted in filters:
            expected = [job for job in newest_first if shown(job, wanted, view)]
            assert read_all(database, wanted, view, 500) == expected, (wanted, view)


def test_pages_neither_skip_nor_repeat_while_new_work_arrives(database: Database) -> None:
    jobs = many()
    submit(database, *jobs)
    found: list[str] = []
    cursor: str | None = None
    for number in range(1000):
        with database.read() as conn:
            some, cursor = workloads.page(conn, filters=WorkloadFilter(), visible_to=EVERYTHING, before=cursor, limit=5)
        found += [job.id for job in some]
        submit(database, a_job(f"new{number:07d}", at=5000.0 + number))
        if cursor is None:
            break
    assert sorted(found) == sorted(job.id for job in jobs)


def test_a_page_is_never_larger_than_the_most_there_is(database: Database) -> None:
    submit(database, *(a_job(f"job{number:07d}") for number in range(510)))
    with database.read() as conn:
        some, cursor = workloads.page(conn, filters=WorkloadFilter(), visible_to=EVERYTHING, limit=10**9)
    assert len(some) == 500
    assert cursor is not None


@pytest.mark.parametrize("cursor", ["", "x", "nonsense_abc", "\x00"])
def test_a_cursor_that_is_none_of_ours_is_refused(database: Database, cursor: str) -> None:
    with database.read() as conn, pytest.raises(BadInput):
        workloads.page(conn, filters=WorkloadFilter(), visible_to=EVERYTHING, before=cursor)


def resolve(database: Database, text: str, asker: str = "ann", visible: Visibility | None = None) -> list[str]:
    with database.read() as conn:
        return workloads.resolve(conn, text, asker, visible or Visibility(owner=asker))


def test_an_id_a_beginning_and_a_name_find_the_job(database: Database) -> None:
    submit(
        database,
        renamed(a_job("abcdef0001", at=1.0), "train"),
        renamed(a_job("abcxyz0002", at=2.0), "train"),
        renamed(a_job("zzzzzz0003", at=3.0), "other"),
        renamed(a_job("bobbob0004", at=9.0, owner="bob"), "train"),
    )
    assert resolve(database, "abcdef0001") == ["abcdef0001"]
    assert resolve(database, "abcd") == ["abcdef0001"]
    assert resolve(database, "zz") == ["zzzzzz0003"]
    assert resolve(database, "train") == ["abcxyz0002"]
    assert resolve(database, "train", visible=EVERYTHING) == ["abcxyz0002"]
    assert resolve(database, "abc") == ["abcdef0001", "abcxyz0002"]


def test_nobody_finds_what_they_may_not_see(database: Database) -> None:
    submit(database, renamed(a_job("bobbob0004", owner="bob", group="speech"), "secret"))
    for text in ("bobbob0004", "bobbob", "secret"):
        assert resolve(database, text) == []
    assert resolve(database, "bobbob", visible=Visibility(owner="ann", groups=("speech",))) == ["bobbob0004"]


def test_ones_own_name_goes_before_the_beginning_of_an_id(database: Database) -> None:
    submit(database, renamed(a_job("t1aaaaaaaa"), "x"), renamed(a_job("zzzzzzzzzz"), "t1"))
    assert resolve(database, "t1") == ["zzzzzzzzzz"]


def test_a_name_means_the_one_that_took_the_place_also_when_both_have_ended(database: Database) -> None:
    old, new = a_job("zzzzzzzzzz", at=1.0), a_job("aaaaaaaaaa", at=1.0)
    ended = [replace(old, state=State.STOPPED, ended_at=5.0), replace(new, state=State.SUCCEEDED, ended_at=9.0)]
    submit(database, *(renamed(job, "train") for job in ended))
    assert resolve(database, "train") == ["aaaaaaaaaa"]


@pytest.mark.parametrize("text", ["", "a", "%", "_b", "ab%", "\x00", "ab\x00", "\ud800", "z" * 10_000, "' OR 1=1 --"])
def test_odd_texts_find_nothing_and_break_nothing(database: Database, text: str) -> None:
    submit(database, a_job("abcdef0001"))
    assert resolve(database, text, visible=EVERYTHING) == []
