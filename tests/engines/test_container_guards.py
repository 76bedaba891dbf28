"""What is looked after while containers run: the rules that keep them apart, what they write, how quickly they end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.engines.containers import ContainerYard
from tests.engines.places import replica

from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Kind, ReplicaId
from gpuyard.engines.container import firewall
from gpuyard.engines.container.engine import Options
from gpuyard.engines.container.written import counted, measure
from gpuyard.engines.limits import most_processes


def _rules() -> list[str]:
    """Those of ours, in no order."""
    said = subprocess.run(
        ["iptables", "-w", "10", "-t", firewall.TABLE, "-S"], capture_output=True, check=True
    ).stdout.decode()
    return sorted(line for line in said.splitlines() if "YARD" in line)


JUMP = ("-i", "yard+", "-j", firewall.INPUT)


@pytest.mark.parametrize("words", [("-F",), ("-F", firewall.FORWARD), ("-D", "INPUT", *JUMP)])
def test_rules_that_were_swept_away_under_running_work_are_put_back_without_a_launch(
    container_yard: ContainerYard, words: tuple[str, ...]
) -> None:
    id = container_yard.launch("sleep 600", replica())
    before = _rules()
    assert len(before) > 8
    subprocess.run(["iptables", "-w", "10", "-t", firewall.TABLE, *words], check=True)
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
    subprocess.run(["iptables", "-w", "10", "-t", firewall.TABLE, "-F", firewall.INPUT], check=True)
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


# --- what they write on the machine's own disk ----------------------------------------------------------------------


@pytest.fixture
def bounded_yard(container_yard: ContainerYard, tmp_path: Path) -> Iterator[ContainerYard]:
    options = Options(layer_limit_bytes=40 * MIB)
    yard = ContainerYard(container_yard.host, tmp_path / "bounded", options=options)
    yield yard
    yard.close()


def _has_written(yard: ContainerYard, id: ReplicaId, least: int) -> bool:
    use = yard.engine.disk_use().get(id)
    return use is not None and use.used >= least


def test_what_a_container_writes_is_measured_wherever_it_writes_it(bounded_yard: ContainerYard) -> None:
    yard = bounded_yard
    yard.host.load("localhost/volume:1", 'VOLUME ["/cache"]')
    zeros = "dd if=/dev/zero bs=1M count=10 of="
    places = ("/tmp/a", "/cache/b", "$YARD_DOOR/c", "$HOME/not-counted")
    script = f"{'; '.join(zeros + place for place in places)}; sync; echo written; sleep 600"
    id = yard.launch(script, replica(workload="wbounded01"), image="localhost/volume:1")
    yard.says(id, "written")
    yard.wait_for(partial(_has_written, yard, id, 30 * MIB), "the measurement")
    use = yard.engine.disk_use()[id]
    assert 30 * MIB <= use.used < 40 * MIB
    assert use.allowed == 40 * MIB
    yard.engine.stop(id, None, 0.0)
    yard.ended(id)
    yard.wait_for(lambda: id not in yard.engine.disk_use(), "the end of measuring it")


def test_an_environment_that_was_over_its_limit_has_room_to_be_cleaned_up(bounded_yard: ContainerYard) -> None:
    yard, workload = bounded_yard, "wbounded02"
    first, second = (ReplicaId(workload, attempt, "main", 0) for attempt in (1, 2))
    fill = "dd if=/dev/zero bs=1M count=60 of=/root/big; sync; sleep 600"
    uses = []
    for id, script in ((first, fill), (second, "sleep 600")):
        yard.engine.launch(yard.request(id, "sh", "-c", script, kind=Kind.ENV, keeps=workload))
        yard.wait_for(partial(_has_written, yard, id, 60 * MIB), "the measurement")
        uses.append(yard.engine.disk_use()[id])
        yard.engine.stop(id, None, 0.0)
        yard.ended(id)
    assert [use.used > use.allowed for use in uses] == [True, False]


def test_what_du_could_not_finish_counts_as_far_as_it_came() -> None:
    said = b"10\t/a/x\0" + b"20\t/a/y\0" + b"31\t/a\0" + b"7\t/b/\nodd\0"
    assert counted(said, ["/a", "/b"]) == 38


def test_measuring_counts_each_file_once_and_survives_what_is_odd(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    (layer / "new\nline").mkdir(parents=True)
    (layer / "new\nline" / "one").write_bytes(b"x" * MIB)
    (layer / "two").hardlink_to(layer / "new\nline" / "one")
    (layer / "away").symlink_to("/usr")
    assert MIB <= measure([str(layer), str(tmp_path / "gone")], 60.0) < 2 * MIB
    assert measure([str(layer)], 0.0, lambda: True) < 2 * MIB
