"""The replay of the cluster of Alibaba, on a small one that is made up here."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from lab.replay import Options

from lab import openb

MODELS = (("T4", 2, 32_000), ("G2", 8, 96_000), ("P100", 2, 16_000))


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder, chance = tmp_path / "openb", Random(5)
    folder.mkdir()
    nodes = [f"node-{n:02d},{cpu},262144,{cards},{model}" for n, (model, cards, cpu) in enumerate(MODELS * 4)]
    _write(folder / "openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model", nodes)
    kinds = ("12000,4096,1,1000,", "3000,4096,1,810,", "6000,4096,1,470,", "9000,4096,0,0,", "8000,4096,2,1000,T4|G2")
    pods = [f"pod-{n:03d},{chance.choice(kinds)}" for n in range(40)]
    _write(folder / "openb_pod_list_small.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", pods)
    return tmp_path


def _write(path: Path, head: str, lines: list[str]) -> None:
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def test_pods_come_until_they_ask_for_130_per_cent_in_an_order_that_the_seed_decides(traces: Path) -> None:
    nodes, pods = openb.read_nodes(traces), openb.read_pods(traces, "small")
    capacity = 1000 * sum(len(node.cards) for node in nodes)
    coming = openb.arrivals(pods, 42, capacity)
    assert sum(pod.milli for pod in coming) >= 1.3 * capacity > sum(pod.milli for pod in coming[:-1])
    assert coming == openb.arrivals(pods, 42, capacity) != openb.arrivals(pods, 43, capacity)


def test_a_replay_tells_every_way_of_placing_beside_the_others(traces: Path) -> None:
    report = openb.replay(traces, Options(seeds=(42, 43)))
    at_130, at_100, seeds_130, _, speeds = report.tables
    for table in (at_100, at_130):
        assert [row[0] for row in table.rows] == ["small"]
        assert all(50 < float(value or 0) <= 100 for value in table.rows[0][1:5])
    random, _, given = (float(value or 0) for value in at_130.rows[0][1:4])
    assert given > random
    assert len(speeds.rows) == 3
    name, how, *each, spread = seeds_130.rows[0]
    assert (name, how, seeds_130.columns[2:4]) == ("small", "random", ("seed 42", "seed 43"))
    values = [float(value or 0) for value in each]
    assert (sum(values) / 2, max(values) - min(values)) == (random, spread)


def test_what_is_given_out_is_followed_from_the_first_card_asked_for_to_the_last(traces: Path) -> None:
    outcome = openb.run(openb.read_nodes(traces), openb.read_pods(traces, "small"), "best fit", 42)
    assert len(outcome.curve) == openb.DEMAND + 1
    assert outcome.curve == sorted(outcome.curve)
    assert (outcome.curve[100], outcome.curve[-1]) == (outcome.at_100, outcome.at_130)
    assert all(given <= asked + 10 for asked, given in enumerate(outcome.curve))  # one request may be for many cards


def test_plots_show_the_way_of_each_workload_and_what_stays_empty_in_the_end(traces: Path) -> None:
    drawn = openb.replay(traces, Options(seeds=(42,))).plots
    assert set(drawn) == {"openb-small.svg", "openb-empty.svg"}
    assert drawn["openb-small.svg"].count('class="line') == 4
    assert "FGD" not in drawn["openb-small.svg"]  # nothing was published of it


def test_one_pass_over_the_whole_queue_starts_what_fits(traces: Path) -> None:
    pods = openb.read_pods(traces, "small")
    placed, _ = openb.decide_all(openb.read_nodes(traces), pods, 42)
    assert 0 < placed <= len(pods)
