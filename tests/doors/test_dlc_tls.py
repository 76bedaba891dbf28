"""dlc and a server with a certificate: it is checked before a password is sent, and every time after that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard
from tests.doors import dlc as words
from tests.doors.dlc import Dlc, add_people
from tests.gateway.tls import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "yard.example")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("dlc")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    cert, key = map(str, certificate)
    yard.up("--engine", "simulated", "--nodes", "1x1", "--tls-cert", cert, "--tls-key", key)
    add_people(yard)
    yield yard
    yard.down()


def login(dlc: Dlc, yard: Yard, *more: str) -> int:
    host = yard.url.removeprefix("https://")
    return dlc.run("config", "--username", words.NAME, "--password", words.PASSWORD, "--endpoint", host, *more).code


def test_a_certificate_that_is_believed_lets_one_log_in_and_work(
    yard: Yard, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    dlc = Dlc(tmp_path / "believes", {"YARD_CA_FILE": str(certificate[0])})
    assert login(dlc, yard, "--protocol", "https") == 0
    assert words.WORKSPACE in dlc.good("get", "workspace")
    dlc.env.clear()
    assert "[FAILED] code: 503" in dlc.run("get", "workspace").err


def test_a_certificate_that_nobody_vouches_for_is_not_shown_a_password(yard: Yard, tmp_path: Path) -> None:
    dlc = Dlc(tmp_path / "doubts")
    assert login(dlc, yard, "--protocol", "https") == 1
    assert not (dlc.folder / ".dlc").exists()
