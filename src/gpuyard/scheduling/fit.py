"""Which node takes a replica, and whole gangs: all replicas or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Spec, Together
from gpuyard.scheduling.room import ALONE, Room, Rooms, Stack, Standing
from gpuyard.scheduling.sieve import Sieve, sieve_for

Allotments = dict[tuple[str, int], Allotment]
Allowed = Callable[[Room], bool]
Images = Mapping[str, str]  # role -> the image it runs in
NO_IMAGES: Images = {}

COUNTED_FROM = 30
SEARCH_STEPS = 6000  # roles of different sizes may need a search; after so many offers it counts as not fitting now


@dataclass(frozen=True, slots=True)
class RoleAsk:
    """What one role asks of the cluster, whoever it is."""

    name: str
    replicas: int
    resources: Resources
    sieve: Sieve


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What a workload asks of the cluster. The largest role comes first: it is the hardest to place.

    Compared by identity: the books keep one for all that ask the same.
    """

    roles: tuple[RoleAsk, ...]
    together: Together = Together.ANY
    kind: str = "job"
    pools: tuple[str, ...] = ()  # the parts of the cluster that are open to it; empty: all of it

    @property
    def replicas(self) -> int:
        return sum(role.replicas for role in self.roles)


def ask_of(spec: Spec, group: str, policy: Policy) -> Ask:
    several = sum(role.replicas for role in spec.roles if role.resources.cards) > 1
    apart = several and spec.together is not Together.ONE_NODE
    roles = [
        RoleAsk(role.name, role.replicas, role.resources, sieve_for(role, group, spec.kind.value, policy, apart=apart))
        for role in spec.roles
    ]
    pools = dict.fromkeys([*policy.group_pools.get(group, ()), *policy.kind_pools.get(spec.kind.value, ())])
    return Ask(tuple(sorted(roles, key=_size, reverse=True)), spec.together, spec.kind.value, tuple(pools))


def _size(role: RoleAsk) -> tuple[int, int, int]:
    asked = role.resources
    return (asked.cards.milli if asked.cards else 0, asked.cpu_milli or 0, asked.memory or 0)


def place_gang(
    ask: Ask,
    rooms: Rooms,
    standing: Standing = ALONE,
    within: Mapping[str, int] | None = None,
    images: Images = NO_IMAGES,
) -> Allotments | None:
    """Take room for every replica, or leave the rooms as they were and return None.

    `within`: only nodes whose share of CPU and memory, for all that it leaves open, stays within these amounts.
    `images`: of places that are equally good, those that hold them are taken. They never decide whether there is room.
    """
    small = _small_enough(ask, within) if within else None
    if ask.together is Together.ONE_NODE and ask.replicas > 1:
        return _place_on_one_node(ask, Look(rooms, standing, small), images)
    return _place_all(ask, Look(rooms, standing, small), images)


def _small_enough(ask: Ask, within: Mapping[str, int]) -> Allowed:
    def allowed(room: Room) -> bool:
        shares = [(role.replicas, room.fair_share(role.resources)) for role in ask.roles]
        cpu = sum(replicas * share[0] for replicas, share in shares)
        memory = sum(replicas * share[1] for replicas, share in shares)
        return cpu <= within.get("cpu", cpu) and memory <= within.get("memory", memory)

    return allowed


def give_back(taken: Allotments, rooms: Rooms) -> None:
    for allotment in taken.values():
        rooms.give_back(allotment)


