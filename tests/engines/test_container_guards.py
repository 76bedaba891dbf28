"""What is looked after while containers run: the rules that keep them apart, what they write, how quickly they end."""

from __future__ import annotations

import subprocess

import pytest
from tests.engines.containers import ContainerYard
from tests.engines.places import replica

from gpuyard.engines.container import firewall


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
