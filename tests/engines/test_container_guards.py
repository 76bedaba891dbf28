"""What is looked after while containers run: the rules that keep them apart, what they write, how quickly they end."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines.containers import ContainerYard
from tests.engines.places import replica

from gpuyard.engines.container import firewall
from gpuyard.engines.limits import most_processes


def _rules() -> list[str]:
    """Those of ours, in no order."""
    said = subprocess.run(["iptables", "-w", "10", "-S"], capture_output=True, check=True).stdout.decode()
    return sorted(line for line in said.splitlines() if "YARD" in line)


JUMP = ("-i", "yard+", "-j", firewall.INPUT)


@pytest.mark.parametrize("words", [("-F",), ("-F", firewall.FORWARD), ("-D", "INPUT", *JUMP)])
def test_rules_that_were_swept_away_under_running_work_are_put_back_without_a_launch(
    container_yard: ContainerYard, words: tuple[str, ...]
) -> None:
    id = container_yard.launch("sleep 600", replica())
    before = _rules()
    assert len(before) > 8
    subprocess.run(["iptables", "-w", "10", *words], check=True)
    assert _rules() != before
    container_yard.engine.sweep([id])
    container_yard.wait_for(lambda: _rules() == before, "the rules' return")


def test_rules_that_stand_are_left_alone_and_an_admin_is_told_of_those_that_do_not(
    container_yard: ContainerYard, caplog: pytest.LogCaptureFixture
) -> None:
    container_yard.launch("sleep 600", replica())
    wall = firewall.Firewall()
    wall.ensure()
    wall.ensure()
    assert "put back" not in caplog.text
    subprocess.run(["iptables", "-w", "10", "-F", firewall.INPUT], check=True)
    wall.ensure()
    assert caplog.text.count("put back") == 1


def test_whoever_is_killed_gets_all_the_cpu_time_it_needs_to_die(container_yard: ContainerYard) -> None:
    """A thousand processes that share a fifth of a core would take half a minute for it."""
    request = container_yard.request(replica(), "sleep", "600")
    id = request.id
    container_yard.engine.launch(replace(request, allotment=replace(request.allotment, cpu_milli=200)))
    group = container_yard.status(id)["cgroup"]
    if group["version"] == 2:
        pytest.skip("who is frozen there dies all the same, and takes the file along")
    quota, state = Path(group["dirs"]["cpu"], "cpu.cfs_quota_us"), Path(group["dirs"]["freezer"], "freezer.state")
    assert quota.read_text() == "20000\n"
    state.write_text("FROZEN")
    container_yard.engine.stop(id, None, 0.0)
    container_yard.wait_for(lambda: quota.read_text() == "-1\n", "the lifting of the limit")
    state.write_text("THAWED")
    container_yard.ended(id)


@pytest.mark.parametrize(("chosen", "cpu_milli", "most"), [(0, 200, 2099), (0, 64_000, 18_432), (300, 64_000, 300)])
def test_more_cores_may_have_more_processes_unless_an_admin_chose(chosen: int, cpu_milli: int, most: int) -> None:
    assert most_processes(chosen, cpu_milli) == most


def test_the_usual_limit_of_processes_holds_inside(container_yard: ContainerYard) -> None:
    id = container_yard.launch("sleep 600", replica())
    dirs = container_yard.status(id)["cgroup"]["dirs"]
    assert Path(dirs.get("pids") or dirs["unified"], "pids.max").read_text() == f"{most_processes(0, 1000)}\n"
