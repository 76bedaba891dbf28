"""What can go wrong when a program asks a server. Every error has a code, words, and the facts behind them.

YardApiError            the server said no, or (codes `client.*`) it never got as far as the server
├── NotFound            it is not there, or not for you to see
├── NotAllowed          you are not logged in, or may not do this
├── BadInput            what was sent cannot be meant; `problems` names everything wrong with it
│   └── WorkdirRefused  the folder cannot be shipped
└── ServerUnreachable   nobody answered
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One of the things wrong with what was sent."""

    code: str
    message: str
    facts: Mapping[str, Any] = MappingProxyType({})


class YardApiError(Exception):
    """A refusal: `code` for programs, `message` for people, `facts` for both. `status` is 0 when no server spoke."""

    def __init__(
        self,
        code: str,
        message: str,
        facts: Mapping[str, Any] | None = None,
        *,
        status: int = 0,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts: Mapping[str, Any] = dict(facts or {})
        self.status = status
        self.problems = tuple(problems)


class ServerUnreachable(YardApiError):
    """No server was found, or the one there is does not answer."""


class NotFound(YardApiError):
    """It is not there, or not for this user to see."""


class NotAllowed(YardApiError):
    """Not logged in, or not allowed to do this."""


class BadInput(YardApiError):
    """What was sent cannot be meant."""


class WorkdirRefused(BadInput):
    """The folder cannot be shipped with the job."""


def kind_of_error(status: int) -> type[YardApiError]:
    """The class for a refusal with this HTTP status."""
    if status == 404:
        return NotFound
    if status in (401, 403):
        return NotAllowed
    return BadInput if status in (400, 413, 415, 422) else YardApiError
