"""What the parts of the porter share: the loop, who waits for which child, and what the workload is like."""

from __future__ import annotations

import os

from . import shells
from .loop import Loop
from .spawning import CannotStart

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_MOST_TEXT = 4096


class BadRequest(CannotStart):
    """It was asked in a way that cannot be meant."""

    def __init__(self, detail: str) -> None:
        super().__init__("bad_request", detail)


class House:
    def __init__(self, request: Mapping[str, Any]) -> None:
        self.loop = Loop("yard porter")
        self.door: str = request["door"]
        self.cwd: str = request["cwd"]
        self.env: dict[str, str] = dict(request.get("env") or {})
        self._shell_env: dict[str, str] = dict(request.get("shell_env") or {})
        self._waiting: dict[int, Callable[[int], None]] = {}

    def when_ended(self, pid: int, call: Callable[[int], None]) -> None:
        self._waiting[pid] = call

    def tell_ended(self, ended: Mapping[int, int]) -> None:
        for pid, code in ended.items():
            call = self._waiting.pop(pid, None)
            if call is not None:
                self.loop.guard(lambda call=call, code=code: call(code))  # type: ignore[misc]

    def environment(self, message: Mapping[str, Any], term: str | None = None) -> dict[str, str]:
        return shells.environment(self.env, {**self._shell_env, **texts_by_name(message.get("env"))}, term)

    def folders(self, message: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
        """Where a program starts: where it was asked for, or the first of the usual places that can be entered."""
        asked = message.get("cwd")
        if asked is None:
            return [folder for folder in (self.cwd, env.get("HOME"), "/") if folder]
        return [os.path.join(env.get("HOME") or self.cwd, text(asked, "cwd"))]

    def program(self, message: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
        """The arguments given; without them the person's shell, with a line to run if there is one."""
        argv, line = message.get("argv"), message.get("line")
        if argv:
            return texts(argv, "argv")
        return [*shells.shell(env), *(["-c", plain(line, "line")] if line is not None else [])]


def text(value: object, name: str) -> str:
    """A short text without zeros."""
    if len(plain(value, name)) > _MOST_TEXT:
        raise BadRequest(f"{name} is too long")
    return str(value)


def plain(value: object, name: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise BadRequest(f"{name} is not a text")
    try:
        os.fsencode(value)
    except UnicodeEncodeError as problem:
        raise BadRequest(f"{name} is not a text") from problem
    return value


def number(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise BadRequest(f"{name} is not a number from {least} to {most}")
    return value


def texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise BadRequest(f"{name} is not a list of texts")
    return [plain(item, name) for item in value]


def texts_by_name(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or any("=" in key or not key for key in value):
        raise BadRequest("env is not an object of texts")
    return {plain(key, "env"): plain(item, "env") for key, item in value.items()}
