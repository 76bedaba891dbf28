"""How things look: aligned, harmless, and in both languages."""

from __future__ import annotations

import string

import pytest

from gpuyard.cli import help_phrases, phrases
from gpuyard.cli.job_table import HEADINGS, LEAST_REASON, narrowed, short_reason
from gpuyard.cli.output import GAP, cut, fitted, number, print_table, printable, short_time, width
from gpuyard.cli.run import job_of
from gpuyard.cli.shared import limits
from gpuyard.cli.watch import LabelledLines, Screen
from gpuyard.domain.reasons import Code


def test_columns_line_up_with_chinese_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "STATE", "REASON"], [["训练", "queued", "等待 8 张卡"], ["train", "running", ""]])
    lines = capsys.readouterr().out.splitlines()
    starts = [width(line[: line.index(word)]) for line, word in zip(lines, ("STATE", "queued", "running"), strict=True)]
    assert len(set(starts)) == 1


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["A", "REASON"], [["x", "long " * 100]])
    assert "long " * 99 in capsys.readouterr().out


@pytest.mark.parametrize("widths", [[10, 12, 300], [10, 63, 32, 300], [10, 63, 5], [5], [90], [9] * 30])
def test_a_table_is_cut_to_the_terminal_as_far_as_it_can_be_read(widths: list[int]) -> None:
    cut_to = fitted(widths, 80)
    fits = sum(cut_to) + len(GAP) * (len(widths) - 1) <= 80
    assert fits or max(cut_to) <= 8
    assert all(new <= old for new, old in zip(cut_to, widths, strict=True))


def test_ids_are_whole_and_reasons_readable_in_eighty_columns() -> None:
    rows = [
        ["a123456789", "train-large-model", "queued", "zelda", "vision", "8 nvidia*", "3d4h", "x" * 200],
        ["b123456789", "eval", "running", "mira", "vision", "-", "7s", "Running, attempt 1."],
    ]
    headings, kept = narrowed(list(HEADINGS), rows, 80)
    assert "GROUP" not in headings
    assert "OWNER" in headings
    widths = [max(map(width, column)) for column in zip(headings, *kept, strict=True)]
    fit = fitted(widths, 80, whole=1, least_last=LEAST_REASON)
    assert fit[0] == 10
    assert fit[-1] >= LEAST_REASON
    assert [row[headings.index("CARDS")] for row in kept] == ["8*", "-"]
    assert sum(fit) + len(GAP) * (len(fit) - 1) <= 80
    assert narrowed(list(HEADINGS), rows, 300) == (HEADINGS, rows)


def test_every_kind_of_reason_to_wait_has_a_short_form_that_fits() -> None:
    for code in (code for code in Code if code.value.startswith("waiting.") and code is not Code.NEW):
        short = short_reason(code.value, "the whole sentence")
        assert short != "the whole sentence", code
        assert width(short) <= LEAST_REASON


@pytest.mark.parametrize(("text", "size", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("等待中", 5, "等待…")])
def test_cutting_counts_columns(text: str, size: int, shown: str) -> None:
    assert cut(text, size) == shown


def test_other_peoples_words_cannot_drive_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\nc") == "a [2Jb   c"


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, "0s"), (65, "1m5s"), (7200, "2h"), (90061, "1d1h"), (-3, "0s")])
def test_times_are_short(seconds: float, shown: str) -> None:
    assert short_time(seconds) == shown


def test_numbers_have_no_idle_zeros() -> None:
    assert [number(value) for value in (2, 0.5, 1.25, 100, None)] == ["2", "0.5", "1.25", "100", ""]


@pytest.mark.parametrize("table", [phrases._TABLE, help_phrases.HELP])
def test_every_phrase_is_there_in_both_languages_with_the_same_facts(table: dict[str, tuple[str, str]]) -> None:
    for key, (english, chinese) in table.items():
        facts = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
        assert facts[0] == facts[1], key
        assert english, key
        assert chinese, key


def test_replicas_share_the_screen_line_by_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    screen = Screen()
    first, second = LabelledLines(screen, "worker-0"), LabelledLines(screen, "worker-1")
    first.write("one\ntw")
    second.write("10%\r50%\r100%\r\n")
    first.write("o\n")
    second.write("no end of line")
    second.finish()
    assert capfdbinary.readouterr().out.decode().splitlines() == [
        "worker-0 | one",
        "worker-1 | 100%",
        "worker-0 | two",
        "worker-1 | no end of line",
    ]


def test_a_command_line_becomes_a_job() -> None:
    asked = {"cards": "0.5", "cpu": "500m", "memory": "16G", "replicas": 2, "name": None, "priority": "nan"}
    job = job_of(("python", "train.py", "--lr", "0.1"), {"A": "b"}, asked)
    assert job == {
        "cards": 0.5,
        "cpu": "500m",
        "memory": "16G",
        "replicas": 2,
        "priority": "nan",
        "command": ["python", "train.py", "--lr", "0.1"],
        "env": {"A": "b"},
    }
    assert job_of(("echo hi | wc",), {}, {})["command"] == "echo hi | wc"
    assert job_of(("nvidia-smi",), {}, {})["command"] == ["nvidia-smi"]


def test_limits_are_read_and_taken_away() -> None:
    assert limits("nvidia=8, cpu=64,memory=none,ascend=") == {
        "nvidia": "8",
        "cpu": "64",
        "memory": None,
        "ascend": None,
    }
