"""A whole platform with a certificate: commands and links go over TLS, and a renewed certificate is taken up."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.yard import wait_until
from tests.gateway.tls import make_certificate
from tests.platforms import Platform, a_platform


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "first.example")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Platform]:
    cert, key = map(str, certificate)
    with a_platform(tmp_path_factory.mktemp("yard"), "process", "--tls-cert", cert, "--tls-key", key) as yard:
        yard.good("env", "create", "dev")
        yield yard


def gateway_port(yard: Platform) -> int:
    return int(json.loads((yard.data / "gateway.json").read_text())["port"])


def test_a_shell_is_entered_and_tells_its_exit_code(yard: Platform) -> None:
    done = yard.run("shell", "dev", "--", "echo in; exit 4")
    assert (done.code, done.out.strip()) == (4, "in"), done.err


def test_a_link_leads_in_over_https(yard: Platform, certificate: tuple[Path, Path]) -> None:
    link = urlsplit(yard.good("env", "open", "--print", "dev", "terminal"))
    assert (link.scheme, link.port) == ("https", gateway_port(yard))
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    connection = http.client.HTTPSConnection("127.0.0.1", gateway_port(yard), timeout=30, context=trusting)
    connection.request("GET", f"{link.path}?{link.query}", headers={"Host": link.netloc})
    answer = connection.getresponse()
    assert answer.status == 303
    assert str(answer.getheader("Set-Cookie")).startswith("__Host-yard_gate=")
    connection.close()


def test_a_renewed_certificate_is_shown_to_whoever_comes_next(
    yard: Platform, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    assert b"first.example" in shown(yard)
    for old, new in zip(certificate, make_certificate(tmp_path, "second.example"), strict=True):
        shutil.copy(new, old)
    wait_until(lambda: b"second.example" in shown(yard), 60, lambda: "it is still the first one")


def shown(yard: Platform) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", gateway_port(yard)), timeout=30))
