"""`kill -9` as a normal event: whatever dies, no acknowledged job is lost, none runs twice, every log is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.faults.checker import check
from tests.faults.nemesis import Battered, Clients, Killer, take_stock, wait_for_rest

SEED = int(os.environ.get("YARD_STORM_SEED", "20261115"))


def weather_a_storm(data: Path, database_url: str, kills: int) -> None:
    server = Battered(data, database_url)
    try:
        server.wait_until_ready()
        clients, killer = Clients(server, SEED), Killer(server, SEED)
        clients.start()
        try:
            killer.strike(kills)
        finally:
            clients.end()
        wait_for_rest(server)
        history = take_stock(server, clients.acknowledged)
    finally:
        server.end()
    print(f"{killer.killed}, {len(history.kept)} jobs, {len(clients.errors)} submits not acknowledged")
    assert check(history) == []
    assert len(history.acknowledged) >= kills / 2
    assert sum(killer.killed.values()) >= kills / 2


@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_through_twenty_kills(tmp_path: Path, database_url: str) -> None:
    url = f"sqlite:///{tmp_path / 'data' / 'gpuyard.db'}" if database_url.startswith("sqlite") else database_url
    weather_a_storm(tmp_path / "data", url, kills=20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_doubled_through_two_hundred_kills(tmp_path: Path, database_url: str) -> None:
    url = f"sqlite:///{tmp_path / 'data' / 'gpuyard.db'}" if database_url.startswith("sqlite") else database_url
    weather_a_storm(tmp_path / "data", url, kills=200)
