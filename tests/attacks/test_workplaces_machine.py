"""Tenants against the machine they share, on a whole platform: its network asked for images, its firewall, its disk."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.test_workplaces_tenants import IMAGE, Town
from tests.cli.yard import wait_until
from tests.engines.containers import missing

from gpuyard.engines.container import firewall
from gpuyard.sdk.errors import YardApiError

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("machine")
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "settings.toml").write_text('layer_limit = "40M"\n')
    town = Town(folder)
    try:
        town.ann.create("anns")
        yield town
    finally:
        town.close()


@pytest.mark.parametrize("path", ["workloads", "envs", "images/pull"])
def test_nobody_knocks_at_a_door_of_the_machine_by_naming_an_image(town: Town, path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        image = f"127.0.0.1:{listener.getsockname()[1]}/x"
        wanted = {"workloads": {"name": "x", "command": "true"}, "envs": {"name": "x"}, "images/pull": {}}[path]
        with pytest.raises(YardApiError, match="may not be asked"):
            town.bob.ask("POST", path, {**wanted, "image": image})
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_an_image_in_use_names_the_environment_and_what_is_no_image_is_told_plainly(town: Town, tmp_path: Path) -> None:
    refused = town.yard.run("image", "rm", IMAGE)
    assert refused.code != 0
    assert f"anns ({town.ann.id}, ann)" in refused.err
    (tmp_path / "junk").write_text("junk")
    loaded = town.yard.run("image", "load", str(tmp_path / "junk"))
    assert loaded.code != 0
    assert "That file is no image." in loaded.err
    for said in (refused.err, loaded.err):
        assert "/var/tmp" not in said
        assert "overlay" not in said


def test_a_firewall_that_was_swept_away_is_back_by_itself(town: Town) -> None:
    assert "YARD-FORWARD" in _rules()
    subprocess.run(["iptables", "-w", "10", "-t", firewall.TABLE, "-F"], check=True)
    wait_until(lambda: "-A YARD-INPUT -j DROP" in _rules() and "-i yard+ -j YARD-FORWARD" in _rules(), 60)


def _rules() -> str:
    return subprocess.run(
        ["iptables", "-w", "10", "-t", firewall.TABLE, "-S"], capture_output=True, check=True
    ).stdout.decode()


def test_who_fills_the_disk_is_stopped_with_the_reason_and_may_clean_up(town: Town) -> None:
    town.bob.create("hole")
    town.bob.inside("dd if=/dev/zero of=/root/big bs=1M count=60 2>&1; sync")
    town.bob.wait_for("paused")
    shown = town.bob.ask("GET", "envs/hole")
    assert "on the machine's own disk" in shown["reason"]
    assert "40M" in shown["reason"]
    town.bob.ask("POST", "envs/hole/start")
    town.bob.wait_for("running")
    assert town.bob.inside("rm /root/big && echo gone") == "gone\n"
