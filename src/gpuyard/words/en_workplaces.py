"""English for dev environments."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template, by_name

_TOOLS = {"lab": "JupyterLab", "ide": "VS Code"}


def _no_toolbox(facts: Facts) -> str:
    what = _TOOLS.get(str(facts.get("what")), "`{what}`")
    return (
        f"{what} comes from the toolbox, and the toolbox of this server does not have it. An admin builds it on the "
        "server's machine: `yard toolbox build`.[ Without it there are `yard shell {name}` and "
        "`yard env open {name} terminal`.]"
    )


WORKPLACES: Mapping[Code, Template] = {
    Code.NO_TOOLBOX: _no_toolbox,
    Code.START_ASKED: "To be started[, asked for by {by}].",
    Code.ASKED_ANEW: "It asks for something else from now on[: {changes}].",
    Code.IDLE_SOON: by_name(
        "Nobody has used it for a while: in {seconds:seconds} it is stopped[ (idle for {idle_seconds:seconds})]. "
        "Work in it, or `yard env timer NAME --idle off`, to keep it running."
    ),
    Code.TIMER_SOON: by_name("Its timer stops it in {seconds:seconds}. `yard env timer NAME +1h` gives it more time."),
    Code.IDLE: by_name(
        "Stopped: nobody used it[ for {idle_seconds:seconds}]. What is installed in it is kept; "
        "`yard env start NAME` starts it again."
    ),
    Code.TIMER: by_name(
        "Stopped by its timer. What is installed in it is kept; `yard env start NAME` starts it again."
    ),
    Code.RESTS: by_name("Stopped[ by {by}]. What is installed in it is kept; `yard env start NAME` starts it again."),
    Code.LEFT: by_name("It ended by itself. What is installed in it is kept; `yard env start NAME` starts it again."),
}
