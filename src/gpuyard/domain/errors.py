"""The errors a person can meet. Each carries a reason; the api gives it a status and words.

YardError
├── BadInput         what was sent cannot be meant; carries every problem found
├── NotFound         there is no such thing, or it is not yours to know
├── LoginNeeded      nobody is logged in, or the login is no longer good
├── NotAllowed       it is known who asks, and they may not
├── Conflict         it cannot be done in the present state
├── TooMany          slow down; `retry_after_seconds` says how much
├── Unavailable      a part is busy or full just now; trying again may work
└── EngineError      the place where work runs could not do it
    └── EngineUnsure  it may or may not have happened; ask again with the same id
        └── EngineWaits  nothing has happened yet, because something else has to come first
"""

from __future__ import annotations

from collections.abc import Callable

from gpuyard.domain.reasons import Reason


class YardError(Exception):
    """Something was refused, with the reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"{reason.code.value} {dict(reason.facts)}")
        self.reason = reason


class BadInput(YardError):
    """What was sent cannot be meant. Holds every problem found, the first one leading."""

    def __init__(self, *problems: Reason) -> None:
        super().__init__(problems[0])
        self.problems = problems


class NotFound(YardError):
    """There is no such thing, or it is not the asker's to know."""


class LoginNeeded(YardError):
    """Nobody is logged in, or the login is no longer good."""


class NotAllowed(YardError):
    """It is known who asks, and they may not."""


class Conflict(YardError):
    """It cannot be done in the present state of things."""


class TooMany(YardError):
    """Too many tries in too short a time."""

    def __init__(self, reason: Reason, retry_after_seconds: float) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(YardError):
    """A part is busy or full just now; trying again may work."""


class EngineError(YardError):
    """The place where work runs could not do what was asked."""


class EngineUnsure(EngineError):
    """It may or may not have happened; asking again with the same id settles it."""


class EngineWaits(EngineUnsure):
    """Nothing has happened yet: something has to come first that takes long. `then` has a call made, once, from any
    thread, when asking again leads on; at once when it does already."""

    def __init__(self, reason: Reason, then: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(reason)
        self.then = then
