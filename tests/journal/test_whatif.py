"""A platform's own history: what came and how long it ran is read from its journal, and rehearsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.draw import a_job, a_node
from tests.journal.yard import JournalYard

from gpuyard.domain.policy import Ordering, Policy
from gpuyard.domain.workload import State, Wanted
from gpuyard.journal.history import read_history
from gpuyard.journal.whatif import what_if
from gpuyard.store.database import Database


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[JournalYard]:
    with closing(Database.open(f"sqlite:///{tmp_path}/yard.db")) as database:
        yard = JournalYard(database, [a_node("a", 4)], tmp_path / "journal")
        yield yard
        yard.close()


def written(yard: JournalYard) -> Path:
    """What was handed over so far is on disk; a new control goes on."""
    yard.crash()
    return yard.folder


def job(
    yard: JournalYard, number: str, seconds: float, *, owner: str = "ann", cards: float = 4, name: str | None = None
) -> str:
    env = (("YARD_SIM_SECONDS", str(seconds)),)
    return yard.submit(a_job(f"job{number:>07}".replace(" ", "0"), cards=cards, env=env, owner=owner, name=name))


def run_until_idle(yard: JournalYard, seconds: float) -> None:
    for _ in range(int(seconds)):
        yard.pass_time(1.0, steps=2)


def test_run_times_are_those_that_were_seen(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 30)
    run_until_idle(yard, 20)
    job(yard, "2", 10)
    run_until_idle(yard, 60)
    history = read_history(written(yard), None, yard.time)
    coming, holding, guessed = history.arrivals()
    assert (len(coming), holding, guessed) == (2, [], 0)
    assert [round(one.seconds) for one in coming] == [30, 10]
    waits = [way.first_start() - way.at for way in history.ways]  # type: ignore[operator]
    assert waits[0] < 3
    assert 8 <= waits[1] <= 14


def test_what_runs_now_counts_until_now_and_what_waits_is_a_guess(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 1000)
    job(yard, "2", 1000)
    run_until_idle(yard, 40)
    history = read_history(written(yard), None, yard.time)
    coming, _, guessed = history.arrivals()
    assert guessed == 1
    assert all(one.seconds > 40 for one in coming if one.workload.spec.name == "job0000001")
    found = what_if(yard.folder, Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert found.present.waits.never_started == found.really.never_started == 1


def test_whoever_gave_up_waiting_does_so_in_the_rehearsal(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 100)
    waiting = job(yard, "2", 5)
    run_until_idle(yard, 20)
    yard.want(waiting, Wanted.STOP)
    run_until_idle(yard, 120)
    coming, _, guessed = read_history(written(yard), None, yard.time).arrivals()
    assert guessed == 0
    patience = {one.workload.id.partition("#")[0]: one.patience for one in coming}
    assert 18 <= patience[waiting] <= 24


def test_since_begins_with_what_ran_and_waited_then(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 50)
    job(yard, "2", 20)
    run_until_idle(yard, 20)
    middle = yard.time
    job(yard, "3", 5)
    run_until_idle(yard, 100)
    history = read_history(written(yard), middle, yard.time)
    coming, holding, _ = history.arrivals()
    assert [one.workload.id.partition("#")[0] for one in holding] == ["job0000001"]
    assert 27 <= holding[0].seconds <= 33
    assert sorted(one.workload.id.partition("#")[0] for one in coming) == ["job0000002", "job0000003"]
    assert read_history(yard.folder, yard.time + 10, yard.time).ways == []


def test_the_present_policy_rehearsed_is_as_it_was_and_another_tells_who_gains(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 60)
    for number in range(2, 5):
        job(yard, str(number), 60, owner="ann")
        yard.pass_time(1.0)
    mine = job(yard, "9", 60, owner="bob", name="evaluate")
    run_until_idle(yard, 400)
    present = Policy(order=Ordering(fair_share=False, age_points=0))
    other = Policy(order=Ordering(fair_share=False, age_points=0, people=("bob",)))
    found = what_if(written(yard), present, other, since=None, until=yard.time)
    assert found is not None
    assert (found.jobs, found.guessed) == (5, 0)
    assert found.present.ended == found.other.ended == 5
    assert [(one.id, one.name) for one in found.gaining] == [(mine, "evaluate")]
    assert found.gaining[0].before - found.gaining[0].after == pytest.approx(180, abs=15)
    assert found.lose_count == 3
    assert all(one.owner == "ann" for one in found.losing)
    by = {one.name: one for one in found.users}
    assert by["bob"].after < by["bob"].before
    assert by["ann"].after > by["ann"].before
    assert found.users[0].name == "bob"
    assert found.present.waits.mean == pytest.approx(found.other.waits.mean, abs=5)
    assert 0.5 < (found.present.utilisation or 0) < 1


def test_the_same_policy_changes_nothing(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    for number in range(1, 8):
        job(yard, str(number), 20 + number, owner=("ann", "bob")[number % 2], cards=(1, 2, 4)[number % 3])
        yard.pass_time(2.0)
    run_until_idle(yard, 200)
    found = what_if(written(yard), Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert (found.gain_count, found.lose_count) == (0, 0)
    assert found.present == found.other
    assert found.present.waits.mean == pytest.approx(found.really.mean, abs=3)


def test_an_empty_journal_has_no_history(tmp_path: Path) -> None:
    found = what_if(tmp_path, Policy(), Policy(), since=None, until=1e9)
    assert (found.jobs, found.gaining, found.unreadable) == (0, [], [])


# --- pauses ---------------------------------------------------------------------------------------------------------


def rest(yard: JournalYard, id: str, seconds: float) -> None:
    yard.want(id, Wanted.PAUSE)
    run_until_idle(yard, seconds)
    assert yard.state(id) is State.PAUSED
    yard.want(id, Wanted.RUN)


def test_work_that_was_paused_while_it_waited_comes_once_and_has_started(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 100)
    waiting = job(yard, "2", 10)
    run_until_idle(yard, 20)
    rest(yard, waiting, 30)
    run_until_idle(yard, 10)
    rest(yard, waiting, 10)
    run_until_idle(yard, 80)
    assert yard.state(waiting) is State.SUCCEEDED
    found = what_if(written(yard), Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert (found.jobs, found.really.jobs, found.guessed) == (2, 2, 0)
    assert found.really.never_started == found.present.waits.never_started == 0
    assert found.really.p90 == pytest.approx(100 - 30 - 10, abs=6)  # while it is paused it does not wait
    assert found.present.waits.mean == pytest.approx(found.really.mean, abs=3)


def test_work_that_was_paused_while_it_ran_comes_once_and_rests_in_the_rehearsal(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    paused = job(yard, "1", 1000)
    run_until_idle(yard, 20)
    yard.want(paused, Wanted.PAUSE)
    run_until_idle(yard, 5)
    other = job(yard, "2", 30)
    run_until_idle(yard, 60)
    yard.want(paused, Wanted.RUN)
    run_until_idle(yard, 40)
    yard.want(paused, Wanted.STOP)
    run_until_idle(yard, 20)
    folder = written(yard)
    coming, _, _ = read_history(folder, None, yard.time).arrivals()
    assert [one.workload.spec.name for one in coming] == [paused, other]
    assert coming[0].seconds == pytest.approx(60, abs=4)
    found = what_if(folder, Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert found.jobs == found.present.ended == found.really.ended == 2
    assert found.present.waits.mean < 3  # the other one found the cards free
    assert found.present.lost_seconds == 0
    assert found.present.utilisation == pytest.approx(found.really.utilisation, abs=0.05)


def test_what_rested_at_the_beginning_comes_when_it_is_wanted_again(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    job(yard, "1", 30)
    paused = job(yard, "2", 10)
    run_until_idle(yard, 5)
    yard.want(paused, Wanted.PAUSE)
    run_until_idle(yard, 60)
    middle = yard.time
    run_until_idle(yard, 20)
    yard.want(paused, Wanted.RUN)
    run_until_idle(yard, 30)
    (way,) = read_history(written(yard), middle, yard.time).ways
    assert way.at - middle == pytest.approx(20, abs=3)
    assert way.wait(yard.time) < 3


def test_what_is_paused_for_good_is_over(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    paused = job(yard, "1", 1000)
    run_until_idle(yard, 20)
    yard.want(paused, Wanted.PAUSE)
    run_until_idle(yard, 60)
    (way,) = read_history(written(yard), None, yard.time).ways
    assert way.over_at is not None
    assert way.seconds(0.0, yard.time) == pytest.approx(20, abs=3)


# --- as it was ------------------------------------------------------------------------------------------------------


def test_as_it_was_tells_cards_preemptions_and_what_they_lost(yard: JournalYard) -> None:
    yard.pass_time(1.0)
    begun = yard.time
    low = a_job("joblow0001", cards=4, env=(("YARD_SIM_SECONDS", "500"),))
    yard.submit(replace(low, spec=replace(low.spec, preemptible=True)))
    run_until_idle(yard, 350)
    yard.submit(a_job("jobhigh001", cards=2, priority=900, env=(("YARD_SIM_SECONDS", "100"),)))
    run_until_idle(yard, 700)
    folder = written(yard)
    found = what_if(folder, Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert (found.really.preemptions, found.really.ended) == (1, 2)
    assert found.really.lost_seconds == pytest.approx(350, abs=5)  # it saved nothing
    in_use = (350 + 500) * 4 + 100 * 2
    assert found.really.utilisation == pytest.approx(in_use / (yard.time - begun) / 4, abs=0.02)
    assert found.present.preemptions == found.really.preemptions
    assert found.present.lost_seconds == pytest.approx(found.really.lost_seconds, abs=5)
    assert found.present.utilisation == pytest.approx(found.really.utilisation, abs=0.02)
    later = what_if(folder, Policy(), Policy(), since=begun + 400, until=yard.time)
    assert later is not None
    assert (later.really.preemptions, later.really.lost_seconds) == (0, 0)


def test_time_in_which_nobody_came_yet_counts_on_every_line(yard: JournalYard) -> None:
    run_until_idle(yard, 60)
    job(yard, "1", 60)
    run_until_idle(yard, 60)
    found = what_if(written(yard), Policy(), Policy(), since=None, until=yard.time)
    assert found is not None
    assert found.really.utilisation == pytest.approx(0.5, abs=0.03)
    assert found.present.utilisation == pytest.approx(0.5, abs=0.03)


def test_where_there_were_no_cards_their_use_is_not_known(tmp_path: Path) -> None:
    with closing(Database.open(f"sqlite:///{tmp_path}/yard.db")) as database:
        yard = JournalYard(database, [a_node("a")], tmp_path / "journal")
        job(yard, "1", 5, cards=0)
        run_until_idle(yard, 20)
        found = what_if(written(yard), Policy(), Policy(), since=None, until=yard.time)
        yard.close()
    assert found is not None
    assert found.really.utilisation is found.present.utilisation is None
