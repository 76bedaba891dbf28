"""Stops, as the watch over containers carries them out. With a real podman."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.containers import IMAGE, Podman
from tests.engines.places import replica

from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container.creating import PORTER
from gpuyard.engines.container.watch import Watch
from gpuyard.engines.process.supervision import processes, record

# Behaves like the porter and is called like it: hears the signal once it has asked for it.
LIKE_THE_PORTER = "trap 'exit 143' TERM; while :; do sleep 0.05; done"


@pytest.fixture
def ended() -> queue.Queue[ReplicaId]:
    return queue.Queue()


@pytest.fixture
def watch(ended: queue.Queue[ReplicaId]) -> Iterator[Watch]:
    made = Watch(1 << 20, lambda id, oom_kills: ended.put(id))
    yield made
    made.close()


def test_a_stop_that_comes_before_the_runtime_has_become_the_porter_is_not_lost(
    podman: Podman, watch: Watch, ended: queue.Queue[ReplicaId], tmp_path: Path
) -> None:
    name = "stopped-too-early"
    (tmp_path / record.LOG).touch()
    limits = ("--ulimit", f"nofile={podman.facts.most_files}", "--ulimit", f"nproc={podman.facts.most_processes}")
    program = ("sh", "-c", LIKE_THE_PORTER, PORTER)
    podman.command("create", "--name", name, "--network", "none", *limits, IMAGE, *program)
    podman.command("init", name)  # the runtime waits inside, and catches every signal
    (found,) = json.loads(podman.command("inspect", name))
    pid = found["State"]["Pid"]
    start = processes.start_time(pid)
    assert start is not None
    assert watch.follow(replica(), tmp_path, {"pid": pid, "start": start}, {})
    watch.stop(replica(), 200.0)
    with pytest.raises(queue.Empty):
        ended.get(timeout=0.5)
    podman.command("start", name)
    assert ended.get(timeout=100) == replica()
    assert podman.command("wait", name).strip() == "143"
    podman.remove(name)
