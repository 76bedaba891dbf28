"""Eight clients submit at once into a group with a quota of five cards: never more than five are in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.cli.yard import Yard

from gpuyard import Client

LIMIT = 5


@pytest.fixture(params=["sqlite", "postgresql"])
def yard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("race")
    (folder / "home").mkdir()
    yard = Yard(folder / "home", folder / "data")
    options = ["--engine", "simulated", "--nodes", "4x8"]
    if request.param == "postgresql":
        options += ["--database", request.getfixturevalue("postgres").new_database()]
    yard.up(*options)
    yield yard
    yard.down()


def test_racing_clients_never_exceed_the_quota(yard: Yard) -> None:
    yard.good("group", "create", "racers", "--quota", f"nvidia={LIMIT}")
    submitted: list[str] = []
    most = 0.0

    def race() -> None:
        with Client(data=yard.data) as client:
            for cards in (1, 2, 1, 3):
                job = client.submit(command="sleep 0.4", cards=cards, group="racers")
                submitted.append(job.id)

    racers = [threading.Thread(target=race) for _ in range(8)]
    for racer in racers:
        racer.start()
    with Client(data=yard.data) as client:
        while True:
            live = [job for job in client.jobs() if job.id and not job.ended]
            using = sum(job.cards for job in live if job.state in ("placed", "starting", "running", "stopping"))
            most = max(most, using)
            assert using <= LIMIT, f"{using} cards in use"
            if not live and not any(racer.is_alive() for racer in racers):
                break
        ended = {job.id: job.state for job in client.jobs()}
    assert len(submitted) == 32
    assert all(ended[id] == "succeeded" for id in submitted)
    assert most >= LIMIT - 2
