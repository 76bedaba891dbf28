"""`yard key` with the real command: added from a file, from standard input and from ~/.ssh, listed, removed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.yard import Yard

from gpuyard.cli.known_hosts import trust


def make_key(folder: Path, name: str = "id_ed25519", comment: str = "ann@laptop") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(file)], check=True)
    return file


def test_keys_are_added_listed_and_removed_by_hand(simulated: Yard, tmp_path: Path) -> None:
    file = make_key(tmp_path, comment="from a file")
    public = file.with_suffix(".pub")
    assert "SHA256:" in simulated.run("key", "add", str(public)).err
    piped = make_key(tmp_path, "other").with_suffix(".pub").read_text()
    made = simulated.run("key", "add", "-", "--name", "piped", "-o", "json", stdin=piped)
    assert made.code == 0, made
    listed = simulated.json("key", "ls")
    assert {"from a file", "piped"} <= {key["name"] for key in listed}
    assert "from a file" in simulated.good("key", "ls")
    assert "指纹" in simulated.good("key", "ls", YARD_LANG="zh")
    assert simulated.run("key", "rm", "piped").code == 0
    by_fingerprint = next(key["fingerprint"] for key in listed if key["name"] == "from a file")
    assert simulated.run("key", "rm", by_fingerprint).code == 0
    assert simulated.json("key", "ls") == []
    assert simulated.run("key", "rm", "piped").code == 3


def test_without_a_file_the_usual_key_is_added(simulated: Yard, tmp_path: Path) -> None:
    make_key(tmp_path / ".ssh", comment="the usual one")
    made = simulated.run("key", "add", HOME=str(tmp_path))
    assert made.code == 0, made
    assert simulated.run("key", "rm", "the usual one").code == 0
    nothing = simulated.run("key", "add", HOME=str(tmp_path / "nowhere"))
    assert nothing.code == 2
    assert "ssh-keygen" in nothing.err


def test_a_private_key_is_not_even_sent(simulated: Yard, tmp_path: Path) -> None:
    file = make_key(tmp_path)
    refused = simulated.run("key", "add", str(file))
    assert refused.code == 2
    assert "was not sent" in refused.err
    assert f"{file}.pub" in refused.err
    words = simulated.run("key", "add", "-", stdin="ssh-ed25519-cert-v01@openssh.com AAAA", YARD_LANG="zh")
    assert words.code == 2
    assert "证书" in words.err


def test_the_gateways_host_key_is_taken_from_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ssh then takes this key for this address, and no other; a new key of the same address takes its place."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    options = trust("ssh-ed25519 AAAA", "gate.example.com", 8472)
    file = tmp_path / "gpuyard" / "known_hosts"
    assert options == ["-o", f'UserKnownHostsFile="{file}"', "-o", "StrictHostKeyChecking=yes"]
    trust("ssh-ed25519 BBBB", "other.example.com", 22)
    trust("ssh-ed25519 CCCC", "gate.example.com", 8472)
    assert file.read_text() == "other.example.com ssh-ed25519 BBBB\n[gate.example.com]:8472 ssh-ed25519 CCCC\n"
    assert file.stat().st_mode & 0o077 == 0
    assert trust(None, "gate.example.com", 8472) == []
    assert trust("ssh-ed25519 AAAA\nevil", "gate.example.com", 8472) == []
