"""Machines as the engine last saw them. The admin's wishes are kept apart from it: no new work here, and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.store import codec
from gpuyard.store.feed import note_change, note_changes
from gpuyard.store.schema import cordons, node_labels, nodes

KIND = "node"

_equipment = lru_cache(maxsize=1024)(codec.equipment_from_text)  # many machines are alike, and few change
_by_name = nodes.c.name.in_(sa.bindparam("names", expanding=True))
_update = (
    sa.update(nodes)
    .where(nodes.c.name == sa.bindparam("its_name"))
    .values({name: sa.bindparam(name) for name in ("cpu_milli", "memory", "cards", "state", "changed_at")})
)


def all(conn: sa.Connection) -> list[Node]:
    """Every machine, by name, with its labels. A well one that is not to get new work shows as cordoned."""
    return _found(conn, sa.select(nodes), {})


def some(conn: sa.Connection, names: Sequence[str]) -> list[Node]:
    """Those of these machines that there are, as in `all`."""
    return _found(conn, sa.select(nodes).where(_by_name), {"names": list(names)})


def save(conn: sa.Connection, seen: Sequence[Node], now: float) -> list[str]:
    """Remember what the engine sees. Only machines that changed are written and told; returns their names."""
    known = {row.name: _read(row) for row in conn.execute(sa.select(nodes))}
    changed = [node for node in seen if known.get(node.name) != replace(node, labels=())]
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
    """Machines that are gone for good. Wishes about them stay, should they come back."""
    known = conn.execute(sa.select(nodes.c.name).where(nodes.c.name.in_(names))).scalars().all()
    conn.execute(sa.delete(nodes).where(nodes.c.name.in_(known)))
    note_changes(conn, KIND, known)


def set_cordoned(conn: sa.Connection, name: str, wish: bool) -> bool:
    """The admin's wish. False when there is no such machine."""
    if not _is_known(conn, name):
        return False
    if wish is (name in cordoned(conn)):
        return True
    conn.execute(sa.insert(cordons).values(node=name) if wish else sa.delete(cordons).where(cordons.c.node == name))
    note_change(conn, KIND, name)
    return True


def cordoned(conn: sa.Connection) -> frozenset[str]:
    return frozenset(conn.execute(sa.select(cordons.c.node)).scalars())


def labels_of(conn: sa.Connection, name: str) -> dict[str, str] | None:
    """The labels of one machine; None when there is no such machine."""
    return dict(_labels(conn).get(name, ())) if _is_known(conn, name) else None


def set_labels(conn: sa.Connection, name: str, labels: Mapping[str, str]) -> bool:
    """Make these the labels of a machine, all of them. False when there is no such machine."""
    before = labels_of(conn, name)
    if before is None or before == labels:
        return before is not None
    conn.execute(sa.delete(node_labels).where(node_labels.c.node == name))
    if labels:
        rows = [{"node": name, "key": key, "value": value} for key, value in labels.items()]
        conn.execute(sa.insert(node_labels), rows)
    note_change(conn, KIND, name)
    return True


def _is_known(conn: sa.Connection, name: str) -> bool:
    return conn.execute(sa.select(nodes.c.name).where(nodes.c.name == name)).first() is not None


def _labels(conn: sa.Connection) -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for row in conn.execute(sa.select(node_labels).order_by(node_labels.c.node, node_labels.c.key)):
        found[row.node] = (*found.get(row.node, ()), (row.key, row.value))
    return found


def _found(conn: sa.Connection, query: sa.Select[Any], which: Mapping[str, Any]) -> list[Node]:
    """Put in order here: databases differ in what they hold to be the order of names."""
    kept_back, labels = cordoned(conn), _labels(conn)
    rows = conn.execute(query, which)
    read = [_as_wished(_read(row), row.name in kept_back, labels.get(row.name, ())) for row in rows]
    return sorted(read, key=attrgetter("name"))


def _as_wished(node: Node, cordoned: bool, labels: tuple[tuple[str, str], ...]) -> Node:
    state = NodeState.CORDONED if cordoned and node.state is NodeState.READY else node.state
    return replace(node, state=state, labels=labels) if labels or state is not node.state else node


def _read(row: Any) -> Node:
    cards, images = _equipment(row.cards)
    return Node(row.name, row.cpu_milli, row.memory, cards, NodeState(row.state), images=images)


def _row(node: Node, now: float) -> dict[str, Any]:
    return {
        "name": node.name,
        "cpu_milli": node.cpu_milli,
        "memory": node.memory,
        "cards": codec.equipment_to_text(node.cards, node.images),
        "state": node.state.value,
        "changed_at": now,
    }
