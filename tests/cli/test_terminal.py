"""Job output on a terminal: colours stay, what steers the terminal is shown instead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.cli.terminal import TerminalFilter


def shown(*pieces: str) -> str:
    screen = TerminalFilter()
    return "".join(screen.feed(piece) for piece in pieces)


@pytest.mark.parametrize(
    "text",
    [
        "plain\n",
        "\x1b[31mred\x1b[0m\n",
        "\r 50%|#####   |\x1b[K",
        "\x1b[A\r100%\n",
        "tab\there",
        "中文\n",
        "back\bspace",
    ],
)
def test_colours_and_progress_bars_are_passed_on(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "as_shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b[2J", "␛[2J"),
        ("\x1b]0;title\x1b\\", "␛]0;title␛\\"),
        ("\x1b[6n", "␛[6n"),
        ("\x9b2J", "\ufffd2J"),
        ("a\x00b\x7fc", "a␀b\ufffdc"),
    ],
)
def test_what_steers_a_terminal_is_shown(text: str, as_shown: str) -> None:
    assert shown(text) == as_shown


@settings(deadline=None)
@given(st.text(st.sampled_from("\x1b[]0;12mKJHab\x07\r\n\x9b"), max_size=40), st.integers(0, 40))
def test_cutting_the_text_anywhere_changes_nothing(text: str, cut: int) -> None:
    end = "\n"
    assert shown(text[:cut], text[cut:], end) == shown(text + end)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_escape_gets_through_but_the_allowed_ones(text: str) -> None:
    out = shown(text, "\n")
    for position, character in enumerate(out):
        if character == "\x1b":
            assert out[position + 1] == "["
        assert character in "\x1b\t\n\r\b" or ord(character) >= 0x20
