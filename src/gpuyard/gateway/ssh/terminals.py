"""The modes of a terminal, as SSH numbers them. Standard library only: the broker uses this too."""

from __future__ import annotations

import termios

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from collections.abc import Mapping

# The numbers of RFC 4254, section 8, and what they are called here. What is not listed stays as the kernel has it.
_CHARACTERS = {1: termios.VINTR, 2: termios.VQUIT, 3: termios.VERASE, 4: termios.VKILL, 5: termios.VEOF}
_IN, _OUT, _LOCAL, _CC = 0, 1, 3, 6  # places in what tcgetattr gives
_FLAGS = {
    30: (_IN, termios.IGNPAR),
    36: (_IN, termios.ICRNL),
    38: (_IN, termios.IXON),
    39: (_IN, termios.IXANY),
    42: (_IN, 0o40000),  # IUTF8, so that a whole character is erased
    50: (_LOCAL, termios.ISIG),
    51: (_LOCAL, termios.ICANON),
    53: (_LOCAL, termios.ECHO),
    54: (_LOCAL, termios.ECHOE),
    55: (_LOCAL, termios.ECHOK),
    59: (_LOCAL, termios.IEXTEN),
    70: (_OUT, termios.OPOST),
    72: (_OUT, termios.ONLCR),
}
_NO_CHARACTER = 255


def set_modes(fd: int, modes: Mapping[int, int]) -> None:
    """As the visitor's own terminal is set, as far as known here."""
    try:
        now = termios.tcgetattr(fd)
        for number, value in modes.items():
            if number in _CHARACTERS:
                now[_CC][_CHARACTERS[number]] = bytes([value if 0 <= value < _NO_CHARACTER else 0])
            elif number in _FLAGS:
                place, flag = _FLAGS[number]
                now[place] = now[place] | flag if value else now[place] & ~flag
        termios.tcsetattr(fd, termios.TCSANOW, now)
    except (termios.error, OSError):  # it may have just ended
        return
