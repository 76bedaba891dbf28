"""What stands before the @: `user`, `user+environment`, `user+id` or `user+id.worker-1`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuyard.domain.workload import ID_RULE, WORKPLACE_NAME_RULE

_REPLICA = re.compile(r"^[a-z][a-z0-9]{0,15}-(0|[1-9][0-9]{0,5})\Z")
LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Address:
    """Who comes, and where to. `place` None: to the only environment they have running."""

    user: str
    place: str | None

    @property
    def shown_place(self) -> str:
        """Fit to be told to a person."""
        return "".join(letter for letter in self.place or "" if letter.isprintable())[:LONGEST_SHOWN]


@dataclass(frozen=True, slots=True)
class Place:
    """What the part after the + can mean; None: it cannot mean that."""

    environment: str | None
    workload: str | None
    replica: str | None = None


def read_address(text: str) -> Address:
    """Cut at the first +, which no user's name has: whatever follows never changes who it is."""
    user, plus, place = text.partition("+")
    return Address(user, place if plus else None)


def read_place(text: str) -> Place:
    id, dot, replica = text.partition(".")
    is_id = bool(ID_RULE.match(id)) and (not dot or bool(_REPLICA.match(replica)))
    return Place(
        environment=text if WORKPLACE_NAME_RULE.match(text) else None,
        workload=id if is_id else None,
        replica=replica if is_id and dot else None,
    )
