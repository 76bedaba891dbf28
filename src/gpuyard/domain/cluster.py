"""Machines, their cards, and what has been given to whom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

LABEL_KEY_RULE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
LONGEST_LABEL = 63


class NodeState(StrEnum):
    READY = "ready"
    CORDONED = "cordoned"  # an admin wants no new work here
    LOST = "lost"  # not heard of
    DISK_FULL = "disk_full"  # nearly: what runs goes on, nothing new starts


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator. `trouble` is set when it must not be given out: the holder still on it, or a fault."""

    index: int
    device: str
    model: str
    memory: int = 0
    simulated: bool = False
    path: str = ""  # device node, or the stand-in file of a simulated card
    trouble: str = ""  # empty when well; otherwise a sentence naming the holder or the fault
    holder_pid: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One machine as an engine sees it."""

    name: str
    cpu_milli: int
    memory: int
    cards: tuple[Card, ...] = ()
    state: NodeState = NodeState.READY
    labels: tuple[tuple[str, str], ...] = ()  # the admin's own words for it, sorted by key
    images: tuple[str, ...] = ()  # the full names of those it holds, sorted; work in them starts without fetching

    def cards_of(self, device: str) -> int:
        return sum(1 for card in self.cards if card.device == device)


def is_label_value(text: str) -> bool:
    """In any language, on one line; blanks around it would only be overlooked."""
    return 0 < len(text) <= LONGEST_LABEL and text == text.strip() and text.isprintable()


@dataclass(frozen=True, slots=True)
class CardShare:
    """A card given to a replica, whole (1000) or in part."""

    index: int
    milli: int


@dataclass(frozen=True, slots=True)
class Allotment:
    """What one replica was given, and where. Every amount is settled here; nothing is left open."""

    node: str
    cpu_milli: int
    memory: int
    shm: int
    device: str = ""
    cards: tuple[CardShare, ...] = ()
    simulated: bool = False  # its cards are stand-ins; kept here so that the label outlives the cards

    @property
    def cards_milli(self) -> int:
        return sum(share.milli for share in self.cards)
