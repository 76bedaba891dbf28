"""What is handed out to workers: each test once, long files first, cut only where it costs nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.runner.bundles import LONGEST_SECONDS, Bundle, Line, Piece, bundles_of

FILES = ("tests/a/test_a.py", "tests/b/test_b.py", "tests/test_c.py")


@st.composite
def some_tests(draw: st.DrawFn) -> list[Piece]:
    drawn = draw(st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from("xyz"), st.booleans()), max_size=30))
    return [
        Piece(f"{file}::test_{n}", file, shares, outside) for n, (file, shares, outside) in enumerate(sorted(drawn))
    ]


@given(some_tests(), st.dictionaries(st.sampled_from(FILES), st.floats(0, 200)), st.integers(1, 8))
def test_each_test_is_handed_out_once_with_others_of_its_file_and_in_their_order(
    tests: list[Piece], seconds: dict[str, float], workers: int
) -> None:
    bundles = bundles_of(tests, seconds, workers)
    assert sorted(number for bundle in bundles for number in bundle.tests) == list(range(len(tests)))
    for bundle in bundles:
        assert list(bundle.tests) == sorted(bundle.tests)
        assert {tests[number].file for number in bundle.tests} == {bundle.file}
        assert bundle.outside == any(tests[number].outside for number in bundle.tests)


@given(some_tests(), st.dictionaries(st.sampled_from(FILES), st.floats(0, 200)))
def test_what_takes_longest_comes_first_unless_there_is_one_worker(
    tests: list[Piece], seconds: dict[str, float]
) -> None:
    order = [bundle.seconds for bundle in bundles_of(tests, seconds, 4)]
    assert order == sorted(order, reverse=True)
    alone = [number for bundle in bundles_of(tests, seconds, 1) for number in bundle.tests]
    assert alone == list(range(len(tests)))


def test_a_long_file_is_cut_where_its_tests_share_another_server_and_nowhere_else() -> None:
    tests = [Piece(f"t::{n}", "t", "sqlite" if n < 3 else "postgresql") for n in range(6)]
    cut = bundles_of(tests, {"t": 3 * LONGEST_SECONDS}, 4)
    assert sorted(bundle.tests for bundle in cut) == [(0, 1, 2), (3, 4, 5)]
    assert [bundle.tests for bundle in bundles_of(tests, {"t": 1.0}, 4)] == [(0, 1, 2, 3, 4, 5)]
    alike = [Piece(f"t::{n}", "t") for n in range(6)]
    assert len(bundles_of(alike, {"t": 3 * LONGEST_SECONDS}, 4)) == 1


def test_only_a_worker_with_a_way_outside_gets_what_needs_one_and_gets_it_first() -> None:
    inner, outer = Bundle("a", (0,), 9.0), Bundle("b", (1,), 1.0, outside=True)
    line = Line([inner, outer])
    assert line.next(outside=True) == outer
    line.back(outer)
    assert line.next(outside=False) == inner
    assert line.next(outside=False) is None
    assert len(line) == 1
