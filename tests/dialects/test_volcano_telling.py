"""Our states in Volcano's words, and its tables by their columns."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.dialects.volcano.telling import job_table, phase, pods, queue_state, queue_table
from gpuyard.dialects.volcano.viewing import age, job_view
from gpuyard.domain.workload import State

HEADER = (
    "Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     "
)


def item(state: str = "running", name: str = "train", **keys: Any) -> dict[str, Any]:
    facts = keys.pop("facts", {})
    return {
        "id": "abcdefghij",
        "name": name,
        "state": state,
        "wanted": "run",
        "reason_code": "",
        "attempt": 1,
        "replicas": 3,
        "replicas_by_state": {"pending": 1, "running": 2, "succeeded": 0, "failed": 0},
        "submitted_at": "2026-11-16T09:50:55.123Z",
        "group": "default",
        "origin": {"door": "volcano", "facts": facts},
        **keys,
    }


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State.QUEUED, "Pending"),
        (State.PLACED, "Pending"),
        (State.STARTING, "Pending"),
        (State.RUNNING, "Running"),
        (State.STOPPING, "Restarting"),
        (State.PAUSED, "Aborted"),
        (State.SUCCEEDED, "Completed"),
        (State.FAILED, "Failed"),
        (State.STOPPED, "Terminated"),
    ],
)
def test_every_state_has_a_phase(state: State, said: str) -> None:
    assert phase(item(state.value)) == said


def test_what_is_ending_says_as_what() -> None:
    assert phase(item("stopping", wanted="stop")) == "Terminating"
    assert phase(item("stopping", wanted="pause")) == "Aborting"
    assert phase(item("stopping", reason_code="story.role_completed")) == "Completing"


def test_a_failure_ends_in_the_phase_its_policy_names() -> None:
    assert phase(item("failed", facts={"fails_as": "Aborted"})) == "Aborted"
    assert phase(item("failed", facts={"fails_as": "Nonsense"})) == "Failed"


def test_the_list_has_upstreams_columns_and_widths() -> None:
    items = [item(name="a-longer-name", attempt=3), item("succeeded", facts={"job_type": "MPI", "min_available": "2"})]
    header, first, second = job_table(items, shown=items).split("\n")
    assert header == f"{'Name':<16}{HEADER}RetryCount"
    assert first == (
        f"{'a-longer-name':<16}2026-11-16     Running     Batch       3           3     "
        "1         2         0           0         0           2         "
    )
    assert second[16:].split() == ["2026-11-16", "Completed", "MPI", "3", "2", "0", "2", "0", "0", "0", "0"]


def test_namespaces_come_first_when_asked_for() -> None:
    items = [item(facts={"namespace": "team-a"})]
    header, line = job_table(items, shown=items, with_namespaces=True).split("\n")
    assert header.startswith(f"{'Namespace':<12}{'Name':<8}Creation")
    assert line.startswith(f"{'team-a':<12}{'train':<8}2026")


def test_queues_are_told_with_upstreams_columns() -> None:
    header, line = queue_table([("vision", 2.5, {"Running": 3, "Pending": 1})]).split("\n")
    assert header == "Name                     Weight  State   Inqueue Pending Running Unknown "
    assert line == "vision                   2.5     Open    0       1       3       0       "
    assert [queue_state(item(state)) for state in ("queued", "starting", "running", "paused")] == [
        *("Pending", "Inqueue", "Running", "Pending")
    ]


def test_replicas_are_called_as_their_pods() -> None:
    roles = [{"name": "task0", "replicas": 1}, {"name": "ps", "replicas": 2}]
    named = pods(item(facts={"tasks": '{"task0": "task-0"}'}), roles)
    assert named == [("task0-0", "train-task-0-0"), ("ps-0", "train-ps-0"), ("ps-1", "train-ps-1")]


def test_a_view_tells_everything_under_its_label() -> None:
    role = {"name": "task0", "replicas": 3, "command": ["sh", "-c", "a"], "image": "img", "cpu": 0.5, "memory": 1 << 30}
    facts = {"tasks": '{"task0": "task-0"}', "plugins": '{"env":[],"ssh":["--a"]}', "folders": '{"task0": "/x"}'}
    events = [
        {"code": "story.submitted", "message": "Submitted."},
        {"code": "ended.exit_code", "message": "Exit 1."},
    ]
    file = {"roles": {"task0": {"ports": [{"number": 80, "name": "web"}]}}, "retries": {"exit": 3}}
    lines = job_view(item(facts=facts, roles=[role], attempt=2), file, events, ["3s", "1s"]).split("\n")
    for line in (
        *("Name:       \ttrain", "    Ssh:\t[--a]", "    Name:\ttask-0", "    Replicas:\t3", "            sh"),
        *("              Cpu:   \t500m", "              Memory:\t1Gi", "            Container Port:\t80"),
        *("            Working Dir:\t/x", "        Restart Policy:   \tOnFailure", "  RetryCount:   \t1"),
        *("  Running:      \t2", "    Phase:\tRunning", "Events:"),
        f"{'Normal':<15}\t{'Submitted':<40}\t{'3s':<30}\t{'gpuyard':<40}\tSubmitted.",
        f"{'Warning':<15}\t{'ExitCode':<40}\t{'1s':<30}\t{'gpuyard':<40}\tExit 1.",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((-5, "<invalid>"), (-1, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (3599, "59m"), (10_800, "3h")),
        *((11_160, "3h6m"), (100_000, "27h"), (200_000, "2d7h"), (86_400 * 3, "3d"), (86_400 * 100, "100d")),
        *((86_400 * 800, "2y70d"), (86_400 * 365 * 9, "9y")),
    ],
)
def test_ages_are_written_as_kubernetes_writes_them(seconds: float, said: str) -> None:
    assert age(seconds) == said


EVIL = "a\x1b[2J\nb"


@pytest.mark.parametrize(
    "facts",
    [
        {"namespace": EVIL, "job_type": EVIL, "labels": EVIL, "fails_as": EVIL, "min_available": EVIL},
        {
            "tasks": '{"task0": "\\u001b[2J"}',
            "folders": '{"task0": "\\u001b[2J\\n"}',
            "plugins": '{"ssh": ["\\u001b"]}',
        },
        {"tasks": "[1]", "folders": "7", "plugins": "[", "labels": '{"\\u001b": "\\n"}'},
    ],
)
def test_nothing_written_by_hand_makes_rows_or_reaches_the_terminal(facts: dict[str, str]) -> None:
    role = {"name": "task0", "replicas": 1, "command": ["a"], "image": "img", "cpu": None, "memory": None}
    told = item("failed", facts=facts, roles=[role])
    table = job_table([told], shown=[told], with_namespaces=True)
    assert len(table.split("\n")) == 2
    view = job_view(told, {}, [], [])
    named = "".join(pod for _, pod in pods(told, [role]))
    for text in (table, view, named):
        assert all(character.isprintable() or character in "\n\t" for character in text)
