"""The broker is torn away from a terminal that was made to keep it waiting, and never from one that was not."""

from __future__ import annotations

import os
import pty
import signal
from collections.abc import Iterator

import pytest

from gpuyard.gateway.broker.alarm import Alarm, Stalled


@pytest.fixture
def terminal() -> Iterator[int]:
    before = signal.getsignal(signal.SIGALRM)
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    yield ours
    os.close(ours)
    os.close(theirs)
    signal.signal(signal.SIGALRM, before)


def test_what_was_read_from_a_terminal_is_not_lost_when_the_machine_was_too_busy(terminal: int) -> None:
    with Alarm().over(terminal):
        signal.raise_signal(signal.SIGALRM)  # as late as between reading and keeping


def test_nobody_waits_for_a_terminal_that_was_made_to_let_one_wait(terminal: int) -> None:
    alarm = Alarm()
    os.set_blocking(terminal, True)
    with pytest.raises(Stalled), alarm.over(terminal):
        os.read(terminal, 1)


def test_an_alarm_that_comes_late_rings_nowhere(terminal: int) -> None:
    alarm = Alarm()
    with alarm.over(terminal):
        os.set_blocking(terminal, True)
    signal.raise_signal(signal.SIGALRM)
