"""Their job files, of both kinds, as ours."""

from __future__ import annotations

from gpuyard.dialects.brought import Brought
from gpuyard.dialects.volcano.jobs import read_crd
from gpuyard.dialects.volcano.notes import Notes
from gpuyard.dialects.volcano.seed import read_seed
from gpuyard.dialects.volcano.text import parse


def read(text: str) -> Brought:
    """Raises BadInput with what is wrong, in their tools' words and with its line."""
    parsed = parse(text)
    notes = Notes(parsed.marks, parsed.warnings, has_lines="\n" in text)
    is_crd = any(key in parsed.data for key in ("apiVersion", "kind", "spec", "metadata"))
    job = (read_crd if is_crd else read_seed)(parsed.data, notes)
    return Brought(job, tuple(notes.unused), tuple(notes.warnings))
