"""English for dev environments."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Template

WORKPLACES: Mapping[Code, Template] = {
    Code.START_ASKED: "To be started[, asked for by {by}].",
    Code.ASKED_ANEW: "It asks for something else from now on[: {changes}].",
    Code.IDLE_SOON: (
        "Nobody has used it for a while: in {seconds:seconds} it is stopped[ (idle for {idle_seconds:seconds})]. "
        "Work in it, or `yard env timer NAME --idle off`, to keep it running."
    ),
    Code.TIMER_SOON: "Its timer stops it in {seconds:seconds}. `yard env timer NAME +1h` gives it more time.",
    Code.IDLE: (
        "Stopped: nobody used it[ for {idle_seconds:seconds}]. What is installed in it is kept; "
        "`yard env start NAME` starts it again."
    ),
    Code.TIMER: "Stopped by its timer. What is installed in it is kept; `yard env start NAME` starts it again.",
    Code.RESTS: "Stopped[ by {by}]. What is installed in it is kept; `yard env start NAME` starts it again.",
    Code.LEFT: "It ended by itself. What is installed in it is kept; `yard env start NAME` starts it again.",
}
