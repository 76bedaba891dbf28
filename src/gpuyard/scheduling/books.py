"""Everything a pass over the queue needs, kept current piece by piece. Answers the same as books made afresh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import First, Policy
from gpuyard.domain.promises import Promise, promise_of
from gpuyard.domain.reasons import Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import RoleSpec, State, Together, Workload
from gpuyard.scheduling import explain
from gpuyard.scheduling.fit import NO_IMAGES, Allotments, Ask, Images, ask_of, give_back, least_settled, place_gang
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.line import Batch, Line
from gpuyard.scheduling.quota import Amounts, Payer, Purse, amounts_of
from gpuyard.scheduling.room import Rooms, Standing
from gpuyard.scheduling.score import in_order
from gpuyard.scheduling.service import NONE, rank
from gpuyard.scheduling.share import Running, rate_of
from gpuyard.scheduling.snapshot import JobName, Person, Snapshot

Shape = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Holding:
    """What one workload holds."""

    payer: Payer
    attempt: int
    allotments: tuple[Allotment, ...]
    amounts: Amounts
    rate: float  # cards, as fair share counts them


class Place(NamedTuple):
    """Room that was taken; or None, and the quota that refuses it if there is room."""

    taken: Allotments | None
    amounts: Amounts
    refusal: Reason | None


class Books:
    """The owner puts and removes workloads. When nodes, groups or the policy change, new books are made."""

    def __init__(
        self,
        nodes: Iterable[Node],
        groups: Mapping[str, Group],
        policy: Policy,
        past: Mapping[Person, PastUse] | None = None,
        run_times: Mapping[JobName, tuple[float, ...]] | None = None,
        typical: tuple[Typical, ...] = (),
    ) -> None:
        self.nodes = in_order(nodes, policy)  # so that no answer depends on how they were listed
        self.groups = groups
        self.policy = policy
        self.past: Mapping[Person, PastUse] = past if past is not None else {}
        self.run_times: Mapping[JobName, tuple[float, ...]] = run_times if run_times is not None else {}
        self.typical = typical  # what is asked for of late: decides only where work goes
        self.rooms = Rooms(self.nodes, policy, typical=typical)
        self.purse = Purse(groups, self.nodes)
        self.line = Line(self.ask_of, self._never, self.rank_of)
        self.holding: dict[str, Workload] = {}
        self.held: dict[str, Holding] = {}
        self.on_node: dict[str, dict[str, None]] = {}  # node -> who holds something there
        self.running: dict[Person, Running] = {}
        self.stopping: dict[str, Workload] = {}
        self.preemptible: dict[str, Workload] = {}  # running work that may be put back into the queue
        self.promised: dict[str, Promise] = {}  # work that moves, and the place that is kept for it
        self.troubled = [room for room in self.rooms if any(card.trouble for card in room.node.cards)]
        self._asks: dict[Shape, Ask] = {}
        self._never_fits: dict[tuple[Ask, str], Reason | None] = {}

    @staticmethod
    def of(snapshot: Snapshot) -> Books:
        books = Books(
            snapshot.nodes, snapshot.groups, snapshot.policy, snapshot.past, snapshot.run_times, snapshot.typical
        )
        for workload in (*snapshot.holding, *snapshot.queue):
            books.put(workload)
        return books

    @cached_property
    def empty(self) -> Rooms:
        """The cluster as if nothing ran and all cards were well."""
        return Rooms(self.nodes, self.policy, empty_and_well=True)

    # --- keeping them ---------------------------------------------------------------------------------------------

    def put(self, workload: Workload) -> None:
        """Any workload in any state; replaces what was known of it."""
        self._note_promise(workload)
        if workload.holds_resources:
            self.line.remove(workload.id)
            self._hold(workload)
        else:
            self._release(workload.id)
            if workload.state is State.QUEUED:
                self.line.put(workload)
            else:
                self.line.remove(workload.id)

    def _note_promise(self, workload: Workload) -> None:
        ending = workload.attempt.ending if workload.attempt is not None else None
        promise = promise_of(workload) if ending is not None else None
        if promise is not None:
            self.promised[workload.id] = promise
        elif workload.id in self.promised:
            del self.promised[workload.id]

    def remove(self, id: str) -> None:
        self.promised.pop(id, None)
        self.line.remove(id)
        self._release(id)

    def _hold(self, workload: Workload) -> None:
        id, payer = workload.id, Payer(workload.group, workload.owner, workload.spec.preemptible)
        held = self.held.get(id)
        if held is None or held.attempt != workload.attempts_made or held.payer != payer:
            self._release(id)
            self._take(workload, payer)
        self.holding[id] = workload
        self.stopping.pop(id, None)
        self.preemptible.pop(id, None)
        if workload.state is State.STOPPING:
            self.stopping[id] = workload
        elif payer.preemptible and workload.state in (State.STARTING, State.RUNNING):
            self.preemptible[id] = workload

    def _take(self, workload: Workload, payer: Payer) -> None:
        attempt = workload.attempt
        allotments = tuple(replica.allotment for replica in attempt.replicas) if attempt else ()
        rate = rate_of(allotments, self.policy.order.cores_per_card)
        held = Holding(payer, workload.attempts_made, allotments, amounts_of(allotments), rate)
        self.held[workload.id] = held
        for allotment in allotments:
            self.rooms.take(allotment)
            self.on_node.setdefault(allotment.node, {})[workload.id] = None
        self.purse.spend(payer, held.amounts)
        for person in ((payer.group, None), (payer.group, payer.owner)):
            running = self.running.get(person)
            if running is None:
                running = self.running[person] = Running()
            running.put(workload.id, rate, attempt.created_at if attempt else workload.submitted_at)

    def _release(self, id: str) -> None:
        held = self.held.pop(id, None)
        if held is None:
            return
        for allotment in held.allotments:
            self.rooms.give_back(allotment)
            self.on_node.get(allotment.node, {}).pop(id, None)
        self.purse.refund(held.payer, held.amounts)
        for person in ((held.payer.group, None), (held.payer.group, held.payer.owner)):
            self.running[person].remove(id)
        del self.holding[id]
        self.stopping.pop(id, None)
        self.preemptible.pop(id, None)

    def renew_images(self, nodes: Iterable[Node]) -> None:
        """The same nodes hold other images now. That changes where work goes, and nothing else."""
        self.nodes = in_order(nodes, self.policy)
        self.rooms.renew_images(self.nodes)

    def renew_typical(self, typical: tuple[Typical, ...]) -> None:
        """Other requests are typical now. That changes where work goes, and nothing else."""
        self.typical = typical
        self.rooms.renew_typical(typical)

    def learn_typical(self, typical: tuple[Typical, ...]) -> None:
        """The same, worked out bit by bit in the passes to come: until then work goes where it would have gone."""
        self.typical = typical
        self.rooms.learn_typical(typical)

    # --- room and quota together ------------------------------------------------------------------------------------

    def place(self, batch: Batch, standing: Standing, images: Images = NO_IMAGES) -> Place:
        """Take room for one of the batch, on nodes where its share of what it leaves open is within its quota."""
        place = self._settled(batch, standing, place_gang(batch.ask, self.rooms, standing, None, images))
        if place.refusal is not None and images:
            return self.place(batch, standing)  # no image is worth a refusal
        left = self.purse.left_to_leave_open(batch.payer) if place.refusal is not None else {}
        if not left:
            return place
        elsewhere = self._settled(batch, standing, place_gang(batch.ask, self.rooms, standing, left))
        return elsewhere if elsewhere.taken is not None else place

    def _settled(self, batch: Batch, standing: Standing, taken: Allotments | None) -> Place:
        """What was left open is settled only when the nodes are known: so the quota is asked once more."""
        if taken is None:
            return Place(None, batch.amounts, None)
        amounts = amounts_of(taken.values())
        refusal = self.purse.refusal(batch.payer, amounts, standing)
        if refusal is not None:
            give_back(taken, self.rooms)
        return Place(taken if refusal is None else None, amounts, refusal)

    def images_of(self, id: str) -> Images:
        """What it runs in, as far as that makes a difference between nodes."""
        roles = self.line.workloads[id].spec.roles
        return {role.name: role.image for role in roles if role.image and self.rooms.held_by(role.image)}

    def images_at_hand(self, id: str, taken: Allotments) -> tuple[str, ...]:
        """Those of them that all nodes hold on which it needs them."""
        images = self.images_of(id)
        held = {image: self.rooms.held_by(image) for image in images.values()}
        for (role, _), allotment in taken.items() if images else ():
            if role in images and allotment.node not in held.get(images[role], ()):
                held.pop(images[role], None)
        return tuple(sorted(held))

    # --- what the line asks ---------------------------------------------------------------------------------------

    def ask_of(self, workload: Workload) -> Ask:
        """One Ask for all that ask the same, so that what is found out for one holds for the others."""
        spec, policy = workload.spec, self.policy
        shape = (
            tuple(_shape(role) for role in spec.roles),
            spec.together if len(spec.roles) > 1 or spec.roles[0].replicas > 1 else Together.ANY,
            policy.group_pools.get(workload.group),
            spec.kind,
        )
        found = self._asks.get(shape)
        if found is None:
            found = self._asks[shape] = ask_of(spec, workload.group, policy)
        return found

    def rank_of(self, workload: Workload, now: float = 0.0) -> float:
        """By what it has been given, or has left; of one that waits it is the same at any time."""
        order = self.policy.order
        return NONE if order.first is First.SHARE else rank(workload, order, now)

    def _never(self, batch: Batch) -> Reason | None:
        """Why no waiting will help; None when it may start some day."""
        return self.never_fits(batch) or self.quota_never(batch)

    def quota_never(self, batch: Batch) -> Reason | None:
        """A limit that is below what it names, or below the least it can get of what it leaves open."""
        named = self.purse.never(batch.payer, batch.amounts)
        if named is not None or not self.purse.left_to_leave_open(batch.payer):
            return named
        return self.purse.never(batch.payer, least_settled(batch.ask, self.empty))

    def never_fits(self, batch: Batch) -> Reason | None:
        ask = batch.ask
        key = (ask, batch.group if batch.group in self.policy.group_pools else "")  # the reason names such a group
        if key not in self._never_fits:
            self._never_fits[key] = explain.never(ask, self.nodes, self.empty, self.policy, batch.group)
        return self._never_fits[key]


def _shape(role: RoleSpec) -> Shape:
    return (role.name, role.replicas, role.resources, role.where)
