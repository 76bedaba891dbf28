"""Which nodes and cards a replica may use at all: its device and models, its pins, and the pools open to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Policy, Pool
from gpuyard.domain.resources import is_model
from gpuyard.domain.workload import RoleSpec, Where

Pools = tuple[Pool, ...] | None  # None: all of the cluster


@dataclass(frozen=True, eq=True)
class Sieve:
    """Everything that decides whether a node will do, whatever is free on it. Requests that share it share a shelf."""

    device: str = ""  # empty: work without cards
    models: tuple[str, ...] = ()
    where: Where = Where()
    group_pools: Pools = None
    kind_pools: Pools = None
    whole: int = 0  # linked chips work together over several nodes only if they are all of each node: so many
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Shelves are looked up by it again and again: the hash is made once.
        fields = (self.device, self.models, self.where, self.group_pools, self.kind_pools, self.whole)
        object.__setattr__(self, "_hash", hash(fields))

    def __hash__(self) -> int:
        return self._hash

    def lets(self, node: Node, model: str) -> bool:
        """May it have cards of this model on this node? The model is empty for work without cards."""
        if self.models and not any(is_model(asked, model) for asked in self.models):
            return False
        return (
            self.pinned_to(node)
            and _is_open(self.group_pools, node, self.device, model)
            and _is_open(self.kind_pools, node, self.device, model)
        )

    def pinned_to(self, node: Node) -> bool:
        if self.where.nodes and node.name not in self.where.nodes:
            return False
        return all(label in node.labels for label in self.where.labels)


def sieve_for(role: RoleSpec, group: str, kind: str, policy: Policy, *, apart: bool = False) -> Sieve:
    """`apart`: it is one of several with cards, which may be on several nodes."""
    cards = role.resources.cards
    return Sieve(
        whole=cards.whole if apart and cards is not None and cards.device in policy.rings else 0,
        device=cards.device if cards else "",
        models=cards.models if cards else (),
        where=role.where,
        group_pools=_pools(policy.group_pools.get(group), policy),
        kind_pools=_pools(policy.kind_pools.get(kind), policy),
    )


def _pools(names: tuple[str, ...] | None, policy: Policy) -> Pools:
    return None if names is None else tuple(policy.pools[name] for name in names if name in policy.pools)


def _is_open(pools: Pools, node: Node, device: str, model: str) -> bool:
    return pools is None or any(_holds(pool, node, device, model) for pool in pools)


def _holds(pool: Pool, node: Node, device: str, model: str) -> bool:
    if pool.nodes and node.name not in pool.nodes:
        return False
    if not all(label in node.labels for label in pool.labels):
        return False
    if not pool.models:
        return True
    if device:
        return any(is_model(known, model) for known in pool.models)
    # Work without cards goes to machines whose cards it might have had, or to machines without any.
    return not node.cards or any(is_model(known, card.model) for known in pool.models for card in node.cards)
