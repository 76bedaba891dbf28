"""What is typical is learned from what was submitted of late."""

from __future__ import annotations

from dataclasses import replace

from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.resources import Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, State
from gpuyard.store.database import Database
from gpuyard.world.asked import COUNTED, GANG_AT_MOST, LEARNED_FROM, PARTS, REMEMBERED, Asked
from gpuyard.world.picture import Picture


def spec(cards: int, replicas: int = 1) -> Spec:
    resources = Resources(cpu_milli=1000, cards=Cards("nvidia", cards * 1000))
    return Spec("job", (RoleSpec("worker", ("true",), replicas, resources),))


def cards_of(asked: Asked) -> dict[int, int]:
    return {one.resources.cards.milli // 1000: one.times for one in asked.typical() if one.resources.cards}


def test_a_few_submissions_say_nothing() -> None:
    asked = Asked((f"job{n}", "ann", spec(1), n) for n in range(LEARNED_FROM - 1))
    assert asked.typical() == ()


def test_newer_submissions_count_twice() -> None:
    asked = Asked((f"job{n}", "ann", spec(1 if n < 50 else 8), n) for n in range(100))
    assert cards_of(asked) == {8: 667, 1: 333}


def test_one_large_gang_is_not_what_is_typical() -> None:
    jobs = [(f"job{n}", "ann", spec(1), n) for n in range(100)]
    some = cards_of(Asked([*jobs, ("gang", "ann", spec(8, GANG_AT_MOST), 100)]))
    assert cards_of(Asked([*jobs, ("gang", "ann", spec(8, 10_000), 100)])) == some
    assert some[1] > some[8]


def test_what_was_usual_long_ago_is_forgotten() -> None:
    asked = Asked((f"job{n}", "ann", spec(8 if n < 2000 else 1), n) for n in range(2000 + REMEMBERED))
    assert set(cards_of(asked)) == {1}
    assert "job0" not in asked
    assert "job2999" in asked


def test_it_is_learned_anew_when_a_fifth_of_what_is_remembered_is_new() -> None:
    asked = Asked((f"job{n}", "ann", spec(1), n) for n in range(200))
    asked.typical()
    assert [asked.note(f"new{n}", "ann", spec(2), 200 + n) for n in range(80)].index(True) in range(45, 55)


# --- whose they are -------------------------------------------------------------------------------------------------


def came(*submissions: tuple[str, int, int]) -> Asked:
    """So many of each owner's, each for so many cards, one owner's after the other's."""
    all = [(owner, cards) for owner, cards, number in submissions for _ in range(number)]
    return Asked((f"job{n}", owner, spec(cards), float(n)) for n, (owner, cards) in enumerate(all))


def test_one_person_alone_counts_for_no_more_than_half_however_much_they_submit() -> None:
    assert cards_of(came(("ann", 1, 100), ("mal", 8, 1900))) == {1: 500, 8: 500}
    assert cards_of(came(("ann", 1, LEARNED_FROM), ("mal", 8, 500))) == {1: 500, 8: 500}


def test_nobody_drives_out_the_others_by_a_thousand_of_their_own() -> None:
    one, eight = cards_of(came(("ann", 1, 300), ("bob", 1, 300), ("mal", 8, COUNTED))).values()
    assert one == eight


def test_somebody_who_is_alone_or_nearly_alone_counts_as_if_nobody_were_limited() -> None:
    assert cards_of(came(("ann", 1, 1000), ("ann", 8, 500))) == {8: 667, 1: 333}
    few = cards_of(came(("ann", 1, 500), ("bob", 8, LEARNED_FROM - 1)))
    assert few[8] < 100


def test_where_nobody_has_more_than_half_all_count_alike() -> None:
    everyone = [(f"job{n}", f"user{n % 3}", spec(1 if n % 2 else 8), float(n)) for n in range(600)]
    assert cards_of(Asked(everyone)) == cards_of(Asked((id, "ann", spec, at) for id, _, spec, at in everyone))


def test_the_picture_learns_while_it_follows_and_knows_the_same_when_it_is_made_anew(database: Database) -> None:
    yard = Yard(database, [a_node("a", 8)])
    picture = Picture(database)
    picture.follow()
    books = picture.books
    assert not books.typical
    for number in range(LEARNED_FROM):
        yard.submit(a_job(f"usual{number:05d}"))
    picture.follow()
    assert picture.books is books
    assert [one.times for one in books.typical] == [PARTS]
    later = Picture(database)
    later.follow()
    assert later.typical == picture.typical == later.books.typical == later.snapshot(0.0).typical
    yard.close()


def test_whoever_looks_seldom_learns_from_what_was_over_meanwhile_but_not_again_from_what_is_old(
    database: Database,
) -> None:
    yard = Yard(database, [a_node("a", 8)])
    picture = Picture(database)
    picture.follow()
    for number in range(LEARNED_FROM):
        yard.submit(a_job(f"short{number:05d}"))
    for _ in range(LEARNED_FROM):
        yard.pass_time(3600.0)
    assert {yard.state(f"short{number:05d}") for number in range(LEARNED_FROM)} == {State.SUCCEEDED}
    picture.follow()
    assert [one.times for one in picture.typical] == [PARTS]
    yard.close()


def test_an_old_submission_that_was_forgotten_is_not_taken_for_a_new_one() -> None:
    asked = Asked((f"job{n}", "ann", spec(1), float(n)) for n in range(REMEMBERED + 1))
    old = replace(a_job("job0"), submitted_at=0.0, state=State.SUCCEEDED)
    assert not asked.lacks(old)
    assert not asked.lacks(replace(a_job("job9"), submitted_at=9.0))
    assert asked.lacks(replace(old, id="fresh", submitted_at=REMEMBERED + 2.0))
    assert asked.lacks(replace(old, id="fresh", submitted_at=-1.0, state=State.QUEUED))
