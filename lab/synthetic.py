"""Clusters and work that are made up, by a seed: the same seed gives the same world on every machine.

What real clusters have in common: a few people bring most of the work, run times go over many orders of magnitude, most
work is small and most card-time is in large work, people come by day and in bursts of work that is alike.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import DAY, HOUR
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Together, Workload
from gpuyard.rehearsal import Arrival

Chance = random.Random


@dataclass(frozen=True)
class Kind:
    """Machines that are alike."""

    count: int
    cards: int = 8
    model: str = "NVIDIA A100-SXM4-80GB"
    memory: int = 80  # GiB a card
    cores: int = 12  # a card
    device: str = "nvidia"


SMALL = (Kind(8), Kind(4, model="NVIDIA V100-SXM2-32GB", memory=32), Kind(2, 4, "NVIDIA T4", 16, 16))
NPUS = (Kind(8, model="Ascend 910B", memory=64, device="ascend"),)


def nodes(kinds: Sequence[Kind] = SMALL) -> tuple[Node, ...]:
    made = []
    for kind in kinds:
        short = kind.model.replace("NVIDIA ", "").split("-")[0].split(" ")[-1].lower()
        for number in range(1, kind.count + 1):
            cards = tuple(
                Card(index, kind.device, kind.model, kind.memory * GIB, simulated=True) for index in range(kind.cards)
            )
            cores, memory = kind.cores * kind.cards * 1000, 2 * kind.memory * kind.cards * GIB
            made.append(Node(f"{short}-{number:03d}", cores, memory, cards))
    return tuple(made)


USUAL_SIZES: Mapping[float, float] = {
    0.25: 4.0, 0.5: 8.0, 1.0: 50.0, 2.0: 12.0, 4.0: 12.0, 8.0: 10.0, 16.0: 3.0, 32.0: 1.0
}  # fmt: skip


@dataclass(frozen=True)
class Habit:
    """How people work. Parts are of one."""

    groups: int = 4
    people: int = 24
    activity: float = 1.2  # of the n-th person: 1 / n to this power (Zipf)
    load: float = 0.8  # of all card-time, on average
    median: float = 1800.0  # seconds of run time
    wide: float = 2.0  # spread of its logarithm
    longest: float = 7 * DAY
    sizes: Mapping[float, float] = field(default_factory=lambda: USUAL_SIZES)  # cards -> how often; many: a gang
    models: float = 0.2  # asks for a model by name
    together: float = 0.1  # of the small gangs: on one machine
    preemptible: float = 0.3
    limited: float = 0.5  # says how long at most, generously
    bursts: float = 0.3  # comes as one of many that are alike
    burst: int = 20  # so many, on average
    night: float = 0.25  # how busy the night is beside the day
    weekend: float = 0.5


def groups(habit: Habit, cards: int, *, guaranteed: float = 0.5) -> dict[str, Group]:
    """Half of the cards are guaranteed, to all groups alike, unless said otherwise."""
    each = int(cards * guaranteed / habit.groups) * WHOLE_CARD
    names = [f"team{number}" for number in range(1, habit.groups + 1)]
    return {name: Group(name, (Quota(name, "nvidia", guaranteed=each),) if each else ()) for name in names}


def work(seed: int, cluster: Sequence[Node], habit: Habit, days: float = 30.0) -> list[Arrival]:
    """What comes in so many days, by the time it comes."""
    chance = Chance(f"work {seed}")
    cards = [card for node in cluster for card in node.cards]
    wanted = habit.load * len(cards) * days * DAY
    made: list[Arrival] = []
    for likeness in _likenesses(chance, cluster, habit):
        start = _moment(chance, habit, days)
        for _ in range(likeness.times):
            arrival = likeness.arrival(chance, habit, f"s{len(made):09d}", min(days * DAY, start))
            made.append(arrival)
            wanted -= arrival.seconds * likeness.cards
            start += chance.expovariate(1 / 60.0)
        if wanted <= 0:
            break
    made.sort(key=lambda arrival: (arrival.workload.submitted_at, arrival.workload.id))
    return made


@dataclass(frozen=True)
class Likeness:
    """Work that is alike: of one person, with one name, and run times that are close to each other."""

    owner: str
    group: str
    spec: Spec
    cards: float
    seconds: float
    times: int

    def arrival(self, chance: Chance, habit: Habit, id: str, at: float) -> Arrival:
        seconds = round(min(habit.longest, max(1.0, self.seconds * math.exp(chance.gauss(0.0, 0.3)))), 1)
        spec = self.spec
        if spec.max_seconds is not None and seconds > spec.max_seconds:
            seconds = spec.max_seconds
        return Arrival(Workload(id, self.owner, self.group, spec, round(at, 1)), seconds)


def _likenesses(chance: Chance, cluster: Sequence[Node], habit: Habit) -> Iterator[Likeness]:
    """Without end."""
    people = [(f"user{n:02d}", f"team{(n - 1) % habit.groups + 1}") for n in range(1, habit.people + 1)]
    often = [1.0 / n**habit.activity for n in range(1, habit.people + 1)]
    models: dict[str, int] = {}  # the most cards of it on one machine
    for node in cluster:
        for model, count in Counter(card.model for card in node.cards).items():
            models[model] = max(count, models.get(model, 0))
    device = next((card.device for node in cluster for card in node.cards), "nvidia")
    largest = max((len(node.cards) for node in cluster), default=1)
    there = sum(len(node.cards) for node in cluster)
    sizes = {size: part for size, part in habit.sizes.items() if size <= there / 2}
    number = 0
    while True:
        number += 1
        owner, group = chance.choices(people, often)[0]
        size = chance.choices(list(sizes), list(sizes.values()))[0]
        seconds = min(habit.longest, habit.median * math.exp(chance.gauss(0.0, habit.wide)))
        times = 1 + int(chance.expovariate(1 / habit.burst)) if chance.random() < habit.bursts else 1
        fitting = [model for model, count in models.items() if size <= count]
        asked = (chance.choice(fitting),) if fitting and chance.random() < habit.models else ()
        spec = _spec(chance, habit, f"{owner}-{number % 40}", size, seconds, largest, device, asked)
        yield Likeness(owner, group, spec, size, seconds, times)


def _spec(
    chance: Chance,
    habit: Habit,
    name: str,
    size: float,
    seconds: float,
    largest: int,
    device: str,
    models: tuple[str, ...],
) -> Spec:
    replicas = max(1, math.ceil(size / largest))
    if replicas == 1 and size > 1 and chance.random() < 0.2:
        replicas = int(size)  # one card each
    each = max(1, round(size / replicas * WHOLE_CARD))
    role = RoleSpec("worker", ("train",), replicas, Resources(cards=Cards(device, each, models)))
    spec = Spec(name, (role,), preemptible=chance.random() < habit.preemptible)
    if 1 < replicas <= largest and size <= largest and chance.random() < habit.together:
        spec = replace(spec, together=Together.ONE_NODE)
    if chance.random() < habit.limited:
        spec = replace(spec, max_seconds=math.ceil(seconds * chance.choice((1.5, 2, 4)) / 600) * 600.0)
    return spec


def _moment(chance: Chance, habit: Habit, days: float) -> float:
    """By day more than by night, from Monday to Friday more than at the weekend."""
    while True:
        at = chance.random() * days * DAY
        hour, day = at % DAY / HOUR, int(at / DAY) % 7
        busy = (1.0 if 8 <= hour < 20 else habit.night) * (habit.weekend if day >= 5 else 1.0)
        if chance.random() < busy:
            return at
