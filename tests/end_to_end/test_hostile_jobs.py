"""Jobs that misbehave leave the platform well, the machine clean and the cards free."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.cli.yard import Yard, wait_until

from gpuyard import Client

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cgroups and private rooms need root")


def platform_is_well(client: Client) -> None:
    """A fresh job on both cards runs at once, and nothing is in trouble."""
    wait_until(lambda: all(not card.trouble for node in client.nodes() for card in node.cards), seconds=30)
    assert client.submit(command=["echo", "well"], cards=2).wait(timeout=60).state == "succeeded"


def ours(marker: str) -> list[int]:
    """Living processes whose command line holds the marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@needs_root
def test_a_fork_bomb_is_capped_and_stopped(client: Client) -> None:
    job = client.submit(command=["sh", "-c", "f() { f | f & }; f; sleep 60"], cards=1, grace="1s")
    wait_until(lambda: job.refresh().state == "running")
    time.sleep(1.0)
    job.stop()
    assert job.wait(timeout=60).state == "stopped"
    platform_is_well(client)


@needs_root
def test_a_memory_hog_fails_as_out_of_memory(client: Client) -> None:
    hog = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    job = client.submit(command=["python3", "-c", hog], memory="200M", cards=1).wait(timeout=60)
    assert (job.state, job.reason_code) == ("failed", "ended.out_of_memory")
    assert "200M" in job.reason
    platform_is_well(client)


def test_a_job_that_ignores_the_stop_signal_is_ended_after_its_grace(client: Client) -> None:
    deaf = "trap '' TERM; echo ready; while true; do sleep 0.1; done"
    job = client.submit(command=deaf, cards=2, grace="1s")
    wait_until(lambda: "ready" in job.logs())
    job.stop()
    assert job.wait(timeout=60).state == "stopped"
    platform_is_well(client)


@needs_root
def test_a_double_forked_child_does_not_keep_the_card(client: Client) -> None:
    marker = f"holder-{os.getpid()}-{time.monotonic_ns()}"
    holder = f"setsid nohup sh -c 'exec 5<\"$YARD_CARD_PATHS\"; exec -a {marker} sleep 600' >/dev/null 2>&1 & sleep 0.5"
    job = client.submit(command=["bash", "-c", holder], cards=1).wait(timeout=60)
    assert job.state == "succeeded"
    assert ours(marker) == []
    platform_is_well(client)


def test_a_card_held_by_a_stranger_is_not_given_out_and_the_holder_is_named(machine: Yard, client: Client) -> None:
    stand_in = next(iter(sorted((machine.data / "simulated").iterdir())))
    with stand_in.open():
        wait_until(lambda: any(card.trouble for node in client.nodes() for card in node.cards), seconds=30)
        job = client.submit(command=["true"], cards=2)
        wait_until(lambda: job.refresh().reason_code == "waiting.card_held")
        assert str(os.getpid()) in job.refresh().reason
    assert job.wait(timeout=60).state == "succeeded"


def test_an_endless_line_and_bytes_that_are_no_text_do_no_harm(client: Client) -> None:
    program = (
        "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40000)\nsys.stdout.buffer.write(b'x' * 5_000_000)"
    )
    job = client.submit(command=["python3", "-c", program]).wait(timeout=60)
    assert job.state == "succeeded"
    text = job.logs()
    assert text.endswith("x" * 1000)
    assert client.health()["status"] == "ok"


def test_two_hundred_short_jobs_all_have_their_log(client: Client) -> None:
    jobs = [client.submit(command=f"echo this is {n}; exit 3", cpu="10m", memory="16M") for n in range(200)]
    for number, job in enumerate(jobs):
        assert (job.wait(timeout=120).exit_code, job.logs()) == (3, f"this is {number}\n")
