"""A card's open device is handed on to a job that was given no card: it is told, ended, and the card is everybody's
again. On both engines, with devices that are stand-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.yard import wait_until
from tests.engines.containers import image_of_busybox, missing
from tests.platforms import Platform, a_platform

from gpuyard import Client, Job
from gpuyard.images.toolbox.base import AT, python_command

IMAGE = "localhost/yard-cards:1"
PYTHONS = {"process": ["python3", "-c"], "container": [*python_command(AT), "-I", "-S", "-c"]}
CARDS = 2

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="without rooms every job may open every card by itself"),
    pytest.mark.skipif(sys.platform != "linux", reason="cards are held by what Linux says is open"),
]

# Both find the same home. The socket is asked until somebody listens.
TAKE = """
import array, os, signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.chdir(os.environ["HOME"])
door = socket.socket(socket.AF_UNIX); door.bind("new-{name}"); door.listen(1); os.rename("new-{name}", "{name}")
said, sent, _, _ = door.accept()[0].recvmsg(1, socket.CMSG_SPACE(4))
print("took", array.array("i", sent[0][2])[0], flush=True)
while True: time.sleep(1)
"""
PASS_ON = """
import array, os, socket, time
card = os.open(os.environ["YARD_CARD_PATHS"], os.O_RDWR)
os.chdir(os.environ["HOME"])
while not os.path.exists("{name}"): time.sleep(0.05)
door = socket.socket(socket.AF_UNIX); door.connect("{name}")
door.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [card]))])
print("passed on", flush=True)
{then}
"""


@pytest.fixture(scope="module")
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """An engine, and for how long a card may be held by those it was not given to."""
    engine, seconds = request.param
    if engine == "container" and missing():
        pytest.skip(missing())
    folder = tmp_path_factory.mktemp(engine)
    options = ("--simulate-cards", str(CARDS))
    with a_platform(folder, engine, *options, settings=f"held_card_seconds = {seconds}\n") as made:
        if engine == "container":
            (folder / "image").write_bytes(image_of_busybox({}))
            done = made.podman("import", str(folder / "image"), IMAGE)
            assert done.returncode == 0, done.stderr.decode()
        yield made


only_warns = pytest.mark.parametrize("platform", [("process", 0)], indirect=True, ids=str)
ends = pytest.mark.parametrize("platform", [("process", 1), ("container", 1)], indirect=True, ids=str)


@pytest.fixture
def client(platform: Platform) -> Iterator[Client]:
    with Client(data=platform.data, language="en") as client:
        yield client


def run(platform: Platform, client: Client, program: str, **more: Any) -> Job:
    engine = platform.options[1]
    more |= {"image": IMAGE} if engine == "container" else {}
    return client.submit(command=[*PYTHONS[engine], program], cpu="100m", memory="64M", **more)


def passed_on(platform: Platform, client: Client, name: str, then: str = "") -> tuple[Job, Job]:
    """Who passed the card on, and who has it now and hears no signal."""
    taker = run(platform, client, TAKE.format(name=name), name="taker", grace="1s", retries={"exit": 3})
    giver = run(platform, client, PASS_ON.format(name=name, then=then), cards=1, name="giver")
    wait_until(lambda: "took" in taker.logs(), 60, lambda: f"{giver.refresh().reason} {giver.logs()}")
    return giver, taker


def troubles(client: Client) -> list[str]:
    return [card.trouble for node in client.nodes() for card in node.cards if card.trouble]


def codes(job: Job) -> list[str]:
    return [event.code for event in job.events()]


def trail(client: Client, job: Job) -> list[str]:
    return [line.action for line in client.audit() if line.object == job.id and line.who == "system"]


def fills(client: Client) -> set[str]:
    """The buckets of the ledger that grow from here on."""
    before = client.ledger()["total"]["buckets"]
    found: set[str] = set()

    def has_grown() -> bool:
        now = client.ledger()["total"]["buckets"]
        found.update(name for name in now if now[name] != before[name])
        return bool(found)

    wait_until(has_grown)
    return found


def all_cards_work(platform: Platform, client: Client) -> None:
    done = run(platform, client, "print('well')", cards=CARDS).wait(timeout=60)
    assert done.state == "succeeded", done.reason


@only_warns
def test_who_keeps_a_card_is_named_to_its_owner_and_to_admins_and_the_card_counts_as_unhealthy(
    platform: Platform, client: Client
) -> None:
    giver, taker = passed_on(platform, client, "kept")
    assert giver.wait(timeout=60).state == "succeeded"
    wait_until(lambda: "story.keeps_card" in codes(taker))
    (trouble,) = troubles(client)
    assert f"of {taker.id} (worker-0)" in trouble
    for command in ("nodes", "doctor"):
        assert trouble in platform.run(command).out
    waits = run(platform, client, "print('at last')", cards=CARDS)
    wait_until(lambda: waits.refresh().reason_code == "waiting.card_held")
    assert taker.id in waits.refresh().reason
    assert "它占用了没有分给它的卡" in platform.good("events", taker.id, YARD_LANG="zh")
    assert trail(client, taker) == ["workload.warn_holder"]
    wait_until(lambda: fills(client) == {"free", "unhealthy"} or fills(client) == {"reserved", "unhealthy"})
    taker.stop()
    assert taker.wait(timeout=60).state == "stopped", "the admin wants nobody to be ended for it"
    assert waits.wait(timeout=60).state == "succeeded"
    wait_until(lambda: fills(client) == {"free"})


@ends
def test_who_keeps_a_card_of_a_job_that_has_ended_is_ended_and_the_card_is_everybodys(
    platform: Platform, client: Client
) -> None:
    giver, taker = passed_on(platform, client, "kept")
    assert giver.wait(timeout=60).state == "succeeded"
    ended = taker.wait(timeout=120)
    assert (ended.state, ended.reason_code) == ("failed", "ended.kept_card")
    assert "Ended: it held what it was not given (in worker-0)." in ended.reason
    assert "占用了没有分给它的卡" in platform.good("show", taker.id, YARD_LANG="zh")
    assert codes(taker).count("story.keeps_card") == 1
    assert trail(client, taker) == ["workload.end_holder", "workload.warn_holder"]
    wait_until(lambda: fills(client) == {"free"})
    all_cards_work(platform, client)


@ends
def test_who_holds_a_card_that_another_uses_is_ended_and_the_other_goes_on(platform: Platform, client: Client) -> None:
    giver, taker = passed_on(platform, client, "shared", "while True: time.sleep(1)")
    ended = taker.wait(timeout=120)
    assert (ended.state, ended.reason_code) == ("failed", "ended.kept_card")
    wait_until(lambda: troubles(client) == [])
    assert giver.refresh().state == "running"
    giver.stop()
    assert giver.wait(timeout=60).state == "stopped"
