"""The reader of an image's name."""

from __future__ import annotations

from gpuyard.dialects.native.marks import Findings, Found
from gpuyard.dialects.native.values import text
from gpuyard.domain.errors import BadInput
from gpuyard.domain.images import LONGEST_REFERENCE, read_image_name
from gpuyard.domain.problems import Problem


def image(found: Found) -> str:
    value = text(found, limit=LONGEST_REFERENCE)
    if read_image_name(value) is None:
        raise found.wrong(Problem.IMAGE)
    return value


def check_image_name(value: str) -> str:
    """The same for a name that stands alone. Raises BadInput."""
    found = Found({"image": value}, (), Findings(None))
    name = found.findings.attempt(image, found.inside("image"))
    found.findings.raise_if_any()
    if name is None:
        raise BadInput(found.wrong(Problem.IMAGE).reason)
    return name
