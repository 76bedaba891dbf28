"""What an admin should know of a policy that is sound in itself: names in it that nothing here has just now.

Machines come and go, so such names are not refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import is_model


def notes_on(policy: Policy, nodes: Iterable[Node]) -> list[Reason]:
    there = list(nodes)
    names = {node.name for node in there}
    models = {card.model for node in there for card in node.cards}
    labels = {label for node in there for label in node.labels}
    return list(_notes(policy, names, models, labels))


def _notes(policy: Policy, names: set[str], models: set[str], labels: set[tuple[str, str]]) -> Iterator[Reason]:
    for server in policy.servers:
        if server not in names:
            yield because(Code.NAMES_NOTHING, at="servers", what="node", name=server)
    if policy.servers and policy.placing is not Placing.IN_ORDER:
        yield because(Code.SERVERS_UNUSED, placing=policy.placing.value)
    for name, pool in policy.pools.items():
        at = f"pools.{name}"
        yield from (
            because(Code.NAMES_NOTHING, at=f"{at}.nodes", what="node", name=n) for n in pool.nodes if n not in names
        )
        for model in pool.models:
            if not any(is_model(model, there) for there in models):
                yield because(Code.NAMES_NOTHING, at=f"{at}.models", what="model", name=model)
        for label in pool.labels:
            if label not in labels:
                yield because(Code.NAMES_NOTHING, at=f"{at}.labels", what="label", name="=".join(label))
