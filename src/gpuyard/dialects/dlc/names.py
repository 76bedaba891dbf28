"""Names of jobs. dlc takes almost any, such as `Infer[llama-7b/ARC_c]`; ours are plainer. Both are kept."""

from __future__ import annotations

import re

LONGEST = 512
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_UNFIT_AT_FRONT = "._-"
_LONGEST_HERE = 63
NAMELESS = "job"


def plain_name(name: str) -> str:
    """As it can be called here: what our names cannot have is replaced, and the rest cut off. Ours stay as they are."""
    return replaced(name).lstrip(_UNFIT_AT_FRONT)[:_LONGEST_HERE] or NAMELESS


def replaced(text: str) -> str:
    """A piece of a name as it stands in the name here."""
    return _ODD.sub("-", text)


def is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST and name.isprintable()
