"""The ledger under clocks that are wrong for a while: no time is made up, and none is waited for that will not come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.draw import a_node
from tests.ledger.test_keeping import LedgerYard
from tests.ledger.test_sums import A100, START, Stored, a_split

from gpuyard.domain.ledger import DAY, HOUR, Account, Amounts, Bucket, Line, Span
from gpuyard.ledger.accounts import Accounts
from gpuyard.ledger.reporting import By, open_lines, period
from gpuyard.store import ledger as ledger_rows
from gpuyard.store.database import Database

A_LIFE = 74 * 365 * DAY
MOST_ROWS = 24 * 4 + 32  # of one machine at once: a month, most of it by days
CARDS = 8000

steps = st.tuples(
    st.sampled_from(["pass", "pass", "pass", "write", "kill"]),
    st.integers(0, 10_000)
    | st.integers(0, HOUR)
    | st.sampled_from([HOUR, DAY, 20 * DAY, A_LIFE]).flatmap(lambda most: st.integers(-most, most)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=40))
@example([("write", 0), ("write", A_LIFE), ("kill", -A_LIFE)])
@example([("write", 20 * DAY), ("write", -20 * DAY), ("write", HOUR), ("write", 20 * DAY), ("kill", -DAY)])
def test_whatever_the_clock_does_sums_are_exact_and_go_on_within_an_hour_of_a_right_one(
    story: list[tuple[str, int]],
) -> None:
    now, stored, accounts, passes = START, Stored(), Accounts(), 1
    accounts.put("a", {"A100": a_split(free=CARDS)}, now)
    stored.write(accounts.take())
    for kind, wait in story:
        now, passes = max(0, now + wait), passes + 1
        if kind == "kill":
            accounts = Accounts(stored.accounts)
        accounts.put("a", {"A100": a_split(**{("free", "used")[passes % 2]: CARDS})}, now)
        accounts.settle(now)
        if kind == "write":
            stored.write(accounts.take())
        check(stored, passes)
    begun = now - now % HOUR + HOUR  # from here on the clock is right
    for at in range(now, begun + 2 * HOUR + 1, HOUR // 4):
        accounts.settle(at)
    accounts.settle(begun + 2 * HOUR)
    stored.write(accounts.take())
    check(stored, passes + 13)
    last = [amounts.capacity for (span, _), amounts in stored.sums.items() if span.at <= begun + HOUR < span.end]
    assert last == [CARDS * HOUR]
    assert stored.accounts[A100].since == begun + 2 * HOUR


def check(stored: Stored, passes: int) -> None:
    assert len(stored.sums) <= passes * MOST_ROWS
    days: dict[int, int] = {}
    for (span, _), amounts in stored.sums.items():
        assert amounts.is_whole
        assert amounts.capacity <= CARDS * span.hours * HOUR, f"more time in {span} than there is"
        day = span.at - span.at % DAY
        days[day] = days.get(day, 0) + amounts.capacity
    assert max(days.values(), default=0) <= CARDS * DAY


@pytest.mark.parametrize("wrong", [START + A_LIFE, START + 20 * DAY, START - 20 * DAY, 5000])
def test_a_clock_that_is_wrong_for_one_pass_takes_nothing_away(wrong: int) -> None:
    accounts, stored = Accounts(), Stored()
    accounts.put("a", {"A100": a_split(free=CARDS)}, START - 30 * DAY)
    for at in (START - 10 * DAY, START, wrong):
        accounts.settle(at)
        stored.write(accounts.take())
    accounts = Accounts(stored.accounts)
    for hour in range(5):
        accounts.settle(START + hour * HOUR)
        stored.write(accounts.take())
    until = START - START % HOUR + 4 * HOUR
    told = sum((amounts.capacity for (span, _), amounts in stored.sums.items() if span.end <= until), 0)
    assert told == CARDS * (until - START + 30 * DAY)


def test_a_machine_that_began_in_1970_is_not_told_to_have_been_there_ever_since() -> None:
    accounts = Accounts()
    accounts.put("a", {"A100": a_split(free=CARDS)}, 5000)
    accounts.settle(START)
    accounts.settle(START + HOUR)
    page = accounts.take()
    assert {span for span, _ in page.sums} == {Span(START - START % HOUR + HOUR, 1)}
    since_1970 = {A100: Account(5000, a_split(free=CARDS))}
    assert list(open_lines(since_1970, period(0, START), START)) == [], "nor by who reads before it is written"


@pytest.fixture
def yard(database: Database) -> Iterator[LedgerYard]:
    made = LedgerYard(database, [a_node("a", 8), a_node("b", 8)])
    made.pass_time()
    yield made
    made.close()


def told_up_to_now(yard: LedgerYard) -> list[Line]:
    now = int(yard.time * 1000)
    asked = period(0, now)
    with yard.database.read() as conn:
        return [
            *ledger_rows.lines(conn, *asked, by_day=True, by=""),
            *open_lines(ledger_rows.accounts(conn), asked, now),
        ]


def rows(yard: LedgerYard) -> int:
    with yard.database.read() as conn:
        return len(ledger_rows.lines(conn, 0, 2**60, by_day=True, by="node"))


@pytest.mark.parametrize("ahead", [74 * 365 * 86400.0, 20 * 86400.0])
@pytest.mark.parametrize("crashes", [False, True])
def test_a_clock_that_was_far_ahead_for_hours_does_not_stop_the_ledger(
    yard: LedgerYard, ahead: float, crashes: bool
) -> None:
    yard.pass_time(3600)
    right = yard.time
    yard.time += ahead
    for _ in range(3):
        yard.pass_time(3600)
        with yard.database.write() as conn:
            ledger_rows.roll_up(conn, right)
    assert rows(yard) < 2 * MOST_ROWS
    if crashes:
        yard.crash()
    yard.time = right
    yard.pass_time()
    for _ in range(30):
        yard.pass_time(3600)
    total = sum((line.amounts for line in told_up_to_now(yard)), Amounts())
    assert total.is_whole
    missing = 16 * (yard.time - 1_000_000) * 1_000_000 - total.capacity
    assert 0 <= missing <= 16 * 1000 * HOUR, "at most an hour is not told, and none is told twice"


def test_days_that_are_lived_again_are_told_once(yard: LedgerYard) -> None:
    for _ in range(40):
        yard.pass_time(6 * 3600, steps=1)
    with yard.database.write() as conn:
        ledger_rows.roll_up(conn, yard.time)
    yard.time -= 9.3 * 86400  # days by now
    for _ in range(60):
        yard.pass_time(3600)
    told = yard.lines(By.DAY)
    assert told.total.is_whole
    assert max(line.capacity for line in told.lines.values()) <= 16 * 1000 * DAY
    assert told.total.of(Bucket.FREE) == told.total.capacity > Amounts().capacity
