"""Job output on a person's terminal: colours and progress bars work, everything else that steers a terminal is shown.

A job may be somebody else's. Its output must not clear the screen, rename the window, write to the clipboard or make
the terminal answer. Piped output is passed on as it is.
"""

from __future__ import annotations

import re

# Colours, erase in line, and moves of the cursor as progress bars make them.
_ALLOWED = re.compile(r"\x1b\[[0-9;]{0,32}[mKABCDG]")
_BEGUN = re.compile(r"\x1b(?:\[[0-9;]{0,32})?\Z")  # may become an allowed one with the next piece
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class TerminalFilter:
    """Fed piece by piece; a sequence that a piece cuts in two is waited for."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> str:
        text = self._rest + text
        cut = _BEGUN.search(text)
        self._rest = text[cut.start() :] if cut else ""
        return _shown(text[: cut.start()] if cut else text)


def _shown(text: str) -> str:
    parts, last = [], 0
    for allowed in _ALLOWED.finditer(text):
        parts += [_CONTROL.sub(_picture, text[last : allowed.start()]), allowed.group()]
        last = allowed.end()
    return "".join(parts) + _CONTROL.sub(_picture, text[last:])


def _picture(match: re.Match[str]) -> str:
    """The control character as a visible one: ESC as ␛."""
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"
