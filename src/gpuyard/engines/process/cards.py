"""Which cards may be given out: those that no process holds which they were not given to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuyard.devices.holders import Holder, find_holders
from gpuyard.devices.watch import PATIENCE_SECONDS, Held, HolderWatch, Look
from gpuyard.domain.cluster import Card
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.process.replicas import CardName, Replicas
from gpuyard.engines.seam import HeldCard, HolderLook

OLDEST_LOOK_SECONDS = 300.0
BEING_LOOKED_AT = "it has just been given back, and who may still hold it is being looked at"
NOT_LOOKED_AT = "who holds it could not be found out for some minutes: a process has very many files open"


class CardWatch:
    def __init__(self, replicas: Replicas, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._replicas = replicas
        self._watch = HolderWatch(self._find_strangers, patience_seconds)
        self._lock = threading.Lock()
        self._given: dict[ReplicaId, frozenset[CardName]] = dict(replicas.cards_given())
        self._given_back: dict[CardName, float] = {}
        self._names: Mapping[str, CardName] = {}  # by path

    def note_given(self, id: ReplicaId, cards: Sequence[Card]) -> None:
        """From now on its end is waited for. It must have its mark of life already."""
        if cards:
            with self._lock:
                self._given[id] = frozenset((card.device, card.index) for card in cards)

    def name_holders(self, cards: Sequence[Card]) -> list[Card]:
        """A card still open in a process that it was not given to must not be given out. Nor one that was given back
        after the last finished look began: that look cannot know who kept it."""
        paths = [card.path for card in cards if card.path]
        if not paths:
            return list(cards)
        self._names = {card.path: (card.device, card.index) for card in cards if card.path}
        self._note_given_back()
        look = self._watch.look(paths)
        return [self._judge(card, look) if card.path and not card.trouble else card for card in cards]

    def holders(self, node: str) -> HolderLook | None:
        """Work of ours that holds what it was not given, as the last finished look found it."""
        look = self._watch.last
        if look is None:
            return None
        held: dict[ReplicaId, list[HeldCard]] = {}
        names = self._names
        for path in sorted(look.held.keys() & names.keys()):
            for holder in look.held[path]:
                if holder.replica is not None:
                    card = HeldCard(node, *names[path], holder.pid, holder.command)
                    held.setdefault(holder.replica, []).append(card)
        return HolderLook(look.began, held)

    def close(self) -> None:
        self._watch.close()

    def _note_given_back(self) -> None:
        with self._lock:
            ended = [id for id in self._given if not self._replicas.may_live(id)]
            now = time.monotonic()
            for id in ended:
                self._given_back.update((name, now) for name in self._given.pop(id))

    def _judge(self, card: Card, look: Look | None) -> Card:
        if look is None or look.began < self._given_back.get((card.device, card.index), 0.0):
            return replace(card, trouble=BEING_LOOKED_AT)
        strangers = look.held.get(card.path, ())
        if strangers:
            return replace(card, trouble=f"held by {strangers[0]}", holder_pid=strangers[0].pid)
        if time.monotonic() - look.began > OLDEST_LOOK_SECONDS:
            return replace(card, trouble=NOT_LOOKED_AT)
        return card

    def _find_strangers(self, paths: Sequence[str]) -> Held:
        """In the watch's own thread. Who belongs to whom is asked after who holds what: processes come and go."""
        names = self._names
        found = find_holders(paths)
        owners = self._replicas.pids_by_card() if found else {}
        known = {path: held for path, held in found.items() if path in names}
        strangers = {path: _strangers(held, owners.get(names[path], set())) for path, held in known.items()}
        works = self._replicas.replicas_of({holder.pid for held in strangers.values() for holder in held})
        return {path: [replace(one, replica=works.get(one.pid)) for one in held] for path, held in strangers.items()}


def _strangers(held: Sequence[Holder], owners: set[int]) -> list[Holder]:
    return [holder for holder in held if holder.pid not in owners and os.path.exists(f"/proc/{holder.pid}")]
