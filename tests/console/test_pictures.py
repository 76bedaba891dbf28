"""The pictures in README and the tutorials, made from a simulated cluster on which a whole team is at work.

`make pictures` puts them where the pages show them (docs/pictures); every other run only makes sure that it can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.cli.yard import Yard, wait_until
from tests.console.conftest import PICTURES
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

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
    yard: Platform
    people: dict[str, Yard]
    waiting: dict[str, str]

    @property
    def url(self) -> str:
        return self.yard.url


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("yard")
    with a_platform(folder, "simulated", "--nodes", "12x8:A100,6x8:H100,2x8:ascend") as yard:
        people = {}
        for group, members in TEAM.items():
            yard.good("group", "create", group, "--quota", "nvidia=64", "--guarantee", "nvidia=32")
            for member in members:
                role = "lead" if member == members[0] else "member"
                yard.good("user", "create", member, "--role", role, "--group", group, "--password-stdin", stdin=OWN)
                made = json.loads(yard.good("token", "create", "for pictures", "--user", member, "-o", "json"))
                people[member] = yard.as_user(made["token"])
        people["ann"].good("env", "create", "notebooks", "--cards", "1", "--cpu", "8", "--memory", "32G", "--detach")
        for work in WORK:
            submit(people, *work)
        waiting = {work[1]: submit(people, *work) for work in WAITING}
        yard.good("nodes", "cordon", yard.json("nodes")[5]["name"])
        wait_until(lambda: len(yard.json("ls", "--state", "running")) >= len(WORK) - 1)
        yield Team(yard, people, waiting)


def submit(people: dict[str, Yard], owner: str, name: str, cards: int, replicas: int, model: str) -> str:
    options = ("--cards", str(cards), "--replicas", str(replicas), "--model", model, "--name", name)
    return people[owner].good("run", "--detach", *options, "--", "sleep", "86400")


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
    visit.log_in(team.url, "ann", OWN)
    expect(visit.page.locator("canvas[data-drawn]")).to_be_visible()
    shown(visit, "overview")
    visit.page.goto(f"{team.url}/jobs/{team.waiting['clip-pretrain']}?tab=why")
    expect(visit.page.get_by_role("main").get_by_text("clip-pretrain").first).to_be_visible()
    shown(visit, "why")
    visit.page.goto(f"{team.url}/jobs")
    expect(visit.page.get_by_text("resnet-sweep").first).to_be_visible()
    shown(visit, "jobs")
