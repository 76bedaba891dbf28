"""A made-up cluster and a week of made-up work, under several rules side by side: `lab.replay synthetic`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.compare import Case, Measured, Rule, all_measured, measure, plots, rules_of, table
from lab.report import Report
from lab.synthetic import Habit, groups, nodes, work

if TYPE_CHECKING:
    from lab.replay import Options

DAYS = 7.0
HABIT = Habit(load=0.65)  # at least: what is added last may be large
SEEDS = (1, 2, 3)


def case_of(seed: int, most: int | None = None) -> Case:
    cluster = nodes()
    cards = sum(len(node.cards) for node in cluster)
    return Case(f"seed{seed}", cluster, groups(HABIT, cards), work(seed, cluster, HABIT, DAYS)[:most])


def _measured(seed: int, most: int | None, rule: Rule) -> Measured:
    return measure(case_of(seed, most), rule)


def replay(folder: Path, options: Options) -> Report:
    rules = rules_of(options.policies)
    tasks = [(seed, options.most, rule) for seed in options.seeds or SEEDS for rule in rules]
    measured = all_measured(_measured, tasks, options.processes)
    note = "104 cards of three models, four groups with guarantees, 24 people. Nothing here is of anybody."
    return Report("synthetic", [table("A week that is made up", measured, note)], [], plots("synthetic", measured))
