"""`yard env start` with another image, where work runs in images: nothing that was installed is lost unasked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.yard import OWNER_SECRET, running
from tests.cli.terminal import Terminal
from tests.cli.yard import Yard

from gpuyard.api.parts import ImagePolicy
from gpuyard.domain.lifecycle import PauseAsked


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Yard]:
    """Someone whose environment `dev` is made of the image debian:12, and rests."""
    with running(tmp_path, images=ImagePolicy("container", uses_images=True)) as server:
        (tmp_path / "home").mkdir()
        person = Yard(tmp_path / "home", tmp_path / "none", {"YARD_URL": server.url, "YARD_TOKEN": OWNER_SECRET})
        id = person.good("env", "create", "dev", "--image", "debian:12", "--detach")
        server.step(id, PauseAsked("admin"))
        yield person


def test_the_same_image_is_no_question(stopped: Yard) -> None:
    stopped.good("env", "start", "dev", "--image", "debian:12", "--detach")


def test_where_nobody_can_be_asked_another_one_needs_a_yes(stopped: Yard) -> None:
    for command in ("start", "restart"):
        refused = stopped.run("env", command, "dev", "--image", "debian:13", "--detach")
        assert (refused.code, "--yes" in refused.err) == (2, True)
        assert stopped.json("env", "show", "dev")["image"] == "debian:12"
    stopped.good("env", "start", "dev", "--image", "debian:13", "--detach", "--yes")
    assert stopped.json("env", "show", "dev")["image"] == "debian:13"


@pytest.mark.parametrize(("answer", "image"), [("n", "debian:12"), ("y", "debian:13")])
def test_in_a_terminal_it_is_asked_and_said_what_is_lost(stopped: Yard, answer: str, image: str) -> None:
    terminal = Terminal(stopped, "env", "start", "dev", "--image", "debian:13", "--detach")
    terminal.read_until("thrown away")
    terminal.read_until("[y/N]")
    terminal.type(answer + "\n")
    assert terminal.exit_code() == (0 if answer == "y" else 130)
    assert stopped.json("env", "show", "dev")["image"] == image
