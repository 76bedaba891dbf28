"""A policy after somebody it names is gone, or one group has become part of another."""

from __future__ import annotations

from dataclasses import replace

from gpuyard.domain.policy import Policy


def forget_group(policy: Policy, group: str) -> Policy:
    left = {name: pools for name, pools in policy.group_pools.items() if name != group}
    return replace(policy, group_pools=left)


def forget_person(policy: Policy, person: str) -> Policy:
    left = tuple(name for name in policy.order.people if name != person)
    return replace(policy, order=replace(policy.order, people=left))


def merge_groups(policy: Policy, source: str, target: str) -> Policy:
    """A target that is kept to some pools stays so and gets those of the source; one that may use all still may."""
    own, theirs = policy.group_pools.get(target), policy.group_pools.get(source, ())
    merged = dict(forget_group(policy, source).group_pools)
    if own is not None:
        merged[target] = (*own, *(pool for pool in theirs if pool not in own))
    return replace(policy, group_pools=merged)
