"""Virtual machines drawn from the text of `--nodes`."""

from __future__ import annotations

import pytest

from gpuyard.domain.errors import BadInput
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.engines.virtual import draw_nodes
from gpuyard.words import say


def kinds(text: str) -> list[tuple[str, int, set[tuple[str, str]]]]:
    return [(n.name, len(n.cards), {(card.device, card.model) for card in n.cards}) for n in draw_nodes(text)]


def test_one_shape_is_what_it_always_was() -> None:
    assert draw_nodes("20x8") == virtual_nodes(20, 8)
    assert draw_nodes("4x8:ascend") == virtual_nodes(4, 8, "ascend")
    assert draw_nodes("3x0") == virtual_nodes(3, 0)


def test_several_shapes_are_counted_through_and_keep_their_models() -> None:
    assert kinds("1x2:A100, 2x1:P100,1x8:ascend,1x4:ascend/Ascend 910B,1x0") == [
        ("sim-1", 2, {("nvidia", "A100")}),
        ("sim-2", 1, {("nvidia", "P100")}),
        ("sim-3", 1, {("nvidia", "P100")}),
        ("sim-4", 8, {("ascend", "Simulated ascend")}),
        ("sim-5", 4, {("ascend", "Ascend 910B")}),
        ("sim-6", 0, set()),
    ]
    assert [node.name for node in draw_nodes("90x8:A100,10x8:P100")][99] == "sim-100"
    assert draw_nodes("90x8:A100,10x8")[0].name == "sim-001"


def test_they_hold_the_images_they_are_drawn_with() -> None:
    nodes = draw_nodes("1x8:A100=pytorch/pytorch:2.4=python, 1x8=localhost/ours:1 ,1x0")
    assert [node.images for node in nodes] == [
        ("docker.io/library/python:latest", "docker.io/pytorch/pytorch:2.4"),
        ("localhost/ours:1",),
        (),
    ]
    assert kinds("1x8:A100=python")[0][2] == {("nvidia", "A100")}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", ""),
        ("many", "many"),
        ("0x8", "0x8"),
        ("8", "8"),
        ("2x8,", ""),
        ("2x8,x8", "x8"),
        ("2x8:", "2x8:"),
        ("2x9999", "2x9999"),
        ("２x8", "２x8"),
        ("2x8:tpu/v4", "tpu"),
        ("2x8:/A100", "2x8:/A100"),
        ("2x8:A100;rm", "2x8:A100;rm"),
        ("2x8=", "image"),
        ("2x8:A100=python=-v/:/x", "-v/:/x"),
        ("99999x1,99999x1", "99999x1,99999x1"),
    ],
)
def test_what_cannot_be_meant_is_named_in_both_languages(text: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        draw_nodes(text)
    for language in ("en", "zh"):
        sentence = say(caught.value.reason, language)
        assert "--nodes" in sentence
        assert part in sentence
