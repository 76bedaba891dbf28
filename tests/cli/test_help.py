"""Help is in one language, whole."""

from __future__ import annotations

import pytest
from tests.cli.yard import Yard

COMMANDS = [(), ("ledger",), ("policy", "set"), ("env", "create"), ("nodes",)]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_stands_around_chinese_help_is_chinese_too(yard: Yard, command: tuple[str, ...]) -> None:
    told = yard.good(*command, "--help", YARD_LANG="zh")
    assert told.startswith("用法：yard")
    assert "选项：" in told
    assert "显示此帮助并退出。" in told
    assert "Show this" not in told


@pytest.mark.parametrize("command", COMMANDS)
def test_english_help_stays_as_it_was(yard: Yard, command: tuple[str, ...]) -> None:
    told = yard.good(*command, "--help", YARD_LANG="en")
    assert told.startswith("Usage: yard")
    assert "Options:" in told
    assert "Show this message and exit." in told


def test_an_import_has_its_examples_below_each_other(yard: Yard) -> None:
    told = yard.good("import", "--help", YARD_LANG="en")
    assert "\n    kubectl get vcjob x -o yaml | yard import -" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sho",), "没有命令 'sho'。 您是不是想用 'show'？"),
        (("ls", "--mime"), "没有选项 '--mime'。"),
        (("why",), "缺少参数 'ID'。"),
        (("what-if",), "缺少选项 '--policy'。"),
        (("logs", "a", "b", "c"), "多出的参数：b c"),
        (("ls", "-o", "xml"), "'xml' 不在可选值之中：'table', 'json'。"),
        (("ls", "--limit", "0"), "0 不在范围 x>=1 内。"),
        (("run", "--cards"), "选项 '--cards' 需要一个值。"),
    ],
)
def test_what_is_not_understood_is_told_in_chinese_too(yard: Yard, words: tuple[str, ...], told: str) -> None:
    said = yard.run(*words, YARD_LANG="zh")
    assert said.code == 2
    assert told in said.err
    assert "错误：" in said.err
    assert "Error" not in said.err
    assert "Try '" not in said.err
