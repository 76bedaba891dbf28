"""`yard rerun --set key=value`: one value of a job file changed by its path."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.dialects.native import read_job, set_value, write_job
from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Cause, Where

FLAT: dict[str, Any] = {
    "name": "train",
    "command": "python train.py",
    "cards": 2,
    "env": {"LR": "0.1"},
    "mounts": [{"volume": "home", "at": "/data"}],
    "ports": [{"number": 6006}],
    "retries": 2,
}
ROLES: dict[str, Any] = {"name": "train", "roles": {"ps": {"command": "a"}, "worker": {"command": "b", "cards": 1}}}


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("cards", "4", 4),
        ("cards", "0.5", 0.5),
        ("name", "123", "123"),
        ("name", "true", "true"),
        ("memory", "16G", "16G"),
        ("command", "[ -f x ] && y: z", "[ -f x ] && y: z"),
        ("preemptible", "true", True),
        ("priority", "700", 700),
        ("priority", "high", "high"),
        ("models", "A100,H100", "A100,H100"),
        ("models", "910", "910"),
        ("together", "one_node", "one_node"),
        ("checkpoint", "out", "out"),
        ("max_time", "90", "90"),
        ("cards", 4, 4),
    ],
)
def test_a_value_is_read_as_in_a_file(path: str, text: Any, expected: Any) -> None:
    changed = set_value(FLAT, path, text)
    assert changed[path] == expected
    assert type(changed[path]) is type(expected)
    read_job(changed)


def test_the_data_given_is_not_touched() -> None:
    before = repr(FLAT)
    set_value(FLAT, "env.LR", "0.2")
    set_value(FLAT, "mounts.0.at", "/x")
    assert repr(FLAT) == before


def test_the_environment_takes_any_name_and_keeps_text() -> None:
    assert set_value(FLAT, "env.LR", "0.20")["env"] == {"LR": "0.20"}
    assert set_value(FLAT, "env.NEW", "")["env"] == {"LR": "0.1", "NEW": ""}
    assert set_value({"command": "x"}, "env.A", "no")["env"] == {"A": "no"}


def test_inside_lists_the_position_is_part_of_the_path() -> None:
    assert set_value(FLAT, "mounts.0.at", "/x")["mounts"] == [{"volume": "home", "at": "/x"}]
    assert set_value(FLAT, "ports.0.number", "80")["ports"] == [{"number": 80}]


def test_machines_are_named_and_labels_are_set_one_by_one() -> None:
    pinned = set_value(FLAT, "where.nodes", "a,b")
    both = set_value(set_value(pinned, "where.labels.zone", "north"), "where.labels.disk.kind", "1")
    assert read_job(both).spec.roles[0].where == Where(("a", "b"), (("disk.kind", "1"), ("zone", "north")))
    free = set_value(set_value(both, "where.labels.zone", ""), "where.nodes", "")
    assert read_job(free).spec.roles[0].where == Where((), (("disk.kind", "1"),))
    assert read_job(set_value(both, "where", "")).spec.roles[0].where == Where()
    in_role = set_value(ROLES, "roles.worker.where.nodes", "c")
    assert read_job(in_role).spec.role("worker").where == Where(("c",))


def test_one_cause_of_retries_is_changed_and_the_others_stay() -> None:
    assert set_value(FLAT, "retries.lost", "7")["retries"] == {"exit": 2, "lost": 7}
    assert read_job(set_value(FLAT, "retries.lost", "7")).spec.retries[Cause.EXIT] == 2


def test_a_role_is_reached_by_its_name() -> None:
    assert set_value(ROLES, "roles.worker.cards", "4")["roles"]["worker"]["cards"] == 4
    assert set_value(ROLES, "roles.ps.env.A", "1")["roles"]["ps"]["env"] == {"A": "1"}


def test_the_only_role_of_a_flat_file_is_called_worker() -> None:
    assert set_value(FLAT, "roles.worker.cards", "4")["cards"] == 4


def test_empty_text_removes_a_key() -> None:
    assert "cards" not in set_value(FLAT, "cards", "")
    assert "image" not in set_value(FLAT, "image", "")


@pytest.mark.parametrize(
    ("data", "path", "nearest"),
    [
        (FLAT, "card", "cards"),
        (FLAT, "gpus", "cards"),
        (FLAT, "roles.boss.cards", "cards"),
        (FLAT, "mounts.0.to", None),
        (FLAT, "mounts.1.at", None),
        (FLAT, "mounts.x.at", None),
        (FLAT, "mounts.-1.at", None),
        (FLAT, "mounts.99999999999999999999.at", None),
        (FLAT, "name.first", "name"),
        (FLAT, "where.node", None),
        (FLAT, "where.nodes.0", "where.nodes"),
        (FLAT, "model", "models"),
        (FLAT, "retries.crash", None),
        (FLAT, "", None),
        (FLAT, "...", None),
        (FLAT, "roles", None),
        (FLAT, "roles.worker", None),
        (FLAT, "__class__", None),
        (FLAT, "x" * 100_000, None),
        (ROLES, "cards", "roles.ps.cards"),
        (ROLES, "roles.worker.card", "roles.worker.cards"),
        (ROLES, "roles.worker.priority", None),
    ],
    ids=lambda value: str(value)[:25],
)
def test_an_unknown_path_is_refused_with_the_nearest(data: dict[str, Any], path: str, nearest: str | None) -> None:
    with pytest.raises(BadInput) as caught:
        set_value(data, path, "1")
    assert caught.value.reason.code is Code.UNKNOWN_KEY
    assert len(str(caught.value)) < 1000
    if nearest is not None:
        assert caught.value.reason.facts["nearest"] == nearest


def test_a_change_to_what_was_written_is_a_valid_job() -> None:
    spec = read_job(FLAT).spec
    changed = read_job(set_value(write_job(spec, "vision"), "cards", "8"))
    assert changed.group == "vision"
    assert changed.spec.roles[0].resources.cards is not None
    assert changed.spec.roles[0].resources.cards.whole == 8
