"""Both versions of cgroups. Version 2 against a folder that looks like one, for machines that have version 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.engines.process import machine
from gpuyard.engines.process.supervision import cgroups

GIB = 1 << 30


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    root = tmp_path / "cgroup"
    (root / "gpuyard" / "yard.job").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma\n")
    for folder in (root, root / "gpuyard"):
        (folder / "cgroup.subtree_control").write_text("")
    files = ("cgroup.procs", "cgroup.kill", "cgroup.freeze", "memory.max", "memory.swap.max", "pids.max", "cpu.weight")
    for name in files:
        (root / "gpuyard" / "yard.job" / name).write_text("")
    return root


def job(unified: Path) -> tuple[cgroups.Group, Path]:
    parent = cgroups.find_parent(str(unified), "/proc/self/cgroup")
    assert parent is not None
    assert parent["version"] == 2
    return cgroups.open_group(cgroups.below(parent, "yard.job")), unified / "gpuyard" / "yard.job"


def test_version_2_gets_hard_limits_for_memory_and_processes_and_a_weight_for_cpu(unified: Path) -> None:
    group, folder = job(unified)
    group.make(4 * GIB, 4096, 2000)
    assert (folder / "memory.max").read_text() == str(4 * GIB)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "4096"
    assert (folder / "cpu.weight").read_text() == "79"
    assert (unified / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (unified / "gpuyard" / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_version_2_is_joined_and_killed_by_one_write(unified: Path) -> None:
    group, folder = job(unified)
    group.join()
    assert (folder / "cgroup.procs").read_text() == "0"
    (folder / "cgroup.procs").write_text("4999999\n")
    assert not group.kill()
    assert (folder / "cgroup.kill").read_text() == "1"
    (folder / "cgroup.procs").write_text("")
    assert group.kill()


def test_version_2_lets_who_dies_have_all_the_cpu_time_there_is(unified: Path) -> None:
    group, folder = job(unified)
    group.free_cpu()  # there is no limit
    (folder / "cpu.max").write_text("20000 100000\n")
    group.free_cpu()
    assert (folder / "cpu.max").read_text().startswith("max")


def test_version_2_before_linux_5_14_is_frozen_killed_and_thawed(unified: Path) -> None:
    group, folder = job(unified)
    (folder / "cgroup.kill").unlink()
    (folder / "cgroup.procs").write_text("4999999\n")  # no such process
    assert not group.kill()
    assert (folder / "cgroup.freeze").read_text() == "0"


def test_version_2_tells_use_and_kills_for_memory(unified: Path) -> None:
    group, folder = job(unified)
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
    (folder / "memory.current").write_text("1000000\n")
    (folder / "memory.stat").write_text("anon 600000\ninactive_file 400000\n")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n")
    (folder / "cgroup.procs").write_text("10\n11\n")
    assert group.usage() == (2.5, 600_000, 2)
    assert group.oom_kills() == 1


def test_a_group_that_is_gone_is_empty_and_uses_nothing(tmp_path: Path) -> None:
    for description in (
        {"version": 1, "dirs": {"freezer": str(tmp_path / "a"), "memory": str(tmp_path / "b")}},
        {"version": 2, "dirs": {"unified": str(tmp_path / "c")}},
    ):
        group = cgroups.open_group(description)
        assert group.kill()
        assert group.remove()
        assert group.oom_kills() == 0
        assert group.usage() == (0.0, 0, 0)


def test_without_the_needed_controllers_there_are_no_groups(unified: Path) -> None:
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    assert cgroups.find_parent(str(unified), "/proc/self/cgroup") is None
    assert cgroups.find_parent(str(unified / "nowhere"), "/proc/self/cgroup") is None


def test_version_1_lies_below_the_servers_own_group(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("3:cpu,cpuacct:/\n2:memory:/service\n1:freezer:/elsewhere\n0::/\n")
    for folder in ("freezer", "memory/service", "cpu", "cpuacct"):
        (tmp_path / "cg" / folder).mkdir(parents=True)
    parent = cgroups.find_parent(str(tmp_path / "cg"), str(own))
    assert parent == {
        "version": 1,
        "dirs": {
            "freezer": f"{tmp_path}/cg/freezer/gpuyard",  # its own group is not shown here: the top
            "memory": f"{tmp_path}/cg/memory/service/gpuyard",
            "cpu": f"{tmp_path}/cg/cpu/gpuyard",
            "cpuacct": f"{tmp_path}/cg/cpuacct/gpuyard",
        },
    }


def test_the_least_memory_limit_above_the_server_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    root = tmp_path / "cg"
    (root / "a" / "b").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("memory\n")
    (root / "a" / "memory.max").write_text(f"{2 * GIB}\n")
    (root / "a" / "b" / "memory.max").write_text("max\n")
    assert cgroups.memory_limit(str(root), str(own)) == 2 * GIB
    (root / "a" / "memory.max").write_text("max\n")
    assert cgroups.memory_limit(str(root), str(own)) is None


def test_this_machine_has_cores_and_memory(tmp_path: Path) -> None:
    assert machine.cpu_milli(tmp_path) >= 1000
    assert machine.memory(tmp_path) > 1 << 20
