"""The settings file: what it says holds, what it cannot mean is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.domain.places import Root
from gpuyard.domain.workload import Mount
from gpuyard.settings import BadSettings, Settings, with_file

PLAIN = Settings(data=Path("/data"))


def test_what_the_file_says_holds() -> None:
    settings = with_file(
        PLAIN, 'refuse_images = true\nlog_limit = "64M"\nkeep_days = 30\nheld_card_seconds = 0\nbackup_hour = 5\n'
    )
    assert settings.refuse_images
    assert settings.log_limit_bytes == 64 << 20
    assert (settings.control.keep_days, settings.control.backup_hour) == (30.0, 5)
    assert isinstance(settings.control.backup_hour, int)
    assert (PLAIN.control.held_card_seconds, settings.control.held_card_seconds) == (60.0, 0.0)


def test_further_roots_come_after_the_first() -> None:
    settings = with_file(PLAIN, '[roots]\n"/mnt2" = "/nas2"\n')
    assert settings.roots == (Root("/mnt", "/data/files"), Root("/mnt2", "/nas2"))


def test_doors_bring_the_folders_that_the_admin_named_and_the_usual_ones_otherwise() -> None:
    usual = with_file(PLAIN, "")
    assert usual.door_mounts["volcano"] == (Mount("home", "/nfs/testdata/code/{user}"),)
    given = with_file(PLAIN, '[doors.vcctl]\nmounts = {"/nas/code/" = "share/code"}\n')
    assert given.door_mounts["volcano"] == (Mount("share", "/nas/code", "code"),)


def test_registries_that_the_admin_named_in_any_way_may_be_asked() -> None:
    assert "docker.io" in PLAIN.known_registries
    settings = with_file(
        PLAIN,
        'insecure_registries = ["reg:5000/team"]\ndefault_image = "own.example/base:1"\nregistries = ["quay.io"]\n',
    )
    assert settings.known_registries == ("reg:5000", "own.example", "quay.io")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kep_days = 3", "did you mean keep_days"),
        ("frobnicate = 3", "known are"),
        ("keep_days = -1", "from 0 to 36500"),
        ("keep_days = true", "expected a number"),
        ("held_card_seconds = -1", "from 0 to 86400"),
        ("refuse_images = 1", "true or false"),
        ("log_limit = 'much'", "512M"),
        ("log_limit = ", "Invalid value"),
        ("engine_socket = 'tcp://10.0.0.1:2375'", "path of a socket"),
        ("network_pool = '8.8.0.0/16'", "private addresses"),
        ("network_pool = 'ten'", "network_pool"),
        ("host_network_groups = 'vision'", "list of names"),
        ("registries = 'docker.io'", "list of names"),
        ("registries = ['https://docker.io']", "expected hosts"),
        ("pids_limit = 1.5", "whole number"),
        ("trusted_proxies = ['nginx']", "addresses or networks"),
        ("denied_networks = ['metadata.internal']", "addresses or networks"),
        ("visitors_per_address = 0", "from 8 to"),
        ("roots = 1", "table of paths"),
        ("[roots]\n'/mnt2' = 2", "table of paths"),
        ("[roots]\n'mnt2' = '/nas2'", "whole path"),
        ("[roots]\n'/mnt' = '/nas2'", "hide each other"),
        ("[roots]\n'/mnt2' = '/data'", "inside each other"),
        ("[roots]\n'/usr' = '/nas2'", "system's own"),
        ("[roots]\n'/mnt2' = '/nas2'\n'/mnt3' = '/nas2/x'", "inside each other"),
        ("doors = 1", "dlc, vcctl"),
        ("[doors.slurm]\nmounts = {}", "dlc, vcctl"),
        ("[doors.vcctl]\nmount = {}", "expected mounts"),
        ("[doors.vcctl]\nmounts = {'/nfs' = 'root'}", "home or share"),
        ("[doors.vcctl]\nmounts = {'/nfs' = 'home/../../x'}", "home or share"),
        ("[doors.vcctl]\nmounts = {'/etc/x' = 'home'}", "system's own"),
        ("[doors.vcctl]\nmounts = {'nfs' = 'home'}", "whole path"),
        ("[doors.dlc]\nmounts = {'/mnt/user' = 'home'}", "would hide"),
        ("[doors.dlc]\nmounts = {'/a/b' = 'home', '/a' = 'share'}", "would hide"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        with_file(PLAIN, text)
