"""What click itself writes, around our help and when it does not understand, in Chinese as well."""

from __future__ import annotations

import gettext
from collections.abc import Iterable, Iterator

import click

from gpuyard.cli.phrases import LANGUAGE

_CHINESE = {
    "Options": "选项",
    "Commands": "命令",
    "Show this message and exit.": "显示此帮助并退出。",
    "Show the version and exit.": "显示版本并退出。",
    "Aborted!": "已中止。",
    "Error: {message}": "错误：{message}",
    "Try '{command} {option}' for help.": "用 {command} {option} 查看帮助。",
    "Did you mean {possibility}?": "您是不是想用 {possibility}？",
    "(Did you mean one of: {possibilities}?)": "您是不是想用其中之一：{possibilities}？",
    "No such command {name!r}.": "没有命令 {name!r}。",
    "No such option {name!r}.": "没有选项 {name!r}。",
    "Missing command.": "缺少命令。",
    "Missing argument": "缺少参数",
    "Missing option": "缺少选项",
    "Missing parameter": "缺少参数",
    "Got unexpected extra argument ({args})": "多出的参数：{args}",
    "Got unexpected extra arguments ({args})": "多出的参数：{args}",
    "Option {name!r} requires an argument.": "选项 {name!r} 需要一个值。",
    "Option {name!r} requires {nargs} arguments.": "选项 {name!r} 需要 {nargs} 个值。",
    "Option {name!r} does not take a value.": "选项 {name!r} 不接受值。",
    "Argument {name!r} takes {nargs} values.": "参数 {name!r} 需要 {nargs} 个值。",
    "Invalid value: {message}": "值无效：{message}",
    "Invalid value for {param_hint}: {message}": "{param_hint} 的值无效：{message}",
    "Choose from:\n\t{choices}": "可选：\n\t{choices}",
    "{value!r} is not {choice}.": "{value!r} 不是 {choice}。",
    "{value!r} is not one of {choices}.": "{value!r} 不在可选值之中：{choices}。",
    "{value!r} is not a valid {number_type}.": "{value!r} 不是有效的数。",
    "{value} is not in the range {range}.": "{value} 不在范围 {range} 内。",
    "{value!r} is not a valid boolean. Recognized values: {states}": "{value!r} 不是“是”或“否”，可用：{states}",
    "file": "文件",
    "directory": "目录",
    "path": "路径",
    "{name} {filename!r} does not exist.": "{name} {filename!r} 不存在。",
    "{name} {filename!r} is a file.": "{name} {filename!r} 是文件。",
    "{name} {filename!r} is a directory.": "{name} {filename!r} 是目录。",
    "{name} {filename!r} is not readable.": "{name} {filename!r} 不可读。",
    "{name} {filename!r} is not writable.": "{name} {filename!r} 不可写。",
    "Could not open file {filename!r}: {message}": "无法打开文件 {filename!r}：{message}",
    "default: {default}": "默认：{default}",
}


class _Formatter(click.HelpFormatter):
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, "用法：" if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{_CHINESE.get(heading, heading)}：\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(name, _CHINESE.get(text, text)) for name, text in rows], col_max, col_spacing)


class _Context(click.Context):
    formatter_class = _Formatter


def frame(command: click.Command) -> None:
    """This command and all below it speak the chosen language."""
    if LANGUAGE == "zh":
        # click asks gettext for everything it says. A catalogue of gettext would have to be a file of its own format,
        # and is chosen by other rules than our language is.
        gettext.dgettext = _in_chinese
        gettext.dngettext = lambda domain, msgid1, msgid2, n: _in_chinese(domain, msgid1 if n == 1 else msgid2)
        for one in _all(command):
            one.context_class = _Context


def show_mistake(error: click.ClickException) -> None:
    """What is missing is told by click with a full stop that it does not ask gettext for."""
    if LANGUAGE == "zh" and isinstance(error, click.MissingParameter):
        error = click.UsageError(error.format_message().replace("'.", "'。", 1), error.ctx)
    error.show()


def _in_chinese(domain: str, message: str) -> str:
    return _CHINESE.get(message, message)


def _all(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _all(below)
