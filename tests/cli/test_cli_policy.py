"""Policies, guarantees and the merging of groups, by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import Yard

from gpuyard.dialects import native
from gpuyard.dialects.policy import write_policy
from gpuyard.domain.policy import Policy


@pytest.fixture
def clean(simulated: Yard) -> Iterator[Yard]:
    """With the usual policy before and after."""
    simulated.good("policy", "reset", "--yes")
    yield simulated
    simulated.good("policy", "reset", "--yes")


def test_the_policy_is_shown_with_what_each_rule_means(clean: Yard) -> None:
    shown = clean.good("policy", "show")
    assert "order.half_life" in shown
    assert "past use counts half after this long" in shown
    chinese = clean.good("policy", "show", YARD_LANG="zh")
    assert "历史用量减半" in chinese
    lines = shown.splitlines()
    assert len({line.index(word) for line, word in zip(lines, _values(lines), strict=True)}) == 1, "columns align"
    for key in write_policy(Policy()):
        assert f"\n{key}" in shown


def _values(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in lines]


def test_every_rule_has_a_meaning_in_both_languages(clean: Yard) -> None:
    for language in ("en", "zh"):
        for line in clean.good("policy", "show", YARD_LANG=language).splitlines():
            assert len(line.split(None, 2)) == 3, line


def test_what_is_shown_as_yaml_or_json_can_be_set_again(clean: Yard, tmp_path: Path) -> None:
    clean.good("policy", "set", "pools.p100.models=P100", "pools.p100.labels.a.b/c=yes", "servers=node-1, node-2")
    clean.good("policy", "set", "rings.ascend=[[0,1],[2,3]]", "groups.default=p100", "order.half_life=90.5s")
    document = clean.json("policy", "show")
    text = clean.good("policy", "show", "-o", "yaml")
    assert native.parse_yaml(text)[0] == document
    for name, content in (("policy.yaml", text), ("policy.json", json.dumps(document))):
        file = tmp_path / name
        file.write_text(content)
        clean.good("policy", "reset", "--yes")
        clean.good("policy", "set", "-f", str(file))
        assert clean.json("policy", "show") == document
    assert "nothing differs" in clean.run("policy", "set", "-f", "-", stdin=text).err


def test_setting_tells_what_changed(clean: Yard) -> None:
    told = clean.good("policy", "set", "order.half_life=3d", "backfill=false")
    assert told.splitlines()[0].split() == ["KEY", "BEFORE", "AFTER"]
    assert ["order.half_life", "7d", "3d"] in [line.split() for line in told.splitlines()]
    assert clean.json("policy", "set", "backfill=")["changed"] == [{"key": "backfill", "before": False, "after": True}]


def test_nonsense_is_refused_with_its_place(clean: Yard) -> None:
    before = clean.json("policy", "show")
    for arguments, place in [
        (["order.half_life=0"], "order.half_life"),
        (["order.halflife=3d"], "order.half_life"),
        (["groups.default=p100"], "groups.default"),
        (["placing=worst"], "placing"),
    ]:
        for language in ("en", "zh"):
            refused = clean.run("policy", "set", *arguments, YARD_LANG=language)
            assert refused.code == 2
            assert place in refused.err
    assert "nothing to change" in clean.run("policy", "set").err
    for wrong in ([], ["backfill"], ["backfill=true", "-f", "x.yaml"]):
        assert clean.run("policy", "set", *wrong).code == 2
    assert clean.json("policy", "show") == before


def test_resetting_asks_first(clean: Yard) -> None:
    clean.good("policy", "set", "priorities.low=100", "preempt.min_run=0s")
    assert clean.run("policy", "reset", stdin="n\n").code != 0
    assert clean.json("policy", "show")["priorities"]["low"] == 100
    clean.good("policy", "set", "priorities.low=")
    shown = clean.json("policy", "show")
    assert (shown["priorities"]["low"], shown["preempt"]["min_run"]) == (200, "0s")
    clean.good("policy", "reset", stdin="y\n")
    assert clean.json("policy", "show") == write_policy(Policy())


def test_a_change_is_tried_before_it_is_made(clean: Yard) -> None:
    ids = [
        clean.good("run", "--detach", "--cards", "4", "--replicas", "2", "--name", name, "--", "sleep", "600")
        for name in ("goes", "waits")
    ]
    try:
        clean.wait_for(ids[0], "running")
        nothing = clean.good("policy", "try", "backfill=false")
        assert "would change nothing" in nothing
        told = clean.json("policy", "try", "order.age_points=10")
        assert (told["starts_count"], told["evictions_count"]) == (0, 0)
        assert "不会带来变化" in clean.good("policy", "try", "backfill=false", YARD_LANG="zh")
        assert clean.json("policy", "show")["backfill"] is True
    finally:
        for id in ids:
            clean.good("stop", id)
            clean.wait_for(id)


def test_a_group_gets_guarantees_a_weight_and_an_order(clean: Yard) -> None:
    clean.good("group", "create", "sound", "--quota", "nvidia=6", "--guarantee", "nvidia=4", "--weight", "2")
    clean.good("group", "set", "sound", "--fifo", "--weight", "0.5")
    shown = clean.json("group", "show", "sound")
    assert (shown["weight"], shown["fifo"]) == (0.5, True)
    assert (shown["quotas"][0]["limit"], shown["quotas"][0]["guaranteed"]) == (6, 4)
    assert "GUARANTEED" in clean.good("quota")
    assert "保证" in clean.good("group", "show", "sound", YARD_LANG="zh")
    refused = clean.run("group", "set", "sound", "--guarantee", "nvidia=7")
    assert refused.code == 2
    assert "guarantee" in refused.err
    warned = clean.run("group", "set", "sound", "--quota", "nvidia=none", "--guarantee", "nvidia=20")
    assert warned.code == 0
    assert "20" in warned.err
    assert "8" in warned.err
    assert clean.run("group", "set", "sound", "--weight", "0").code == 2
    clean.good("group", "rm", "sound")


def test_groups_are_merged_after_saying_what_will_happen(clean: Yard) -> None:
    clean.good("group", "create", "left", "--quota", "nvidia=2")
    clean.good("group", "create", "right", "--quota", "nvidia=3")
    clean.good("user", "create", "mira", "--password", "correct horse battery", "--group", "left", "--role", "lead")
    id = clean.good("run", "--detach", "--group", "left", "--", "sleep", "600")
    clean.wait_for(id, "running")
    asked = clean.run("group", "merge", "left", "right", stdin="n\n")
    assert asked.code != 0
    for word in ("mira", "Merge left into right?", "1 of them run"):
        assert word in asked.err
    assert clean.json("group", "show", "left")
    done = clean.run("group", "merge", "left", "right", stdin="y\n", YARD_LANG="zh")
    assert done.code == 0, done
    assert "已并入" in done.err
    assert clean.run("group", "show", "left").code == 3
    assert clean.json("show", id)["group"] == "right"
    assert clean.json("show", id)["state"] == "running"
    assert clean.json("group", "show", "right")["quotas"][0]["limit"] == 5
    clean.good("stop", id)
    clean.wait_for(id)
    clean.good("group", "create", "third")
    assert clean.json("group", "merge", "right", "third", "--yes")["done"] is True
    clean.good("user", "rm", "mira")
    clean.good("group", "rm", "third")
