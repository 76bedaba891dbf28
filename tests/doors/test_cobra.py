"""Command lines read as cobra and pflag read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.doors.cobra import Command, Flag, Given, UsageError
from gpuyard.doors.cobra.completing import candidates
from gpuyard.doors.cobra.helping import help_text
from gpuyard.doors.cobra.parsing import HelpWanted, find, parse, require_flags


def nothing(given: Given) -> int:
    return 0


LIST = Command(
    "list",
    "List things",
    nothing,
    (
        Flag("all", "also hidden ones", "a", "bool"),
        Flag("count", "how many", "n", "int", "10"),
        Flag("name", "only these", short="N", kind="strings"),
    ),
    words="[THING]",
    most=1,
    aliases=("ls",),
)
ROOT = Command(
    "tool", "A tool", flags=(Flag("config", "a file", "c"),), children=(LIST, Command("run", "Run", nothing))
)


def read(*typed: str) -> tuple[str, Given]:
    path, words = find(ROOT, typed)
    return path[-1].name, parse(path, words)


@pytest.mark.parametrize(
    "typed",
    [
        ("-c", "f", "list", "x", "-a", "-n", "3"),
        ("list", "--all", "x", "--count=3", "--config", "f"),
        ("--config=f", "ls", "-an3", "x"),
        ("list", "-cf", "-a=true", "-n=3", "--", "x"),
    ],
)
def test_flags_may_stand_anywhere_and_be_written_in_many_ways(typed: tuple[str, ...]) -> None:
    name, given = read(*typed)
    assert (name, given.words) == ("list", ("x",))
    assert (given.text("config"), given.is_set("all"), given.number("count")) == ("f", True, 3)


def test_what_is_not_given_has_its_default() -> None:
    _, given = read("list")
    assert (given.number("count"), given.is_set("all"), given.text("config")) == (10, False, "")


def test_a_flag_given_several_times_keeps_all_of_its_values_and_the_last_one_counts() -> None:
    _, given = read("list", "-N", "a", "--name", "b")
    assert (given.lists["name"], given.text("name")) == (("a", "b"), "b")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("list", "--nope"), "unknown flag: --nope"),
        (("list", "-x"), "unknown shorthand flag: 'x' in -x"),
        (("list", "--=x"), "bad flag syntax: --=x"),
        (("list", "--count"), "flag needs an argument: --count"),
        (("list", "-an"), "flag needs an argument: 'n' in -an"),
        (("list", "-n", "many"), 'invalid argument "many" for "-n, --count" flag: strconv.ParseInt: parsing "many"'),
        (("list", "--all=maybe"), 'invalid argument "maybe" for "-a, --all" flag: strconv.ParseBool'),
        (("list", "a", "b"), "accepts between 0 and 1 arg(s), received 2"),
        (("run", "a"), "accepts 0 arg(s), received 1"),
        (("lst",), 'unknown command "lst" for "tool"\n\nDid you mean this?\n\tlist'),
    ],
)
def test_mistakes_are_told_in_pflag_s_sentences(typed: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(*typed)
    assert refused.value.message.startswith(said)


def test_flags_that_must_be_there_are_asked_for_together() -> None:
    _, given = read("list", "-n", "3")
    with pytest.raises(UsageError) as refused:
        require_flags(given, "count", "name", "config")
    assert refused.value.message == 'required flag(s) "name", "config" not set'


def test_help_is_wanted_wherever_it_is_asked_for() -> None:
    for typed in (("list", "--help"), ("-h", "list"), ("list", "-ah")):
        with pytest.raises(HelpWanted):
            read(*typed)


def test_help_shows_flags_in_columns() -> None:
    assert help_text((ROOT, LIST)) == (
        "List things\n"
        "\n"
        "Usage:\n"
        "  tool list [THING] [flags]\n"
        "\n"
        "Aliases:\n"
        "  list, ls\n"
        "\n"
        "Flags:\n"
        "  -a, --all            also hidden ones\n"
        "  -n, --count int      how many (default 10)\n"
        "  -h, --help           help for list\n"
        "  -N, --name strings   only these\n"
        "\n"
        "Global Flags:\n"
        "  -c, --config string   a file"
    )


def test_completion_offers_what_may_come_next() -> None:
    assert candidates(ROOT, [""]) == ["list", "run"]
    assert candidates(ROOT, ["-c", "f", "l"]) == ["list"]
    assert candidates(ROOT, ["list", "--co"]) == ["--config", "--count"]
    assert candidates(ROOT, ["nothing", ""]) == []


@settings(deadline=None)
@given(st.lists(st.sampled_from(["list", "run", "-c", "--config", "-a", "-n", "3", "--", "-", "x", "--all=1", "-"])))
def test_any_line_is_understood_or_refused(typed: list[str]) -> None:
    try:
        read(*typed)
    except (UsageError, HelpWanted):
        return
