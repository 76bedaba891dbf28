"""When other requests become typical nobody waits for what follows from it, and in the end it is the same."""

from __future__ import annotations

from hypothesis import given, settings
from tests.draw import a_job, a_node
from tests.scheduling.worlds import NOW, worlds

from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import Cards, Resources
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import Typical, typical_from
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.snapshot import Snapshot


def whole(cards: int) -> tuple[Typical, ...]:
    return typical_from({Resources(cpu_milli=1000, cards=Cards("nvidia", 1000 * cards)): 1})


def shares() -> tuple[Typical, ...]:
    sizes = {Resources(cpu_milli=1000, cards=Cards("nvidia", milli)): milli for milli in range(50, 1000, 50)}
    return typical_from(sizes)


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_what_was_learned_bit_by_bit_decides_as_if_it_had_always_been_known(world: Snapshot) -> None:
    books = Books.of(world)
    books.renew_typical(whole(4))
    decide(books, NOW)  # so that something follows from what was typical
    books.learn_typical(world.typical)
    passes_until_ready(books)
    assert decide(books, NOW) == decide(Books.of(world), NOW)


def a_yard(typical: tuple[Typical, ...]) -> Books:
    books = Books([a_node("large", 8), a_node("small", 4)], {}, Policy(), typical=typical)
    for number in range(12):
        books.put(a_job(f"job00000{number:02d}", cards=1, cpu=1, memory_gib=1))
    return books


def passes_until_ready(books: Books, placed: int = 0) -> int:
    count = 0
    while not books.rooms.has_learned:
        books.rooms.go_on_learning(placed)
        count += 1
    return count


def a_yard_that_learns() -> Books:
    books = a_yard(whole(8))
    decide(books, NOW)  # so that something follows from what was typical
    books.learn_typical(shares())
    return books


def test_until_it_is_ready_work_goes_where_it_would_have_gone() -> None:
    """Where fours are typical the machine of four is left alone, where eights are, the large one."""
    books = Books([a_node("large", 8), a_node("small", 4)], {}, Policy(), typical=whole(4))
    books.put(a_job(cards=1, cpu=1, memory_gib=1))

    def place() -> str:
        (placement,) = decide(books, NOW).placements
        return next(iter(placement.allotments.values())).node

    before = place()
    books.learn_typical((*whole(8), *shares()))
    assert place() == before
    passes_until_ready(books)
    assert place() != before


def test_what_is_told_meanwhile_is_learned_in_the_end_and_what_was_told_between_is_not() -> None:
    books = a_yard(whole(8))
    decide(books, NOW)
    for typical in (shares(), whole(2), whole(4)):
        books.learn_typical(typical)
    assert passes_until_ready(books) > 1, "it is not done at once"
    fresh = a_yard(whole(4))
    assert decide(books, NOW) == decide(fresh, NOW)


def test_it_takes_as_many_passes_each_time() -> None:
    """Also where a like one was worked out before: who replays must not be ahead."""
    assert passes_until_ready(a_yard_that_learns()) == passes_until_ready(a_yard_that_learns()) > 1


def test_a_pass_that_places_much_learns_faster() -> None:
    assert passes_until_ready(a_yard_that_learns(), placed=1000) < passes_until_ready(a_yard_that_learns())
