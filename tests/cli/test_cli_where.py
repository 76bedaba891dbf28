"""Models, machines, labels and checkpoints on the command line."""

from __future__ import annotations

import pytest
from tests.cli.yard import Yard

FLAGS = [
    *("--cards", "1", "--model", "A100", "--model", "H100", "--node", "sim-1", "--label", "zone=north"),
    *("--together", "one_node", "--checkpoint", "out", "--preemptible", "--priority", "high"),
]


def test_the_flags_of_run_are_the_keys_of_a_job_file(simulated: Yard) -> None:
    job = simulated.good("run", "--detach", *FLAGS, "--", "sleep", "600").strip()
    shown = simulated.json("show", job)
    assert shown["roles"][0]["models"] == ["A100", "H100"]
    assert shown["roles"][0]["where"] == {"nodes": ["sim-1"], "labels": {"zone": "north"}}
    assert (shown["together"], shown["checkpoint"], shown["preemptible"]) == ("one_node", "out", True)
    assert shown["priority"] == 700
    told = simulated.good("show", job)
    for words in ("A100, H100", "sim-1", "zone=north", "one_node", "out"):
        assert words in told
    assert "进度目录" in simulated.good("show", job, YARD_LANG="zh")
    simulated.good("stop", job)


def test_a_priority_is_a_number_too_and_a_name_may_look_like_one(simulated: Yard) -> None:
    job = simulated.good("run", "--detach", "--priority", "321", "--name", "123", "--", "sleep", "600").strip()
    assert (simulated.json("show", job)["priority"], simulated.json("show", job)["name"]) == (321, "123")
    simulated.good("stop", job)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--priority", "hihg"], "high"),
        (["--model", "A100"], "cards"),
        (["--label", "zone"], "K=V"),
        (["--together", "near"], "one_node"),
        (["--checkpoint", "../out"], ".."),
    ],
)
def test_mistakes_are_told_with_what_was_meant(simulated: Yard, flags: list[str], words: str) -> None:
    done = simulated.run("run", "--detach", *flags, "--", "true")
    assert done.code == 2, done.err
    assert words in done.err


def test_labels_are_set_shown_and_taken_away(simulated: Yard) -> None:
    done = simulated.run("nodes", "label", "sim-1", "zone=north", "disk=a=b")
    assert done.code == 0, done.err
    assert "disk=a=b, zone=north" in done.err
    assert simulated.json("nodes")[0]["labels"] == {"disk": "a=b", "zone": "north"}
    table = simulated.good("nodes")
    assert "zone=north" in table
    assert "标签" in simulated.good("nodes", YARD_LANG="zh")
    simulated.good("nodes", "label", "sim-1", "zone-", "disk-")
    assert simulated.json("nodes")[0]["labels"] == {}


@pytest.mark.parametrize("wish", ["zone", "=north", "-", "zone-=x", "区=x"])
def test_what_is_no_label_is_refused(simulated: Yard, wish: str) -> None:
    done = simulated.run("nodes", "label", "sim-1", "--", wish)
    assert done.code == 2, done.err
    assert simulated.run("nodes", "label", "nowhere", "a=b").code == 3


def test_virtual_machines_have_the_models_they_were_given(yard: Yard) -> None:
    yard.up("--engine", "simulated", "--nodes", "1x2:A100,1x4:ascend/910B")
    assert [node["cards_total"] for node in yard.json("nodes")] == [{"nvidia": 2}, {"ascend": 4}]
    table = yard.good("nodes")
    assert "A100" in table
    assert "910B" in table
