"""Which benches are meant: by their names, by their groups', by what these begin with; and what is said of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from lab.bench_names import SUFFIX, Bench, Unknown, chosen, known_benches
from lab.outcome import Outcome, is_good, summary

PROJECT = Path(__file__).parent.parent.parent
KNOWN = [
    Bench("gateway", "gateway"),
    Bench("many_sockets", "gateway"),
    Bench("recording", "journal"),
    Bench("recording_beside", "journal"),
    Bench("scrolling", "console"),
    Bench("first_page", "console_overview"),
    Bench("gangs", "scheduling"),
]


def names(*asked: str) -> list[str]:
    return [bench.name for bench in chosen(asked, KNOWN)]


def test_all_are_meant_when_none_is_asked_for() -> None:
    assert chosen([], KNOWN) == chosen(["", " , "], KNOWN) == KNOWN


def test_a_group_means_all_of_its_benches_also_when_one_has_its_name() -> None:
    assert names("gateway") == ["gateway", "many_sockets"]


def test_a_name_in_full_means_no_longer_one() -> None:
    assert names("recording") == ["recording"]
    assert names("record") == ["recording", "recording_beside"]


def test_what_groups_begin_with_means_them_all() -> None:
    assert names("console") == ["scrolling", "first_page"]


@pytest.mark.parametrize(
    "asked", [["gangs,recording"], ["gangs recording"], ["gangs", "recording"], ["gangs, ,recording "]]
)
def test_several_may_be_asked_for_and_come_in_the_order_they_are_known_in(asked: list[str]) -> None:
    assert names(*asked) == ["recording", "gangs"]


def test_each_comes_once() -> None:
    assert names("gangs", "gang", "scheduling") == ["gangs"]


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(Unknown) as refused:
        names("gangs", "nginx", "apache")

    first, *listed = str(refused.value).splitlines()
    assert "nginx, apache" in first
    assert "gangs" not in first
    assert [line.split() for line in listed] == [[bench.name, bench.group] for bench in KNOWN]


def test_the_names_that_are_read_are_those_of_the_benches() -> None:
    known = known_benches()
    groups = list(dict.fromkeys(bench.group for bench in known))
    measures = {group: importlib.import_module(f"lab.{group}{SUFFIX}").MEASURES for group in groups}

    assert groups == sorted(file.stem.removesuffix(SUFFIX) for file in (PROJECT / "lab").glob(f"*{SUFFIX}.py"))
    assert [(bench.group, bench.name) for bench in known] == [
        (group, function.__name__) for group in groups for function in measures[group]
    ]
    assert len({bench.name for bench in known}) == len(known)


@pytest.mark.parametrize("module", ["lab.bench_names", "lab.bench"])
def test_an_unknown_name_ends_with_2_and_nothing_is_measured(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "nobody"], cwd=PROJECT, capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "start_and_idle" in done.stderr


def test_names_are_looked_at_by_a_python_that_has_nothing_installed() -> None:
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        "import sys; sys.path.insert(0, ''); import lab.bench_names as names; ",
    ]
    command[-1] += "sys.exit(names.main(['gateway']))"

    assert subprocess.run(command, cwd=PROJECT).returncode == 0


def test_in_the_end_seconds_are_told_and_what_is_missing_aloud() -> None:
    outcomes = [
        Outcome("gateway", 30.4, left_out="no nginx"),
        Outcome("ssh", 2.0, broke="OSError"),
        Outcome("why", 5.0),
    ]

    text = "\n".join(summary(outcomes))
    assert "gateway 30, ssh 2, why 5; in all 37" in text
    assert "!!   gateway was left out: no nginx" in text
    assert "!!   ssh broke: OSError" in text
    assert not is_good(outcomes)
    assert is_good([outcomes[0], outcomes[2]])


def test_more_than_twelve_minutes_are_told_aloud_and_are_not_good() -> None:
    in_time, late = [Outcome("a", 400.0), Outcome("b", 320.0)], [Outcome("a", 400.0), Outcome("b", 321.0)]

    assert not [line for line in summary(in_time) if line.startswith("!!")]
    assert is_good(in_time)
    assert [line for line in summary(late) if line.startswith("!!")] == [
        "!!   721 s in all are more than the 720 promised"
    ]
    assert not is_good(late)


THREE = """
import sys
from lab.bench import measure_all
from lab.lines import Line
from lab.needs import program

def breaks():
    raise OSError("the disk is full")

def lacks():
    program("no-such-program", "nothing")

def measures():
    return [Line("a thing", 1.0, 2.0, "s")]

sys.exit(measure_all({"breaks": breaks, "lacks": lacks, "measures": measures}))
"""


def test_one_that_breaks_or_cannot_be_run_does_not_keep_the_others_from_it() -> None:
    done = subprocess.run([sys.executable, "-c", THREE], cwd=PROJECT, capture_output=True, text=True)

    assert done.returncode == 1
    assert "ok   a thing" in done.stdout
    assert "!!   breaks broke: OSError: the disk is full" in done.stdout
    assert "!!   lacks was left out: no-such-program is not installed (Debian: apt-get install nothing)" in done.stdout
