"""The buckets sum to capacity times time, exactly: whatever happens, in whatever order, and whatever the clock does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.domain.cluster import Card, Node, NodeState
from gpuyard.domain.ledger import BUCKETS, DAY, HOUR, Account, Amounts, Bucket, Cards, Line, Page, Span
from gpuyard.ledger.accounts import Accounts, pieces
from gpuyard.ledger.reporting import By, open_lines, period, report
from gpuyard.ledger.splitting import Given, Rest, plain, split

START = 1_700_000_000_000

# More than a card has: what is told may be wrong, the sums must not be.
milli = st.sampled_from([0, 500, 1000]) | st.integers(0, 1500)
shares = st.dictionaries(st.integers(0, 4), milli, max_size=5)
givens = st.dictionaries(st.integers(0, 4), st.builds(Given, milli, milli, milli), max_size=5)
rests = st.builds(Rest, shares, shares, shares)


@st.composite
def a_machine(draw: st.DrawFn, name: str = "a") -> Node:
    kinds = draw(st.lists(st.tuples(st.sampled_from(["A100", "H20", ""]), st.booleans()), max_size=5))
    cards = tuple(Card(i, "nvidia", model, trouble="held" * held) for i, (model, held) in enumerate(kinds))
    return Node(name, 1000, 1000, cards, draw(st.sampled_from(list(NodeState))))


@settings(deadline=None)
@given(a_machine(), givens, rests)
def test_every_thousandth_of_every_card_is_in_exactly_one_bucket(node: Node, out: dict[int, Given], rest: Rest) -> None:
    parts = split(node, out, rest)
    assert all(part.is_whole for part in parts.values())
    assert sum(part.capacity for part in parts.values()) == 1000 * len(node.cards)
    assert set(parts) == {card.model or card.device for card in node.cards}


@settings(deadline=None)
@given(st.integers(1, 5), givens, st.sampled_from(["A100", ""]))
def test_a_plain_machine_is_split_alike_however_it_is_looked_at(cards: int, out: dict[int, Given], model: str) -> None:
    node = Node("a", 1000, 1000, tuple(Card(index, "nvidia", model) for index in range(cards)))
    simple = plain(node)
    assert simple is not None
    told = all(index < cards and sum(given) <= 1000 for index, given in out.items())
    assert simple.split(out) == (split(node, out) if told else None)


@settings(deadline=None)
@given(a_machine())
def test_only_machines_that_are_ready_and_well_and_of_one_model_are_plain(node: Node) -> None:
    is_well = node.state is NodeState.READY and not any(card.trouble for card in node.cards)
    assert (plain(node) is not None) == (is_well and len({card.model or card.device for card in node.cards}) == 1)


def test_each_thousandth_goes_to_the_first_that_claims_it() -> None:
    cards = (*(Card(i, "nvidia", "A100") for i in range(4)), Card(4, "nvidia", "A100", trouble="fell off the bus"))
    out = {0: Given(idle=1000), 1: Given(busy=300, untold=200, idle=500), 2: Given(busy=250), 4: Given(busy=1000)}
    rest = Rest(kept={2: 500, 3: 100}, blocked={2: 1000, 3: 200}, stranded={3: 300})
    parts = split(Node("a", 1000, 1000, cards), out, rest)["A100"]
    wanted = {"used": 750, "idle": 1500, "reserved": 600, "quota": 450, "fragmented": 300, "free": 400}
    assert parts == replace(a_split(**wanted, unhealthy=1000), untold=200)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("machine"), st.sampled_from("ab"), a_machine(), givens, rests),
        st.tuples(st.just("gone"), st.sampled_from("ab")),
        st.tuples(st.just("write")),
        st.tuples(st.just("kill")),
        st.tuples(st.just("settle")),
        st.tuples(st.just("wait"), st.integers(-2 * HOUR, DAY) | st.integers(0, 5000)),
    ),
    max_size=30,
)


class Stored:
    """What the store does with pages, in memory."""

    def __init__(self) -> None:
        self.sums: dict[tuple[Span, Cards], Amounts] = {}
        self.accounts: dict[Cards, Account] = {}

    def write(self, page: Page) -> None:
        for key in [key for key in self.sums if key[0] in page.forgotten]:
            del self.sums[key]
        for key, amounts in page.sums.items():
            self.sums[key] = self.sums.get(key, Amounts()) + amounts
        for cards, account in page.accounts.items():
            if account is None:
                self.accounts.pop(cards, None)
            else:
                self.accounts[cards] = account


class Told:
    """The same story told plainly: capacity by machine as it was written, and the time for which it was."""

    def __init__(self) -> None:
        self.capacity: dict[str, int] = {}  # of machines, in thousandths of cards
        self.at = START
        self.total = 0

    def until(self, at: int) -> None:
        self.total += sum(self.capacity.values()) * max(0, at - self.at)
        self.at = max(self.at, at)


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_after_any_events_writes_and_kills_the_sums_are_capacity_times_time(events: list[tuple[object, ...]]) -> None:
    now, stored, accounts = START, Stored(), Accounts()
    written, known, jumped = Told(), Told(), False
    for kind, *told in events:
        if kind == "machine":
            name, node, out, rest = told
            accounts.put(str(name), split(replace(node, name=name), out, rest), now)  # type: ignore[type-var,arg-type]
            known.until(now)
            known.capacity[str(name)] = 1000 * len(node.cards)  # type: ignore[attr-defined]
        elif kind == "gone":
            accounts.remove(str(told[0]), now)
            known.until(now)
            known.capacity.pop(str(told[0]), None)
        elif kind == "settle":
            accounts.settle(now)
        elif kind == "write":
            stored.write(accounts.take())
            written = _copied(known)
        elif kind == "kill":  # what was not written is lost; what was known at the last write goes on
            accounts, known = Accounts(stored.accounts), _copied(written)
        else:
            now += int(str(told[0]))
            jumped |= int(str(told[0])) < 0
    accounts.settle(max(now, known.at))
    known.until(max(now, known.at))
    stored.write(accounts.take())
    total = sum(stored.sums.values(), Amounts())
    assert total.capacity == known.total or jumped
    assert all(amounts.is_whole for amounts in stored.sums.values())
    assert sum(total.buckets) == total.capacity
    for (span, cards), amounts in stored.sums.items():
        assert amounts.capacity <= 5 * 1000 * span.hours * HOUR, f"{cards} has more time in {span} than there is"


def _copied(told: Told) -> Told:
    copy = Told()
    copy.capacity, copy.at, copy.total = dict(told.capacity), told.at, told.total
    return copy


@settings(deadline=None)
@given(st.integers(0, 10 * DAY), st.integers(0, 30 * DAY))
def test_a_stretch_is_cut_into_pieces_without_gap_or_overlap(start: int, length: int) -> None:
    at = start
    found = list(pieces(start, start + length))
    for span, milliseconds in found:
        assert span.at <= at < span.end
        assert 0 < milliseconds <= span.end - at
        at += milliseconds
    assert at == start + length
    assert len(found) <= 24 * 4 + 31


A100 = Cards("a", "A100")


def a_split(**buckets: int) -> Amounts:
    values = tuple(buckets.get(bucket.value, 0) for bucket in BUCKETS)
    return Amounts(sum(values), values)


def test_what_was_not_written_before_a_kill_is_accounted_by_what_was_known() -> None:
    accounts, stored = Accounts(), Stored()
    accounts.put("a", {"A100": a_split(free=8000)}, START)
    stored.write(accounts.take())
    accounts.put("a", {"A100": a_split(used=8000)}, START + 1000)  # never written
    again = Accounts(stored.accounts)
    again.put("a", {"A100": a_split(idle=8000)}, START + 10_000)
    again.settle(START + 11_000)
    stored.write(again.take())
    total = sum(stored.sums.values(), Amounts())
    assert (total.of(Bucket.FREE), total.of(Bucket.USED), total.of(Bucket.IDLE)) == (80_000_000, 0, 8_000_000)
    assert total.capacity == 8000 * 11_000


def test_a_clock_that_jumps_back_accounts_nothing_twice() -> None:
    accounts, stored = Accounts(), Stored()
    accounts.put("a", {"A100": a_split(free=1000)}, START)
    accounts.put("a", {"A100": a_split(used=1000)}, START + 5000)
    accounts.remove("a", START + 2000)
    accounts.put("a", {"A100": a_split(free=1000)}, START + 1000)
    accounts.settle(START + 6000)
    stored.write(accounts.take())
    total = sum(stored.sums.values(), Amounts())
    assert (total.of(Bucket.FREE), total.of(Bucket.USED)) == (6_000_000, 0)


def test_what_does_not_change_is_not_written_again() -> None:
    accounts = Accounts()
    accounts.put("a", {"A100": a_split(free=1000)}, START)
    accounts.take()
    accounts.put("a", {"A100": a_split(free=1000)}, START + 5000)
    assert accounts.take() == Page({}, {})


@pytest.mark.parametrize(
    "fault",
    [
        Amounts(1000, (999, *[0] * 7)),  # a thousandth is lost
        Amounts(1000, (1000, 1, *[0] * 6)),  # one is in two buckets
        Amounts(1000, (1001, -1, *[0] * 6)),  # it adds up, but not like this
        Amounts(1000, (0, 1000, *[0] * 6), untold=1),  # idle cards that nobody measured
    ],
)
def test_a_planted_fault_in_the_sums_is_caught(fault: Amounts) -> None:
    assert not fault.is_whole
    assert not (fault.times(5) + a_split(free=5000)).is_whole


@pytest.mark.parametrize("by", list(By))
def test_a_report_covers_what_was_written_and_what_is_known_since(by: By) -> None:
    accounts = {A100: Account(START, a_split(used=3000, free=5000)), Cards("b", "H20"): Account(START, a_split(free=1))}
    now = START + 36 * HOUR
    before = [Line(Span(START - START % HOUR - HOUR, 1), A100, a_split(used=8000).times(HOUR))]
    asked = period(START - HOUR, now)
    told = report([*before, *open_lines(accounts, asked, now)], by, now)
    assert told.total.is_whole
    assert told.total.capacity == 8000 * HOUR + 8001 * 36 * HOUR
    assert sum(told.lines.values(), Amounts()) == told.total
    assert (told.since, told.until) == (before[0].span.at, now)
    labels = {By.DAY: ["2023-11-14", "2023-11-15", "2023-11-16"], By.NODE: ["a", "b"], By.MODEL: ["A100", "H20"]}
    assert list(told.lines) == labels[by]
