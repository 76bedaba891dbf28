"""The tables at the end of a run."""

from __future__ import annotations

from pathlib import Path

from tests.runner import telling

PROJECT = Path(__file__).parents[2]


def test_a_folder_over_its_budget_is_named_loudly_and_others_are_not() -> None:
    account = telling.Account()
    account.add("tests/api/test_a.py", 3, 61.0, 9.0)
    account.add("tests/cli/test_b.py", 1, 5.0, 1.0)
    account.add("tests/test_settings.py", 2, 1.0, 1.0)
    assert account.table({"tests/api": 60, "tests/cli": 10}) == [
        "folder     tests  seconds  budget  cpu",
        "tests/api      3       61      60    9  !! OVER ITS BUDGET",
        "tests/cli      1        5      10    1",
        "tests          2        1            1",
        "all            6       67      70   11",
    ]


def test_every_folder_with_tests_has_a_budget_that_people_can_read() -> None:
    budgets = telling.budgets_in((PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    folders = {f"tests/{file.relative_to(PROJECT / 'tests').parts[0]}" for file in PROJECT.glob("tests/*/**/test_*.py")}
    assert set(budgets) == {telling.ELSEWHERE, *folders}


def test_unsteady_tests_are_told_with_how_they_failed_at_first() -> None:
    one = telling.Unsteady("tests/a.py::test_x", "[call]\nassert 1 == 2")
    assert telling.told_of([]) == ["unsteady: none"]
    told = telling.told_of([one])
    assert told == [
        "unsteady: 1 failed among others and passed by themselves",
        "tests/a.py::test_x",
        "    [call]",
        "    assert 1 == 2",
    ]
    assert "the run has failed" not in telling.told_of([one] * telling.MOST_UNSTEADY)[0]
    assert "the run has failed" in telling.told_of([one] * (telling.MOST_UNSTEADY + 1))[0]


def test_the_slowest_are_told_first_and_seconds_are_added_up_by_file() -> None:
    seconds = {"a.py::x": 1.0, "a.py::y": 2.5, "b.py::z": 9.0}
    assert telling.slowest(seconds, 2) == ["    9.0 s  b.py::z", "    2.5 s  a.py::y"]
    assert telling.by_file(seconds) == {"a.py": 3.5, "b.py": 9.0}
