"""Machines as the engine last saw them, and the admin's wish that some get no new work, kept apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.store import codec
from gpuyard.store.feed import note_change, note_changes
from gpuyard.store.schema import cordons, nodes

KIND = "node"

_update = (
    sa.update(nodes)
    .where(nodes.c.name == sa.bindparam("its_name"))
    .values({name: sa.bindparam(name) for name in ("cpu_milli", "memory", "cards", "state", "changed_at")})
)


def all(conn: sa.Connection) -> list[Node]:
    """Every machine, by name. A well one that is not to get new work shows as cordoned."""
    kept_back = cordoned(conn)
    return [_as_wished(_read(row), row.name in kept_back) for row in conn.execute(_select())]


def save(conn: sa.Connection, seen: Sequence[Node], now: float) -> list[str]:
    """Remember what the engine sees. Only machines that changed are written and told; returns their names."""
    known = {row.name: _read(row) for row in conn.execute(_select())}
    changed = [node for node in seen if known.get(node.name) != node]
    new = [_row(node, now) for node in changed if node.name not in known]
    if new:
        conn.execute(sa.insert(nodes), new)
    old = [{**_row(node, now), "its_name": node.name} for node in changed if node.name in known]
    for row in old:
        del row["name"]
    if old:
        conn.execute(_update, old)
    names = [node.name for node in changed]
    note_changes(conn, KIND, names)
    return names


def forget(conn: sa.Connection, names: Sequence[str]) -> None:
    """Machines that are gone for good. A wish to keep work away from them stays, should they come back."""
    known = conn.execute(sa.select(nodes.c.name).where(nodes.c.name.in_(names))).scalars().all()
    conn.execute(sa.delete(nodes).where(nodes.c.name.in_(known)))
    note_changes(conn, KIND, known)


def set_cordoned(conn: sa.Connection, name: str, wish: bool) -> bool:
    """The admin's wish. False when there is no such machine."""
    if conn.execute(sa.select(nodes.c.name).where(nodes.c.name == name)).first() is None:
        return False
    if wish is (name in cordoned(conn)):
        return True
    conn.execute(sa.insert(cordons).values(node=name) if wish else sa.delete(cordons).where(cordons.c.node == name))
    note_change(conn, KIND, name)
    return True


def cordoned(conn: sa.Connection) -> frozenset[str]:
    return frozenset(conn.execute(sa.select(cordons.c.node)).scalars())


def _select() -> sa.Select[Any]:
    return sa.select(nodes).order_by(nodes.c.name)


def _as_wished(node: Node, cordoned: bool) -> Node:
    return replace(node, state=NodeState.CORDONED) if cordoned and node.state is NodeState.READY else node


def _read(row: Any) -> Node:
    return Node(row.name, row.cpu_milli, row.memory, codec.cards_from_text(row.cards), NodeState(row.state))


def _row(node: Node, now: float) -> dict[str, Any]:
    return {
        "name": node.name,
        "cpu_milli": node.cpu_milli,
        "memory": node.memory,
        "cards": codec.cards_to_text(node.cards),
        "state": node.state.value,
        "changed_at": now,
    }
