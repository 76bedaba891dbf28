"""Looking for holders may take long. Nobody waits for it, and nothing old is taken for new."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from gpuyard.devices.holders import Holder
from gpuyard.devices.watch import Held, HolderWatch

SOMEBODY = Holder(1, "init", 0)


class _SlowEyes:
    """Finds the same holder each time, once it is allowed to finish."""

    def __init__(self) -> None:
        self.may_finish = threading.Event()
        self.has_begun = threading.Semaphore(0)

    def __call__(self, paths: Sequence[str]) -> Held:
        self.has_begun.release()
        self.may_finish.wait(60)
        return {path: [SOMEBODY] for path in paths}


def test_a_quick_look_is_waited_for_and_began_after_the_question() -> None:
    watch = HolderWatch(lambda paths: {path: [SOMEBODY] for path in paths}, patience_seconds=60)
    for path in ("a", "b"):
        asked = time.monotonic()
        look = watch.look([path])
        assert look is not None
        assert look.began >= asked
        assert look.held == {path: [SOMEBODY]}
    watch.close()


def test_a_slow_look_is_not_waited_for_and_the_last_finished_one_is_told() -> None:
    eyes = _SlowEyes()
    watch = HolderWatch(eyes, patience_seconds=0.01)
    assert watch.look(["a"]) is None
    assert eyes.has_begun.acquire(timeout=60)
    assert watch.look(["a"]) is None
    eyes.may_finish.set()
    until = time.monotonic() + 60
    while (first := watch.look(["a"])) is None:
        assert time.monotonic() < until
    eyes.may_finish.clear()
    old = watch.look(["a"])
    assert old is not None
    assert old.began >= first.began
    assert old.held == {"a": [SOMEBODY]}
    eyes.may_finish.set()
    watch.close()


def test_a_look_that_fails_is_tried_again_with_the_next_question() -> None:
    faults = [OSError("too many open files")]

    def look(paths: Sequence[str]) -> Held:
        if faults:
            raise faults.pop()
        return {}

    watch = HolderWatch(look, patience_seconds=0.01)
    until = time.monotonic() + 60
    while watch.look(["a"]) is None:
        assert time.monotonic() < until
    assert not faults
    watch.close()
