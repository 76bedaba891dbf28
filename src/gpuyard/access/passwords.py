"""Passwords: how strong, how kept, and how many may be checked at a time.

Checking one costs 64 MiB and a tenth of a second on purpose, so the number of checks under way is bounded; otherwise
the login door would be a lever against the whole server.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gpuyard.domain.errors import BadInput, TooMany
from gpuyard.domain.reasons import Code, because

LEAST_LENGTH = 10
MOST_LENGTH = 256
_LEAST_BESIDE_NAME = 6
# Of the passwords people try first, those that are long enough to pass the other rules.
_COMMON = frozenset(
    {
        "0123456789",
        "0987654321",
        "1234567890",
        "12345678910",
        "123456789a",
        "1314520520",
        "1q2w3e4r5t",
        "1q2w3e4r5t6y",
        "1qaz2wsx3edc",
        "5201314520",
        "9876543210",
        "a123456789",
        "admin12345",
        "admin123456",
        "adminadmin",
        "adminadmin1",
        "administrator",
        "administrator1",
        "asdfghjkl1",
        "asdfghjkl123",
        "baseball12",
        "changeme12",
        "changeme123",
        "changeme1234",
        "football12",
        "football123",
        "gpuyard123",
        "gpuyard1234",
        "gpuyardgpuyard",
        "iloveyou12",
        "iloveyou123",
        "letmein123",
        "letmein1234",
        "p@ssw0rd123",
        "passw0rd123",
        "password12",
        "password123",
        "password1234",
        "password12345",
        "password123456",
        "princess12",
        "qwerty1234",
        "qwerty12345",
        "qwertyuiop",
        "qwertyuiop123",
        "rootroot12",
        "sunshine12",
        "superman12",
        "superman123",
        "toor123456",
        "trustno1trustno1",
        "welcome123",
        "welcome1234",
        "woaini1314",
        "woaini5201314",
        "yardyardyard",
        "zaq12wsxcde",
    }
)


def check_strength(password: str, name: str) -> None:
    """Long enough, not the name, not what everyone tries first."""
    if len(password) > MOST_LENGTH:
        raise BadInput(because(Code.TOO_LARGE, what="password", size=len(password), limit=MOST_LENGTH))
    lowered = password.lower()
    beside_name = lowered.replace(name.lower(), "") if name else lowered
    too_short = len(password) < LEAST_LENGTH or len(beside_name) < _LEAST_BESIDE_NAME
    if too_short or lowered in _COMMON or len(set(lowered)) < 4:
        raise BadInput(because(Code.WEAK_PASSWORD, least=LEAST_LENGTH))


def make_one_time_password() -> str:
    """Twenty characters that can be read aloud: no 0/o, 1/l."""
    alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
    letters = "".join(secrets.choice(alphabet) for _ in range(20))
    return "-".join(letters[i : i + 5] for i in range(0, 20, 5))


class Passwords:
    """Hashes and compares, a few at a time."""

    def __init__(self, hasher: PasswordHasher | None = None, *, at_once: int = 2, waiting: int = 8) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turns = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + waiting)

    def hash(self, password: str) -> str:
        with self._turn():
            return self._hasher.hash(password)

    def matches(self, kept: str | None, given: str, before: Callable[[], None] | None = None) -> bool:
        """Whether the password is right. An unknown user (None) takes as long as a known one. `before` is called once
        it is sure that this one will be checked, and may still refuse it."""
        with self._turn(before):
            if len(given) > MOST_LENGTH:
                return False
            try:
                return self._hasher.verify(kept or self._nobody, given) and kept is not None
            except (VerificationError, InvalidHashError):
                return False

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe(16))

    @contextmanager
    def _turn(self, before: Callable[[], None] | None = None) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise TooMany(because(Code.TOO_MANY_TRIES, seconds=2), 2.0)
        try:
            if before is not None:
                before()
            with self._turns:
                yield
        finally:
            self._places.release()
