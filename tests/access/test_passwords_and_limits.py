"""Passwords, how often they may be tried, and the secret of the data folder."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from contextlib import closing
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from gpuyard.access.limits import AddressRule, LoginLimits, Rule, TryRule, network_of
from gpuyard.access.owner import keep_owner_secret
from gpuyard.access.passwords import Passwords, check_strength, make_one_time_password
from gpuyard.domain.errors import BadInput, TooMany
from gpuyard.store import login_tries
from gpuyard.store.database import Database
from gpuyard.store.login_tries import Tries

QUICK = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


@pytest.mark.parametrize(
    "password",
    ["", "short", "123456789", "password123", "PASSWORD123", "aaaaaaaaaaaa", "mara-mara-mara", "mara123", "x" * 300],
)
def test_a_weak_password_is_refused(password: str) -> None:
    with pytest.raises(BadInput):
        check_strength(password, "mara")


@pytest.mark.parametrize(
    "password", ["correct horse", "Tr0ub4dor&3x", "密码很长很长很长很长的", make_one_time_password()]
)
def test_a_good_password_is_taken(password: str) -> None:
    check_strength(password, "mara")


def test_only_the_right_password_matches() -> None:
    passwords = Passwords(QUICK)
    kept = passwords.hash("correct horse")
    assert passwords.matches(kept, "correct horse")
    assert not passwords.matches(kept, "correct horsf")
    assert not passwords.matches(kept, "correct horse" + "e" * 500)
    assert not passwords.matches("not a hash", "correct horse")


def test_an_unknown_user_is_hashed_for_all_the_same() -> None:
    assert not Passwords(QUICK).matches(None, "correct horse")


def test_only_so_many_passwords_wait_to_be_checked() -> None:
    slow = Passwords(PasswordHasher(time_cost=3, memory_cost=65536, parallelism=1), at_once=1, waiting=1)
    outcomes: list[str] = []

    def check() -> None:
        try:
            slow.matches(None, "whatever")
            outcomes.append("checked")
        except TooMany:
            outcomes.append("refused")

    threads = [threading.Thread(target=check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert "refused" in outcomes
    assert "checked" in outcomes


def after(rule: Rule, times: int, now: float = 1000.0) -> Tries | None:
    tries: Tries | None = None
    for _ in range(times):
        assert rule.wait(tries, now) == 0
        tries = rule.counted(tries, now)
    return tries


def test_ten_tries_are_free_and_then_the_waits_grow() -> None:
    rule = TryRule()
    ten = after(rule, 10)
    assert rule.wait(ten, 1000.0) == pytest.approx(2.0)
    assert rule.wait(ten, 1002.0) == 0
    assert rule.wait(rule.counted(ten, 1002.0), 1002.0) == pytest.approx(4.0)
    assert rule.wait(Tries(1e9, 1000.0), 1000.0) == 300.0


def test_after_a_quiet_while_it_begins_anew() -> None:
    rule = TryRule()
    assert rule.wait(after(rule, 10), 1299.0) == 0
    assert rule.counted(after(rule, 10), 1299.0).count == 11
    assert rule.counted(after(rule, 10), 1300.0).count == 1


def test_a_clock_that_is_behind_does_not_make_the_wait_longer() -> None:
    rule = TryRule()
    assert rule.wait(after(rule, 10), 900.0) == pytest.approx(2.0)
    assert AddressRule().wait(after(AddressRule(), 100), 900.0) == pytest.approx(3.0)


def test_those_who_would_not_be_checked_are_not_counted() -> None:
    """A flood is sent away before it can make the store write."""
    passwords = Passwords(QUICK, at_once=1, waiting=0)
    counted: list[str] = []
    outcomes: list[str] = []

    def second() -> None:
        try:
            passwords.matches(None, "whatever", before=lambda: counted.append("second"))
        except TooMany:
            outcomes.append("refused")

    def first() -> None:
        counted.append("first")
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    assert not passwords.matches(None, "whatever", before=first)
    assert (counted, outcomes) == (["first"], ["refused"])


# --- over all processes -------------------------------------------------------------------------------------------


@pytest.fixture
def limits(database: Database) -> LoginLimits:
    return LoginLimits(database)


def fail(limits: LoginLimits, account: str, address: str, times: int, now: float = 1000.0) -> None:
    for _ in range(times):
        limits.count(account, address, now)


def test_failures_on_one_account_do_not_lock_out_the_others_behind_the_address(limits: LoginLimits) -> None:
    fail(limits, "mara", "10.0.0.7", 10)
    for _ in range(500):
        with pytest.raises(TooMany):
            limits.count("mara", "10.0.0.7", 1000.0)
    limits.count("otto", "10.0.0.7", 1000.0)


def test_an_address_has_a_hundred_tries_over_all_accounts_and_then_one_now_and_then(limits: LoginLimits) -> None:
    for number in range(100):
        limits.count(f"user{number}", "10.0.0.7", 1000.0)
    with pytest.raises(TooMany) as refused:
        limits.count("one-more", "10.0.0.7", 1000.0)
    assert refused.value.retry_after_seconds == pytest.approx(3.0)
    limits.count("one-more", "10.0.0.8", 1000.0)
    limits.count("one-more", "10.0.0.7", 1003.0)
    fail(limits, "later", "10.0.0.7", 9, now=1303.0)


def test_an_account_is_not_guessed_at_from_many_addresses(limits: LoginLimits) -> None:
    for number in range(10):
        limits.count("mara", f"10.0.0.{number}", 1000.0)
    with pytest.raises(TooMany):
        limits.count("mara", "10.0.0.99", 1000.0)


def test_the_owner_logging_in_does_not_let_off_who_guesses_elsewhere(limits: LoginLimits) -> None:
    fail(limits, "mara", "10.6.6.6", 9)
    limits.count("mara", "10.0.0.7", 1000.0)
    limits.went_well("mara", "10.0.0.7")
    limits.count("mara", "10.6.6.6", 1000.0)
    with pytest.raises(TooMany):
        limits.count("mara", "10.6.6.6", 1000.0)
    limits.count("mara", "10.0.0.7", 1000.0)


def test_those_who_log_in_well_use_up_nothing(limits: LoginLimits, database: Database) -> None:
    for number in range(120):
        limits.count(f"user{number % 50}", "10.0.0.7", 1000.0)
        limits.went_well(f"user{number % 50}", "10.0.0.7")
    with database.read() as conn:
        assert login_tries.count(conn) == 0


def test_tries_count_over_all_doors(database_url: str) -> None:
    """The server and every worker of the gateway have a connection to the store of their own."""
    with closing(Database.open(database_url)) as one, closing(Database.open(database_url)) as other:
        doors = [LoginLimits(one), LoginLimits(other)]
        for number in range(10):
            doors[number % 2].count("mara", f"10.0.0.{number}", 1000.0)
        for door in doors:
            with pytest.raises(TooMany):
                door.count("mara", "10.0.0.99", 1000.0)
        doors[0].take_back("mara", "10.0.0.1")
        doors[1].count("mara", "10.0.0.99", 1000.0)
        doors[1].went_well("mara", "10.0.0.99")
        doors[0].count("mara", "10.0.0.2", 1000.0)


def test_at_once_no_more_get_through_than_one_after_the_other(database_url: str) -> None:
    with closing(Database.open(database_url)) as one, closing(Database.open(database_url)) as other:
        doors, through = [LoginLimits(one), LoginLimits(other)], []

        def guess(number: int) -> None:
            with contextlib.suppress(TooMany):
                doors[number % 2].count("mara", "10.0.0.7", 1000.0)
                through.append(number)

        threads = [threading.Thread(target=guess, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(through) == 10


def test_what_is_refused_writes_nothing_and_what_is_old_is_forgotten(limits: LoginLimits, database: Database) -> None:
    fail(limits, "mara", "10.0.0.7", 10)
    with database.read() as conn:
        before = login_tries.count(conn)
    with pytest.raises(TooMany):
        limits.count("mara", "10.0.0.8", 1000.0)
    with database.read() as conn:
        assert login_tries.count(conn) == before == 3
    limits.count("otto", "10.0.0.9", 1301.0)
    with database.read() as conn:
        assert login_tries.count(conn) == 3


def test_no_name_is_kept_as_it_was_typed(limits: LoginLimits, database: Database) -> None:
    """Some type their password there."""
    limits.count("my secret \udcff", "10.0.0.7", 1000.0)
    with database.read() as conn:
        kept = conn.exec_driver_sql("SELECT key_hash FROM login_tries").scalars().all()
    assert len(kept) == 3
    assert all(re.fullmatch(r"[0-9a-f]{64}", key) for key in kept)


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [("10.0.0.7", "10.0.0.7"), ("2001:db8::1", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("", ""), ("x", "x")],
)
def test_neighbours_in_ipv6_count_as_one(address: str, counted_as: str) -> None:
    assert network_of(address) == counted_as


def test_the_owner_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "owner.token"
    secret = keep_owner_secret(path)
    text = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    assert text.startswith("yard_")
    assert secret.is_it(text)
    assert keep_owner_secret(path).is_it(text)
    assert not secret.is_it(text + "x")
    assert not secret.is_it("")


def test_an_owner_secret_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "owner.token"
    keep_owner_secret(path)
    before = path.read_text().strip()
    os.chmod(path, 0o644)
    assert not keep_owner_secret(path).is_it(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_or_rubbish_in_place_of_the_owner_secret_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "owner.token", tmp_path / "known"
    other.write_text("yard_" + "k" * 43)
    other.chmod(0o600)
    path.symlink_to(other)
    assert not keep_owner_secret(path).is_it("yard_" + "k" * 43)
    path.write_bytes(b"\xff\xfe")
    assert not keep_owner_secret(path).is_it("")
