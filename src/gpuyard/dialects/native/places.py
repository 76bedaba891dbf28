"""Readers of what says where a job may run, and where it saves its work: models, nodes, labels, checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gpuyard.dialects.native.marks import Found
from gpuyard.dialects.native.parts import MAX_PATH_BYTES, Reader, read_keys
from gpuyard.dialects.native.values import as_written, text
from gpuyard.domain.cluster import LABEL_KEY_RULE, LONGEST_LABEL, is_label_value
from gpuyard.domain.problems import Problem
from gpuyard.domain.workload import Where

MAX_MODELS = 20
MAX_WHERE_NODES = 1000
MAX_WHERE_LABELS = 50
MODEL_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()/-]{0,63}")
NODE_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
LONGEST_NAME_BYTES = 512
BETWEEN_NAMES = ","


def _names(rule: re.Pattern[str], problem: Problem, limit: int) -> Callable[[Found], tuple[str, ...]]:
    """A reader of several names, each once: a list of them, or one text with commas between them."""

    def read_name(found: Found) -> str:
        value = as_written(found, limit=LONGEST_NAME_BYTES).strip()
        if not rule.fullmatch(value):
            raise found.wrong(problem)
        return value

    def read(found: Found) -> tuple[str, ...]:
        if isinstance(found.value, list):
            if len(found.value) > limit:
                raise found.wrong(Problem.TOO_MANY, {"limit": limit})
            if not found.value:
                raise found.wrong(Problem.BLANK)
            items = [found.inside(index) for index in range(len(found.value))]
        else:
            line = as_written(found, limit=LONGEST_NAME_BYTES * limit)
            items = [Found(part, found.path, found.findings) for part in line.split(BETWEEN_NAMES)]
        names: list[str] = []
        for item in items:
            name = found.findings.attempt(read_name, item)
            if name in names:
                found.findings.note(item.wrong(Problem.REPEATED).reason)
            elif name is not None:
                names.append(name)
        return tuple(names)

    return read


models = _names(MODEL_RULE, Problem.MODEL, MAX_MODELS)


def labels(found: Found) -> tuple[tuple[str, str], ...]:
    """Sorted by key: the order in which somebody wrote them means nothing."""
    if not isinstance(found.value, Mapping):
        raise found.wrong(Problem.MAPPING)
    if len(found.value) > MAX_WHERE_LABELS:
        raise found.wrong(Problem.TOO_MANY, {"limit": MAX_WHERE_LABELS})
    pairs = []
    for inner in map(found.inside, found.value):
        key = found.findings.attempt(_label_key, inner)
        value = found.findings.attempt(_label_value, inner)
        if key is not None and value is not None:
            pairs.append((key, value))
    return tuple(sorted(pairs))


def _label_key(found: Found) -> str:
    key = str(found.path[-1])
    if not LABEL_KEY_RULE.fullmatch(key):
        raise found.wrong_key(Problem.LABEL_KEY, {"limit": LONGEST_LABEL})
    return key


def _label_value(found: Found) -> str:
    value = as_written(found, limit=LONGEST_NAME_BYTES)
    if not is_label_value(value):
        raise found.wrong(Problem.LABEL_VALUE, {"limit": LONGEST_LABEL})
    return value


WHERE_KEYS: Mapping[str, Reader] = {
    "nodes": _names(NODE_RULE, Problem.NODE_NAME, MAX_WHERE_NODES),
    "labels": labels,
}


def where(found: Found) -> Where:
    return Where(**read_keys(found, WHERE_KEYS))


def checkpoint(found: Found) -> str:
    """A folder as the job sees it: absolute, or inside its home. Never all of either."""
    value = text(found, limit=MAX_PATH_BYTES)
    parts = [part for part in value.split("/") if part not in ("", ".")]
    too_long = any(len(part.encode()) > 255 for part in parts)
    if not parts or ".." in parts or too_long or value.startswith("~"):
        raise found.wrong(Problem.CHECKPOINT)
    return ("/" if value.startswith("/") else "") + "/".join(parts)
