"""Which cards are busy, from measurements."""

from __future__ import annotations

from gpuyard.control.metering import IDLE_AFTER_SECONDS, CardMeter
from gpuyard.domain.usage import CardUse, Usage
from gpuyard.domain.workload import ReplicaId

ONE, OTHER = ReplicaId("w", 1, "main", 0), ReplicaId("w", 1, "main", 1)


def use(*percents: float | None) -> Usage:
    return Usage(1.0, 0, 1, tuple(CardUse(index, percent, 0) for index, percent in enumerate(percents)))


def test_the_first_measurement_counts_at_once_and_each_card_by_itself() -> None:
    meter = CardMeter()
    assert meter.is_busy(ONE, 0) is None
    meter.note(0.0, {ONE: use(0.0, 80.0, None)})
    assert [meter.is_busy(ONE, card) for card in (0, 1, 2, 3)] == [False, True, None, None]
    assert meter.take_changed() == {ONE}
    assert meter.take_changed() == set()


def test_a_busy_card_is_idle_only_when_nothing_was_measured_for_a_while() -> None:
    meter = CardMeter()
    meter.note(0.0, {ONE: use(50.0)})
    meter.take_changed()
    meter.note(IDLE_AFTER_SECONDS - 1, {ONE: use(0.0)})
    assert (meter.is_busy(ONE, 0), meter.take_changed()) == (True, set())
    meter.note(IDLE_AFTER_SECONDS, {ONE: use(0.5)})
    assert (meter.is_busy(ONE, 0), meter.take_changed()) == (False, {ONE})
    meter.note(IDLE_AFTER_SECONDS + 1, {ONE: use(1.0)})
    assert (meter.is_busy(ONE, 0), meter.take_changed()) == (True, {ONE})


def test_what_is_measured_no_more_is_not_told_any_more() -> None:
    meter = CardMeter()
    meter.note(0.0, {ONE: use(50.0), OTHER: use(50.0)})
    meter.take_changed()
    meter.note(5.0, {OTHER: use(50.0)})
    assert (meter.is_busy(ONE, 0), meter.is_busy(OTHER, 0)) == (None, True)
    assert meter.take_changed() == {ONE}
