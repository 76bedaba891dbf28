"""Which benches there are, and which of them are meant. Needs nothing but Python, so that a name nobody knows is
refused before anything is set up.

python -m lab.bench_names [NAME ...]     says nothing when all are known, else which there are
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SUFFIX = "_bench"
REFUSED = 2


@dataclass(frozen=True)
class Bench:
    """A function of that name in the file that is named after its group: `gateway_bench.py` has the group `gateway`."""

    name: str
    group: str


class Unknown(Exception):
    """Words that mean none of the benches."""

    def __init__(self, words: Sequence[str], known: Sequence[Bench]) -> None:
        super().__init__(f"no bench is called {', '.join(words)}. There are:\n{listed(known)}")


def known_benches(folder: Path = HERE) -> list[Bench]:
    """Read, not imported: what the benches themselves import may not be installed yet."""
    files = sorted(folder.glob(f"*{SUFFIX}.py"))
    return [Bench(name, file.stem.removesuffix(SUFFIX)) for file in files for name in _measures(file)]


def _measures(file: Path) -> Iterator[str]:
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="MEASURES")], value=ast.Tuple(elts=elements)):
                yield from (element.id for element in elements if isinstance(element, ast.Name))


def chosen(asked: Sequence[str], known: Sequence[Bench]) -> list[Bench]:
    """Each once, in the order they are known in; all, when nothing is asked for. Raises Unknown."""
    words = [word for text in asked for word in re.split(r"[\s,]+", text) if word]
    if not words:
        return list(known)
    meant = {word: _meant(word, known) for word in words}
    if unknown := [word for word in words if not meant[word]]:
        raise Unknown(unknown, known)
    return [bench for bench in known if any(bench in benches for benches in meant.values())]


def _meant(word: str, known: Sequence[Bench]) -> list[Bench]:
    """The bench of that name, and the groups that begin so. A name in full does not mean longer ones."""
    in_full = any(bench.name == word for bench in known)
    return [
        bench
        for bench in known
        if bench.name == word or bench.group.startswith(word) or (not in_full and bench.name.startswith(word))
    ]


def listed(known: Sequence[Bench]) -> str:
    width = max(len(bench.name) for bench in known)
    return "\n".join(f"{bench.name:<{width}}  {bench.group}" for bench in known)


def main(asked: Sequence[str]) -> int:
    try:
        chosen(asked, known_benches())
    except Unknown as unknown:
        print(unknown, file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
