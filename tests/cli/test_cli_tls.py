"""A server with a certificate of its own: the owner needs nothing, others must be told to trust it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.yard import Yard


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=yard.example", "-addext", "subjectAltName=DNS:yard.example,DNS:localhost"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def test_tls_for_the_owner_and_for_others(yard: Yard, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    yard.up("--engine", "simulated", "--tls-cert", str(cert), "--tls-key", str(key))
    url = json.loads((yard.data / "server.json").read_text())["url"]
    assert url.startswith("https://127.0.0.1:")
    assert yard.json("whoami")["via"] == "owner"
    assert yard.run("run", "--", "sleep", "0").code == 0
    yard.good("user", "create", "ana", "--password", "a rather long one")

    other = Yard(yard.home, yard.data, {"YARD_DATA": ""})
    login = ["login", url.replace("127.0.0.1", "localhost"), "--name", "ana", "--password-stdin"]
    refused = other.run(*login, stdin="a rather long one\n")
    assert refused.code == 5
    assert "YARD_CA_FILE" in refused.err
    trusting = Yard(yard.home, yard.data, {"YARD_DATA": "", "YARD_CA_FILE": str(cert)})
    trusting.good(*login, stdin="a rather long one\n")
    assert trusting.json("whoami")["user"]["name"] == "ana"
    assert other.run("whoami", YARD_CA_FILE="/nonexistent").code == 2
