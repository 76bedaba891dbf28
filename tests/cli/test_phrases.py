"""The phrases of the command: each has one meaning, told once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gpuyard import cli

FOLDER = Path(cli.__file__).parent


def keys_of_tables(file: Path) -> Iterator[str]:
    """The keys of every table of phrases written in this file: pairs of English and Chinese."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple) and len(value.elts) == 2:
                    yield str(key.value)


def test_no_phrase_stands_in_two_tables() -> None:
    counted = Counter(key for file in sorted(FOLDER.glob("*phrases.py")) for key in keys_of_tables(file))
    assert counted["env.create"] == 1
    assert counted["opt.port"] == 1
    assert [key for key, count in counted.items() if count > 1] == []
