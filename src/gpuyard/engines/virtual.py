"""Virtual machines drawn from a line of text, as `--nodes` takes it: `10x8:A100,4x8:P100,2x8:ascend/910B`.

`2x8:A100=pytorch/pytorch:2.4=python:3.12` hold these images.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuyard.domain.cluster import Node
from gpuyard.domain.errors import BadInput
from gpuyard.domain.images import full_names, read_image_name
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import DEVICE_TYPES
from gpuyard.engines.simulated import virtual_nodes

MOST_NODES = 100_000
MOST_CARDS = 1024
OPTION = "--nodes"
_PART = re.compile(
    r"\s*(?P<count>[0-9]{1,7})x(?P<cards>[0-9]{1,5})"
    r"(?::(?:(?P<device>[a-z]+)/)?(?P<model>[A-Za-z0-9][\w .+()-]{0,63}))?\s*(?P<images>(?:=[^=]*)*)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class _Alike:
    """So many machines with so many cards of one kind."""

    count: int
    cards: int
    device: str
    model: str  # empty: as simulated cards are called
    images: tuple[str, ...]


def draw_nodes(text: str) -> list[Node]:
    """COUNTxCARDS, then perhaps `:` and a model, a device or device/model, then perhaps `=` and an image, again and
    again; several such parts with commas.

    Names go on counting over all parts. Raises BadInput naming the part that cannot be meant.
    """
    parts = [_read(part) for part in text.split(",")]
    total = sum(part.count for part in parts)
    if total > MOST_NODES:
        raise BadInput(_wrong(Problem.TOO_MANY, text, limit=MOST_NODES))
    names = (f"sim-{number:0{len(str(total))}d}" for number in itertools.count(1))
    return [replace(node, name=name) for name, node in zip(names, _drawn(parts), strict=False)]


def _drawn(parts: list[_Alike]) -> Iterator[Node]:
    for part in parts:
        for node in virtual_nodes(part.count, part.cards, part.device):
            cards = tuple(replace(card, model=part.model or card.model) for card in node.cards)
            yield replace(node, cards=cards, images=part.images)


def _read(text: str) -> _Alike:
    match = _PART.fullmatch(text)
    if match is None or int(match["count"]) == 0 or int(match["cards"]) > MOST_CARDS:
        raise BadInput(_wrong(Problem.VIRTUAL_NODES, text, limit=MOST_CARDS))
    device, model = match["device"], (match["model"] or "").strip()
    if device is None and (model in DEVICE_TYPES or not model):
        device, model = model or DEVICE_TYPES[0], ""
    if device is not None and device not in DEVICE_TYPES:
        raise BadInput(_wrong(Problem.ONE_OF, device, allowed=list(DEVICE_TYPES)))
    images = tuple(sorted({_read_image(image.strip()) for image in match["images"].split("=")[1:]}))
    return _Alike(int(match["count"]), int(match["cards"]), device or DEVICE_TYPES[0], model, images)


def _read_image(text: str) -> str:
    if read_image_name(text) is None:
        raise BadInput(_wrong(Problem.IMAGE, text))
    return full_names(text)[-1]


def _wrong(problem: Problem, value: str, **facts: object) -> Reason:
    return because(Code.BAD_VALUE, at=OPTION, problem=problem.value, value=value[:80], **facts)
