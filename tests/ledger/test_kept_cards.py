"""The time of a card that is held by work which it was not given to: never free, nobody's use, and true at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.test_holding import TAKER, HeldYard, Watched
from tests.draw import a_node
from tests.ledger.test_keeping import LedgerYard, a_long_job

from gpuyard.domain.ledger import Bucket
from gpuyard.domain.workload import State, Wanted
from gpuyard.settings import ControlSettings
from gpuyard.store.database import Database

TRUE_WITHIN = 15  # seconds


class KeptYard(HeldYard, LedgerYard):
    """Control looks as often as it does in earnest."""

    settings = replace(ControlSettings(), held_card_seconds=0)

    def seconds(self) -> dict[str, int]:
        total = self.lines().total
        assert total.is_whole
        names = ("free", "used", "unhealthy")
        amounts = dict(zip([bucket.value for bucket in Bucket], total.buckets, strict=True))
        return {name: round(amounts[name] / 1_000_000) for name in names}

    def lasts(self, seconds: int) -> dict[str, int]:
        """By how much each bucket grew in the meantime, in card seconds."""
        before = self.seconds()
        for _ in range(seconds):
            self.pass_time(0.999, steps=1)
        return {name: after - before[name] for name, after in self.seconds().items()}


@pytest.fixture
def yard(database: Database) -> Iterator[KeptYard]:
    with closing(KeptYard(database, [a_node("a", 4)])) as yard:
        yard.engine = Watched(yard)
        yard.crash()
        yield yard


def test_a_held_card_is_unhealthy_from_the_next_look_to_the_one_after_it_is_free(yard: KeptYard) -> None:
    giver = yard.submit(a_long_job("giver00001", 1))
    yard.lasts(TRUE_WITHIN)
    assert yard.state(giver) is State.RUNNING
    assert yard.lasts(60) == {"free": 180, "used": 60, "unhealthy": 0}
    yard.watched.held[TAKER] = [0]  # both hold it
    yard.lasts(TRUE_WITHIN)
    assert yard.lasts(60) == {"free": 180, "used": 0, "unhealthy": 60}
    yard.want(giver, Wanted.STOP)
    yard.lasts(TRUE_WITHIN)
    assert yard.state(giver) is State.STOPPED
    assert yard.lasts(60) == {"free": 180, "used": 0, "unhealthy": 60}
    yard.watched.held.clear()
    yard.lasts(TRUE_WITHIN)
    assert yard.lasts(60) == {"free": 240, "used": 0, "unhealthy": 0}
