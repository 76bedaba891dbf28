"""English for cards that are held by work they were not given to."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template


def _keeps_card(facts: Facts) -> str:
    bound = " within {seconds:seconds}, or it is ended" if facts.get("seconds") else ", or an admin may end it"
    return (
        "It holds what it was not given[ (in {replica})]: process {pid} ({command}) has the device of {device} card "
        "{cards:list} on {node} open, so nobody can be given that. Close it" + bound + "."
    )


CARDS: Mapping[Code, Template] = {
    Code.KEEPS_CARD: _keeps_card,
    Code.KEPT_CARD: (
        "Ended: it held what it was not given[ (in {replica})]. Process {pid} ({command}) had the device of {device} "
        "card {cards:list} on {node} open[ though that had been held for {seconds:seconds}], so nobody could be given "
        "that. Ask for the cards it uses, and do not pass open devices on to other jobs."
    ),
}