def how_many(stack: Stack, asked: Resources, most: int) -> int:
    """How many such replicas a stack has room for now, at most `most`."""
    room, cards = stack.room, asked.cards
    cpu, memory, _ = room.fair_share(asked)
    most = min(most, room.cpu // cpu if cpu else most, room.memory // memory if memory else most)
    if cards is None:
        return max(0, most)
    if cards.is_share:
        return max(0, min(most, sum(room.cards[i] // cards.milli for i in stack.indices if room.cards[i] > 0)))
    return max(0, min(most, stack.whole // cards.whole))


def least_settled(ask: Ask, empty: Rooms) -> dict[str, int]:
    """The least CPU and memory it can get on any nodes, with what it leaves open settled. `empty`: nothing runs."""
    total = {"cpu": 0, "memory": 0}
    for role in ask.roles:
        stacks = [stack for stack in empty.shelf(role.sieve) if how_many(stack, role.resources, 1)]
        shares = [stack.room.fair_share(role.resources) for stack in stacks]
        total["cpu"] += role.replicas * min((cpu for cpu, _, _ in shares), default=0)
        total["memory"] += role.replicas * min((memory for _, memory, _ in shares), default=0)
    return total


class Look(NamedTuple):
    """Where room is looked for, and for whom."""

    rooms: Rooms
    standing: Standing = ALONE
    allowed: Allowed | None = None  # only there

    def offers(self, role: RoleAsk) -> Iterator[tuple[Stack, Allotment]]:
        """Of all nodes that have room, in the order of the policy."""
        return self._made_by(self.rooms.candidates(role.resources, role.sieve), role)

    def best_offer(self, role: RoleAsk, image: str | None = None) -> Allotment | None:
        """Of the first that has room; or of one that is as good and holds the image."""
        for stack, offer in self.offers(role):
            return (self._as_good_with(image, stack, offer, role) if image else None) or offer
        return None

    def _as_good_with(self, image: str, stack: Stack, offer: Allotment, role: RoleAsk) -> Allotment | None:
        """A share of a card must be of one that has as much left."""
        left = [stack.room.cards[share.index] for share in offer.cards]
        for other, found in self._made_by(self.rooms.like(stack, role.sieve, image), role):
            if [other.room.cards[share.index] for share in found.cards] == left:
                return found
        return None

    def _made_by(self, stacks: Iterable[Stack], role: RoleAsk) -> Iterator[tuple[Stack, Allotment]]:
        asked, allowed, standing = role.resources, self.allowed, self.standing
        for stack in stacks:
            if allowed is None or allowed(stack.room):
                offer = stack.offer(asked, standing, self.rooms.liked(stack, asked))
                if offer is not None:
                    yield stack, offer


def _place_on_one_node(ask: Ask, look: Look, images: Images) -> Allotments | None:
    first = ask.roles[0]
    for stack in [stack for stack, _ in look.offers(first)]:
        taken = place_on(stack.room, ask, look.rooms, look.standing)
        if taken is not None:
            image = images.get(first.name)
            return (_beside_image(taken, image, stack, ask, look) if image else None) or taken
    return None


def _beside_image(taken: Allotments, image: str, stack: Stack, ask: Ask, look: Look) -> Allotments | None:
    """The same on a node that is as good and holds the image; None, and nothing is changed, where there is none."""
    rooms = look.rooms
    give_back(taken, rooms)
    for other in list(rooms.like(stack, ask.roles[0].sieve, image)):
        if look.allowed is None or look.allowed(other.room):
            found = place_on(other.room, ask, rooms, look.standing)
            if found is not None:
                return found
    for allotment in taken.values():
        rooms.take(allotment)
    return None


def place_on(room: Room, ask: Ask, rooms: Rooms, standing: Standing = ALONE) -> Allotments | None:
    """The same, with all replicas in one room."""
    return _place_all(ask, Look(rooms, standing, room.is_same))


def _place_all(ask: Ask, look: Look, images: Images = NO_IMAGES) -> Allotments | None:
    """The best fit for one after the other. Replicas that are alike need no search; roles that differ may."""
    rooms = look.rooms
    if look.allowed is None and any(not _could_fit(role, rooms) for role in ask.roles):
        return None
    taken: Allotments = {}
    used: set[str] = set()
    one = _apart(ask, look, used)
    for role in ask.roles:
        image = images.get(role.name)
        for index in range(role.replicas):
            offer = one.best_offer(role, image)
            if offer is None:
                give_back(taken, rooms)
                if images:
                    return _place_all(ask, look)
                return _search(ask, look) if len(ask.roles) > 1 else None
            rooms.take(offer)
            used.add(offer.node)
            taken[role.name, index] = offer
    return taken


def _could_fit(role: RoleAsk, rooms: Rooms) -> bool:
    """For a large gang, count before trying: a try costs as much as the gang is large."""
    missing = role.replicas
    if missing <= COUNTED_FROM:
        return True
    for stack in rooms.shelf(role.sieve):
        missing -= how_many(stack, role.resources, missing)
        if missing <= 0:
            return True
    return False


def _apart(ask: Ask, look: Look, used: set[str]) -> Look:
    """Where each replica is to have a node of its own, those in use are left out."""
    if ask.together is not Together.SPREAD:
        return look
    only = look.allowed
    return look._replace(allowed=lambda room: room.node.name not in used and (only is None or only(room)))


def _search(ask: Ask, look: Look) -> Allotments | None:
    """Try other nodes for earlier replicas, within a bound."""
    places = [(role, index) for role in ask.roles for index in range(role.replicas)]
    taken: Allotments = {}
    used: set[str] = set()
    rooms, one = look.rooms, _apart(ask, look, used)
    steps = SEARCH_STEPS

    def settle(position: int, least: int) -> bool:
        nonlocal steps
        if position == len(places):
            return True
        role, index = places[position]
        offers = list(islice(one.offers(role), max(0, steps)))
        steps -= len(offers) + 1
        for stack, offer in offers:
            # Replicas that are alike are placed in the order of the stacks: the same set is not tried twice.
            if index > 0 and stack.serial < least:
                continue
            if steps < 0:
                return False
            rooms.take(offer)
            used.add(offer.node)
            taken[role.name, index] = offer
            if settle(position + 1, stack.serial):
                return True
            del taken[role.name, index]
            used.discard(offer.node)
            rooms.give_back(offer)
        return False

    return taken if len(places) <= 200 and settle(0, -1) else None
