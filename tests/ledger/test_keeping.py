"""Control keeps the ledger of a whole platform: machines, work, quotas, faults and crashes. A hand moves the clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.control.sampling import Sampler
from gpuyard.domain.cluster import Node
from gpuyard.domain.ledger import HOUR, Amounts, Bucket, Page, Span
from gpuyard.domain.people import Quota
from gpuyard.domain.workload import State, Wanted, Workload
from gpuyard.ledger.reporting import By, Report, open_lines, period, report
from gpuyard.metrics.series import Series
from gpuyard.store import ledger as ledger_rows
from gpuyard.store import nodes as node_rows
from gpuyard.store.database import Database

BEGUN = 1_000_000.0


class LedgerYard(Yard):
    def lines(self, by: By = By.MODEL) -> Report:
        now = int(self.time * 1000)
        asked = period(0, now + 24 * HOUR)  # the clock may have been set back
        with self.database.read() as conn:
            stored = ledger_rows.lines(conn, *asked, by_day=by is By.DAY, by="" if by is By.DAY else by.value)
            known = ledger_rows.accounts(conn)
        return report([*stored, *open_lines(known, asked, now)], by, now)

    def hours(self) -> dict[str, float]:
        """Card-hours by bucket, with empty ones left out; the sums are checked on the way."""
        total = self.lines().total
        assert total.is_whole
        found = {bucket.value: round(total.of(bucket) / 1000 / HOUR, 2) for bucket in Bucket}
        return {name: hours for name, hours in found.items() if hours}

    def sample(self, series: Series) -> None:
        control = self.control
        replicas = [r.id for w in control.picture.in_state(State.RUNNING) if w.attempt for r in w.attempt.replicas]
        sampler = Sampler(
            self.engine, series, lambda: tuple(replicas), lambda: self.time, 1.0, control.busy, control.cards
        )
        sampler.sample()
        self.pass_time()

    def capacity_is(self, card_seconds: float) -> bool:
        return abs(self.lines().total.capacity - card_seconds * 1_000_000) < 1_000_000


@pytest.fixture
def yard(database: Database, request: pytest.FixtureRequest) -> Iterator[LedgerYard]:
    nodes: list[Node] = getattr(request, "param", [a_node("a", 8), a_node("b", 8)])
    made = LedgerYard(database, nodes)
    made.pass_time()
    yield made
    made.close()


def a_long_job(id: str, cards: float, replicas: int = 1, **env: str) -> Workload:
    lasting = {"YARD_SIM_SECONDS": "9e6", **env}
    return a_job(id, cards=cards, replicas=replicas, cpu=0.1, memory_gib=0.1, env=tuple(lasting.items()))


def test_free_cards_are_free_and_given_ones_are_used(yard: LedgerYard) -> None:
    yard.pass_time(3600)
    yard.submit(a_long_job("job0000001", 2))
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.hours() == {"free": 30.0, "used": 2.0}
    assert yard.lines().total.untold == yard.lines().total.of(Bucket.USED), "nobody has measured them"
    assert yard.capacity_is(16 * 7200)


def test_a_share_of_a_card_is_used_and_the_rest_of_it_is_free(yard: LedgerYard) -> None:
    yard.submit(a_long_job("job0000001", 0.25))
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.hours() == {"free": 15.75, "used": 0.25}


def test_cards_that_are_given_out_and_measured_idle_are_told_apart(
    yard: LedgerYard, tmp_path_factory: pytest.TempPathFactory
) -> None:
    series = Series(tmp_path_factory.mktemp("metrics") / "metrics.db")
    yard.submit(a_long_job("job0000001", 2, YARD_SIM_CARD_PERCENT="0"))
    yard.submit(a_long_job("job0000002", 4, YARD_SIM_CARD_PERCENT="90"))
    yard.pass_time()
    yard.sample(series)
    yard.pass_time(3600)
    assert yard.hours() == {"free": 10.0, "idle": 2.0, "used": 4.0}
    assert yard.lines().total.untold * 1000 < yard.lines().total.of(Bucket.USED), "they were measured but for a moment"


def test_the_rest_of_a_cordoned_machine_drains_and_a_lost_one_is_unhealthy(yard: LedgerYard) -> None:
    yard.submit(a_long_job("job0000001", 2))
    yard.pass_time()
    with yard.database.write() as conn:
        node_rows.set_cordoned(conn, "a", True)
        node_rows.set_cordoned(conn, "b", True)
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.hours() == {"draining": 14.0, "used": 2.0}
    yard.engine.faults.lost_nodes |= {"a", "b"}
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.hours() == {"draining": 14.0, "used": 2.0, "unhealthy": 16.0}


@pytest.mark.parametrize("yard", [[a_node("a", 4, held=(1, 2))]], indirect=True)
def test_a_card_in_trouble_is_unhealthy(yard: LedgerYard) -> None:
    yard.pass_time(3600)
    assert yard.hours() == {"free": 2.0, "unhealthy": 2.0}


def test_what_one_that_waits_will_start_on_is_reserved_and_other_bits_are_fragments(yard: LedgerYard) -> None:
    for number, cards in enumerate([6, 5]):
        yard.submit(a_long_job(f"job000000{number}", cards))
        yard.pass_time()
    yard.pass_time(6)
    yard.submit(a_long_job("job0000009", 8))
    yard.pass_time()
    yard.pass_time(3600)
    hours = yard.hours()
    assert hours["used"] == 11.02
    assert {hours["reserved"], hours["fragmented"]} == {2.0, 3.0}, "it waits for one machine; the other is no use to it"
    yard.want("job0000009", Wanted.STOP)
    yard.pass_time(1)
    yard.pass_time(3600)
    assert yard.hours()["free"] == 5.01, "nobody waits for them any more"


def test_cards_that_only_a_quota_keeps_from_those_who_wait_are_blocked_by_it(yard: LedgerYard) -> None:
    yard.set_quota(Quota("vision", "nvidia", 2000))
    for number in range(4):
        yard.submit(a_long_job(f"job000000{number}", 1))
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.hours() == {"free": 12.0, "quota": 2.0, "used": 2.0}


def test_machines_that_come_and_go_are_capacity_while_they_are_there(yard: LedgerYard) -> None:
    yard.pass_time(3600)
    with yard.database.write() as conn:
        node_rows.forget(conn, ["b"])
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.capacity_is(16 * 3600 + 8 * 3600)
    with yard.database.write() as conn:
        node_rows.save(conn, [a_node("c", 4)], yard.time)
    yard.pass_time()
    yard.pass_time(3600)
    assert yard.capacity_is(16 * 3600 + 8 * 3600 + 12 * 3600)
    assert set(yard.lines(By.NODE).lines) == {"a", "b", "c"}


def test_time_in_which_nobody_looked_is_accounted_by_what_was_known_before(yard: LedgerYard) -> None:
    yard.submit(a_long_job("job0000001", 2))
    yard.pass_time()
    yard.pass_time(10)  # it is written
    yard.submit(a_long_job("job0000002", 4))
    yard.pass_time(0.001, steps=3)  # it holds its cards, and that is not written yet
    yard.crash()
    yard.time += 3600
    yard.pass_time()
    assert yard.hours() == {"free": 14.04, "used": 2.01}
    yard.pass_time(3600)
    assert yard.hours()["used"] == 8.01
    assert yard.capacity_is(16 * (yard.time - BEGUN))


def test_a_clock_that_was_set_back_breaks_no_sum(yard: LedgerYard) -> None:
    yard.pass_time(7200)
    before = yard.lines().total.capacity
    yard.time -= 5400
    yard.submit(a_long_job("job0000001", 2))
    yard.crash()
    yard.pass_time()
    yard.pass_time(60)
    assert yard.lines().total.is_whole
    assert abs(yard.lines().total.capacity - before) < 16 * 1_000_000, "that time is accounted for already"
    yard.pass_time(7200)
    assert yard.lines().total.is_whole
    assert yard.capacity_is(16 * (yard.time - BEGUN))


def test_sums_stay_the_same_when_hours_become_days_and_are_forgotten_after_a_year(yard: LedgerYard) -> None:
    yard.submit(a_long_job("job0000001", 2))
    for _ in range(40):
        yard.pass_time(6 * 3600, steps=1)
    before = yard.lines(By.DAY)
    with yard.database.write() as conn:
        ledger_rows.roll_up(conn, yard.time)
        ledger_rows.roll_up(conn, yard.time)
        kept = ledger_rows.lines(conn, 0, int(yard.time * 1000), by_day=True, by="")
    after = yard.lines(By.DAY)
    assert (after.total, after.lines) == (before.total, before.lines)
    assert before.total.is_whole
    assert {line.span.hours for line in kept} >= {24}
    with yard.database.write() as conn:
        ledger_rows.roll_up(conn, yard.time + 500 * 86400)
        assert ledger_rows.lines(conn, 0, int(yard.time * 1000), by_day=False, by="") == []


def test_a_write_that_failed_is_neither_lost_nor_counted_twice(yard: LedgerYard) -> None:
    """Sums and what is known are one transaction: whatever became of it, the ledger goes on from what is there."""
    yard.pass_time(3600)
    with yard.database.read() as conn:
        known = ledger_rows.accounts(conn)
    (cards, account), *_ = sorted(known.items())
    sums = {(Span(account.since - account.since % HOUR, 1), cards): account.amounts.times(5)}
    page = Page(sums, {cards: account._replace(since=account.since + 5)})
    with pytest.raises(RuntimeError):
        write_and_fail(yard.database, page)
    with yard.database.read() as conn:
        assert ledger_rows.accounts(conn) == known
    assert yard.capacity_is(16 * 3600)


def write_and_fail(database: Database, page: Page) -> None:
    with database.write() as conn:
        ledger_rows.write(conn, page)
        raise RuntimeError


def test_a_planted_fault_in_the_stored_sums_is_seen_by_the_check(yard: LedgerYard) -> None:
    yard.pass_time(2 * 3600)
    with yard.database.write() as conn:
        line = ledger_rows.lines(conn, 0, int(yard.time * 1000), by_day=False, by="node")[0]
        fault = replace(Amounts(), buckets=(1, *[0] * 7))
        ledger_rows.write(conn, Page({(Span(line.span.at, 1), line.cards): fault}, {}))
    assert not yard.lines().total.is_whole


def test_only_machines_on_which_something_changed_are_written(yard: LedgerYard) -> None:
    yard.pass_time(10)
    with yard.database.read() as conn:
        before = ledger_rows.accounts(conn)
    yard.submit(a_long_job("job0000001", 2))
    yard.pass_time()
    yard.pass_time(10)
    with yard.database.read() as conn:
        after = ledger_rows.accounts(conn)
    assert len([cards for cards in after if after[cards] != before[cards]]) == 1
