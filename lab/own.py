"""A platform's own past under its own policy and under others: `lab.replay own DATA [--policy FILE ...]`.

DATA is the data folder of the platform (or its folder `journal`). Nothing is written there, and no server is asked: the
journal of decisions tells who came when and how long it ran. `yard what-if` answers the same of a running platform,
with who would gain and who would lose.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from gpuyard.domain.policy import Policy
from gpuyard.journal.history import read_history
from lab.compare import BY_AGE, Case, Rule, measure, plots, policy_of, table
from lab.report import Report, Unfit, counted

if TYPE_CHECKING:
    from lab.replay import Options


def replay(folder: Path, options: Options) -> Report:
    journal = folder / "journal" if (folder / "journal").is_dir() else folder
    policies = [Rule(Path(file).stem, policy_of(Path(file))) for file in options.policies]
    history = read_history(journal, None, inf)
    if not history.ways:
        raise Unfit(f"no journal of decisions with any work in {journal}; give the data folder of a platform")
    moments = [moment for way in history.ways for moment in (way.at, way.over_at, way.first_start())]
    history.until = max(moment for moment in moments if moment is not None)
    coming, holding, guessed = history.arrivals()
    case = Case(
        journal.resolve().parent.name or "own",
        history.nodes,
        history.groups,
        coming[: options.most],
        {
            "holding": holding,
            "changes": history.changes,
            "begin": history.begin,
            "until": history.until,
            "habits": history.habits(),
            "past": history.past,
            "run_times": history.run_times,
            "typical": history.typical,
        },
    )
    measured = [measure(case, rule) for rule in _rules(history.policy, policies)]
    note = f"{counted(len(coming) + len(holding), 'workload')}; of {guessed} that never ran the run time is a guess."
    return Report("own", [table("Your own past", measured, note)], [], plots("own", measured))


def _rules(present: Policy, others: list[Rule]) -> list[Rule]:
    return [Rule("as it is", present), *others, Rule("strict order", BY_AGE, strict=True)]
