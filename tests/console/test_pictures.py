"""The pictures in README and the tutorials, made from a simulated cluster on which a whole team is at work.

`make pictures` puts them where the pages show them (docs/pictures); every other run only makes sure that it can.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.cli.yard import wait_until
from tests.console.conftest import PICTURES
from tests.console.visits import Visits
from tests.platforms import a_platform

from gpuyard import Client, Job

SHOWN = Path(os.environ.get("YARD_PICTURES", PICTURES))
OWN = "a long enough secret"
TEAM = {"vision": ("ann", "liwei"), "speech": ("bob", "chen"), "robots": ("mia",)}
# owner, name, cards of each replica, replicas, model
WORK = (
    ("ann", "resnet-sweep", 8, 4, "A100"),
    ("ann", "eval-coco", 1, 1, "A100"),
    ("liwei", "vit-large", 8, 2, "H100"),
    ("liwei", "distill", 4, 1, "H100"),
    ("bob", "asr-conformer", 8, 2, "A100"),
    ("bob", "tts-finetune", 2, 3, "A100"),
    ("chen", "whisper-zh", 8, 2, "H100"),
    ("mia", "grasp-policy", 4, 4, "A100"),
    ("mia", "sim-rollouts", 1, 6, "A100"),
)
WAITING = (
    ("ann", "clip-pretrain", 8, 6, "A100"),
    ("chen", "whisper-large", 8, 3, "H100"),
    ("mia", "world-model", 8, 4, "A100"),
)


@dataclass
class Team:
    url: str
    waiting: dict[str, str]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("yard")
    with (
        a_platform(folder, "simulated", "--nodes", "12x8:A100,6x8:H100,2x8:ascend") as yard,
        Client(data=yard.data) as owner,
        ExitStack() as stack,
    ):
        people = {}
        for group, members in TEAM.items():
            owner.create_group(group, quota={"nvidia": 64}, guarantees={"nvidia": 32})
            for member in members:
                owner.create_user(member, password=OWN, group=group, role="lead" if member == members[0] else "member")
                token = owner.create_token("for pictures", user=member).token
                people[member] = stack.enter_context(Client(yard.url, token))
        people["ann"].create_env("notebooks", cards=1, cpu=8, memory="32G")
        running = [submit(people, *work) for work in WORK]
        waiting = {work[1]: submit(people, *work).id for work in WAITING}
        owner.cordon(owner.nodes()[5].name)
        wait_until(lambda: sum(job.refresh().state == "running" for job in running) >= len(WORK) - 1)
        yield Team(yard.url, waiting)


def submit(people: dict[str, Client], owner: str, name: str, cards: int, replicas: int, model: str) -> Job:
    return people[owner].submit(name=name, cards=cards, replicas=replicas, models=[model], command="sleep 86400")


def shown(visit: Visits, name: str) -> None:
    SHOWN.mkdir(parents=True, exist_ok=True)
    visit.page.wait_for_timeout(600)  # what moves comes to rest, so that the same picture comes out again
    file = SHOWN / f"{name}-{visit.language}.png"
    visit.page.screenshot(path=file, animations="disabled")
    assert file.stat().st_size > 10_000


def test_the_overview_and_a_job_that_waits_are_pictured(
    team: Team, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language, width=1280, height=860)
    visit.enter(team.url, "ann", OWN)
    expect(visit.page.locator("canvas[data-drawn]")).to_be_visible()
    shown(visit, "overview")
    visit.page.goto(f"{team.url}/jobs/{team.waiting['clip-pretrain']}?tab=why")
    expect(visit.page.get_by_role("main").get_by_text("clip-pretrain").first).to_be_visible()
    shown(visit, "why")
    visit.page.goto(f"{team.url}/jobs")
    expect(visit.page.get_by_text("resnet-sweep").first).to_be_visible()
    shown(visit, "jobs")
