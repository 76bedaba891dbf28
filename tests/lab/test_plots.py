"""Plots that a person can read: sound SVG, round ticks, and no text on top of another."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from lab.plots import LETTER, WIDTH, Axis, bars, cdf, duration, lines, number, rows, ticks

SVG = "{http://www.w3.org/2000/svg}"
MANY = [(float(n), float(n % 97)) for n in range(20_000)]
WAITS = [1.5**n for n in range(40)]
PLOTS = {
    "lines": lines("Cards in use", {"strict": MANY, "ours": MANY}, Axis("days"), Axis("cards")),
    "steps": lines("Queue", {"strict": MANY}, Axis("time", "seconds"), Axis("jobs"), steps=True),
    "cdf": cdf("Waits", {"a": WAITS, "b & c": [0.0] * 5}, Axis("wait", "seconds", log=True, least=1.0)),
    "bars": bars("Mean wait", [f"{n:02d}" for n in range(1, 11)], {"a": [1.0] * 10, "b": [99.5] * 10}, Axis("hours")),
    "many": lines("Many rules", {f"a rule with a long name {n}": MANY[:9] for n in range(6)}, Axis("x"), Axis("y")),
    "marked": lines(
        "Given out", {"a": [(70, 70), (130, 96)]}, Axis("asked"), Axis("given", most=100.0), marks={"b": [(130, 95.0)]}
    ),
    "rows": rows(
        "Mean", ["shortest first, all placed anew", "FIFO"], {"a": [12.25, 3], "b": [127.4, None]}, Axis("days")
    ),
    "shares": lines("Part", {"a": [(0, 0.2), (9, 0.9)]}, Axis("x"), Axis("part", "percent", least=0, most=1)),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_sound_small_and_has_a_name_for_those_who_cannot_see_it(name: str) -> None:
    root = ElementTree.fromstring(PLOTS[name])

    assert len(PLOTS[name]) < 60_000
    assert root.get("aria-label") == root.findtext(f"{SVG}title")
    assert "prefers-color-scheme:dark" in root.findtext(f"{SVG}style", "")


@pytest.mark.parametrize("name", PLOTS)
def test_no_text_lies_on_another_or_leaves_the_page(name: str) -> None:
    root = ElementTree.fromstring(PLOTS[name])
    boxes = [_box(text) for text in root.iter(f"{SVG}text") if not text.get("transform")]

    assert len(boxes) > 6
    for left, top, right, bottom, words in boxes:
        assert 0 <= left <= right <= WIDTH, words
        assert 0 <= top <= bottom <= float(root.get("height", 0)), words
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one[4], other[4])


def _box(text: ElementTree.Element) -> tuple[float, float, float, float, str]:
    words, large = text.text or "", "title" in (text.get("class") or "")
    width = len(words) * (8.4 if large else LETTER * 0.95)
    x, y = float(text.get("x", 0)), float(text.get("y", 0))
    left = {"start": x, "middle": x - width / 2, "end": x - width}[text.get("text-anchor", "start")]
    return left, y - 10, left + width, y + 3, words


@pytest.mark.parametrize(("least", "most"), [(0, 1), (0, 97), (3, 1234), (0, 0.004), (-5, 5), (0, 1e7)])
def test_ticks_are_round_and_within(least: float, most: float) -> None:
    found = ticks(Axis("x"), least, most)

    assert 4 <= len(found) <= 10
    assert all(least - 1e-9 <= value <= most + 1e-9 for value in found)
    steps = {float(f"{b - a:.6g}") for a, b in pairwise(found)}
    assert len(steps) == 1
    assert re.fullmatch(r"[125](\.0)?e[+-]\d+", f"{steps.pop():.1e}")


def test_times_are_told_as_people_tell_them() -> None:
    assert [duration(s) for s in (0, 30, 90, 3600, 129_600, 864_000)] == [
        "0 s",
        "30 s",
        "1.5 min",
        "1 h",
        "1.5 d",
        "10 d",
    ]
    assert [number(n) for n in (0.5, 20, 1500, 2_500_000)] == ["0.5", "20", "1,500", "2.5M"]
    assert ticks(Axis("wait", "seconds", log=True), 1, 100_000) == [1, 10, 60, 600, 3600, 36_000, 86_400]


def test_a_step_holds_its_value_until_the_next() -> None:
    drawn = lines("s", {"a": [(0, 0), (1, 0), (2, 1)]}, Axis("x"), Axis("y", least=0, most=1), steps=True)

    path = re.search(r'class="line s0" d="([^"]*)"', drawn)
    assert path is not None
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+H[\d.]+V[\d.]+", path.group(1))


def test_a_mark_is_drawn_where_its_point_is_and_in_the_legend() -> None:
    axis = Axis("x", least=0.0, most=10.0)
    drawn = lines("s", {"a": [(0, 0), (10, 10)]}, axis, axis, marks={"published": [(10, 10), (5, 0)]})

    places = [tuple(map(float, found)) for found in re.findall(r'class="mark f1" d="M([\d.]+) ([\d.]+)', drawn)]
    ends = re.search(r'class="line s0" d="M[\d.]+ ([\d.]+)L([\d.]+) ([\d.]+)"', drawn)
    assert ends is not None
    lowest, right, highest = map(float, ends.groups())
    middle = (right + float(re.findall(r'd="M([\d.]+) [\d.]+L', drawn)[0])) / 2
    assert set(places[:2]) == {(right, highest - 6), (middle, lowest - 6)}
    assert len(places) == 3


def test_a_bar_that_lies_is_as_long_as_its_value_and_none_is_none() -> None:
    drawn = rows("r", ["one", "two"], {"a": [10.0, 5.0], "b": [2.5, None]}, Axis("x", least=0.0, most=10.0))

    bars_ = re.findall(r'<rect class="f(\d)" x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="13"', drawn)
    whole = float(bars_[0][1])
    assert [(kind, float(width) / whole) for kind, width in bars_] == [
        ("0", 1.0),
        ("1", pytest.approx(0.25, abs=0.001)),
        ("0", pytest.approx(0.5, abs=0.001)),
    ]
