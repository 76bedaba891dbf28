"""Replays traces through the real scheduler, months in seconds: `python -m lab.replay NAME [TRACES]`.

    itp        Microsoft ITP, ten clusters, 69,351 jobs: waits and utilisation of several rules side by side
    muri       two clusters of Philly: average completion times beside the published ones
    openb      Alibaba's cluster of 1,213 nodes: the share of cards that can be given out
    estimates  how often the promised start was kept
    synthetic  a cluster and a week of work that are made up, by a seed
    own        the history of a platform of your own: its data folder

TRACES is the folder that holds `itp/`, `muri/` and `openb/`; for `own` the data folder of a platform. Nothing of a
trace is ever written anywhere but into the tables and plots that are asked for.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, cast

from lab.report import Report, Unfit

MODULES = {
    "itp": "lab.itp",
    "muri": "lab.muri",
    "openb": "lab.openb",
    "estimates": "lab.estimates",
    "synthetic": "lab.made_up",
    "own": "lab.own",
}
REFUSED = 2
NEEDS_NO_FOLDER = {"synthetic"}
USES = {  # of what may be asked for
    "itp": {"only", "most", "processes", "policy", "slow"},
    "muri": {"only", "most", "processes"},
    "openb": {"seeds", "only", "processes"},
    "estimates": {"only", "most", "processes", "slow"},
    "synthetic": {"seeds", "most", "processes", "policy"},
    "own": {"most", "policy"},
}


@dataclass(frozen=True)
class Options:
    """What may be asked for on the command line. `USES` says who has a use for what; the others refuse it."""

    seeds: tuple[int, ...] = ()  # empty: those of the published runs
    only: tuple[str, ...] = ()  # of several traces these
    most: int | None = None  # jobs, of each trace, the first ones
    processes: int = 1
    policies: tuple[str, ...] = ()  # files with a policy each, to be compared
    slow: bool = False  # also what takes minutes


class Replays(Protocol):
    def replay(self, folder: Path, options: Options) -> Report: ...


def replay(name: str, folder: Path, options: Options) -> Report:
    module = cast(Replays, importlib.import_module(MODULES[name]))
    return module.replay(folder, options)


def main(arguments: list[str]) -> int:
    asked = _parser().parse_args(arguments)
    try:
        return _replayed(asked)
    except Unfit as problem:
        said = str(problem)
    except OSError as problem:  # a trace, or where the plots go
        if problem.filename is None:
            raise
        said = f"{problem.filename}: {problem.strerror}; name another one"
    print(f"replay {asked.name}: {said}", file=sys.stderr)
    return REFUSED


def _replayed(asked: argparse.Namespace) -> int:
    _require_use(asked)
    seeds, only = tuple(asked.seeds or ()), tuple(asked.only or ())
    options = Options(seeds, only, asked.most, asked.processes or 1, tuple(asked.policy or ()), asked.slow)
    gc.set_threshold(200_000, 20, 100)  # nothing here goes in circles, and looking for them costs a tenth of the time
    report = replay(asked.name, asked.folder or Path(), options)
    print(json.dumps(report.to_json(), indent=2) if asked.output == "json" else report)
    if asked.plots is not None:
        for path in report.write_plots(asked.plots):
            print(path, file=sys.stderr)
    return 0 if all(line.kept for line in report.lines) else 1


def _require_use(asked: argparse.Namespace) -> None:
    if asked.folder is None and asked.name not in NEEDS_NO_FOLDER:
        raise Unfit("which folder? See `python -m lab.replay -h`.")
    given = {name for name in ("seeds", "only", "most", "processes", "policy", "slow") if getattr(asked, name)}
    useless = [f"--{name}" for name in sorted(given - USES[asked.name])]
    if useless:
        used = ", ".join(f"--{name}" for name in sorted(USES[asked.name]))
        raise Unfit(f"there is no use for {', '.join(useless)} here; leave it out (there is for {used})")


class _Parser(argparse.ArgumentParser):
    """Says in one line what it does not understand."""

    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, f"replay: {message}. See `{self.prog} -h`.\n")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} will not do; take a whole number from 1 on")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    whole = argparse.RawDescriptionHelpFormatter
    parser = _Parser("python -m lab.replay", description=__doc__, formatter_class=whole)
    parser.add_argument("name", choices=sorted(MODULES))
    parser.add_argument("folder", nargs="?", type=Path, help="the traces, or a platform's data folder for `own`")
    parser.add_argument("--seeds", nargs="+", type=int, help="where chance plays a part")
    parser.add_argument("--only", nargs="+", metavar="TRACE", help="some of the traces: cluster04, trace1, default")
    parser.add_argument("--most", type=_at_least_one, metavar="JOBS", help="only the first of each trace")
    parser.add_argument("--processes", type=_at_least_one, help="that share the traces among them")
    parser.add_argument("--policy", nargs="+", metavar="FILE", help="policies to compare, as `yard policy` writes them")
    parser.add_argument("--slow", action="store_true", help="also what takes minutes")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write SVG plots there")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
