"""Many writes in one transaction: each gets its own answer, and nobody suffers for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gpuyard.api.together import MOST_AT_ONCE, Together
from gpuyard.domain.errors import Conflict, Unavailable
from gpuyard.domain.people import Group
from gpuyard.domain.reasons import Code, because
from gpuyard.store import people
from gpuyard.store.database import Connection, Database

Outcome = dict[str, object]


def adds(name: str) -> Callable[[Connection], str]:
    def work(conn: Connection) -> str:
        people.create_group(conn, Group(name), 0.0)
        return name

    return work


def run_all(together: Together, errands: dict[str, Callable[[Connection], str]]) -> Outcome:
    """All at the same time: the first is under way while the others come."""

    async def gather() -> list[object]:
        works = [lambda conn: "first", *errands.values()]
        return await asyncio.gather(*(together.write(work) for work in works), return_exceptions=True)

    answers = asyncio.run(gather())
    told = [type(answer) if isinstance(answer, Exception) else answer for answer in answers]
    return dict(zip(["first", *errands], told, strict=True))


def names(database: Database) -> set[str]:
    with database.read() as conn:
        return {group.name for group in people.all_groups(conn)}


def test_everyone_gets_their_own_answer(database: Database) -> None:
    wanted = {f"g{number}" for number in range(MOST_AT_ONCE * 2)}
    outcome = run_all(Together(database), {name: adds(name) for name in wanted})
    assert {outcome[name] for name in wanted} == wanted
    assert names(database) == wanted


def test_a_refusal_is_its_senders_alone(database: Database) -> None:
    def refused(conn: Connection) -> str:
        raise Conflict(because(Code.IN_USE, what="x", name="x", by="x"))

    outcome = run_all(Together(database), {"a": adds("a"), "bad": refused, "b": adds("b")})
    assert outcome == {"first": "first", "a": "a", "bad": Conflict, "b": "b"}
    assert names(database) == {"a", "b"}


def test_an_errand_that_breaks_the_transaction_breaks_it_for_itself_only(database: Database) -> None:
    """On PostgreSQL a failed statement spoils the whole transaction, and a bug may raise anything anywhere."""

    def broken(conn: Connection) -> str:
        people.create_group(conn, Group("half"), 0.0)
        raise ZeroDivisionError

    errands = {"a": adds("a"), "broken": broken, "b": adds("b")}
    outcome = run_all(Together(database), errands | {"twin": adds("a")})
    assert outcome["broken"] is ZeroDivisionError
    assert outcome["b"] == "b"
    assert {str(outcome["a"]), str(outcome["twin"])} == {"a", str(Conflict)}
    assert names(database) == {"a", "b"}


def test_a_busy_store_is_told_to_everyone(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('busy')}/gpuyard.db"
    holder, waiter = Database.open(url), Database.open(url, lock_seconds=0.2)
    try:
        with holder.write():
            outcome = run_all(Together(waiter), {"a": adds("a"), "b": adds("b")})
        assert set(outcome.values()) == {Unavailable}
        assert names(waiter) == set()
    finally:
        holder.close()
        waiter.close()
