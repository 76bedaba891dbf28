"""Plots as SVG, written by ourselves: lines, steps, distributions and bars, readable on light and on dark pages.

Every plot brings its own ground, so it can be read wherever it is shown, and follows the reader's choice of light or
dark. Coordinates have one decimal and lines few points: a plot is some kilobytes of text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, BOTTOM = 78, 24, 56
TITLE_AT, LEGEND_AT, LEGEND_ROW = 28, 52, 20
LETTER = 6.7  # width of a letter of the small text, about
ROW_BAR, ROW_GAP, BEHIND = 15, 12, 44  # of bars that lie: thickness, space between groups, room for a value behind
MOST_POINTS = 400
COLOURS = 7

STYLE = """
.ground{fill:#fff}.text{fill:#24292f;font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}
.grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#57606a;stroke-width:1}.line{fill:none;stroke-width:2}
.mark{stroke:#fff;stroke-width:1.5}
.s0{stroke:#0969da}.s1{stroke:#cf4a00}.s2{stroke:#1a7f37}.s3{stroke:#8250df}.s4{stroke:#bf3989}.s5{stroke:#7d6100}
.s6{stroke:#57606a}.f0{fill:#0969da}.f1{fill:#cf4a00}.f2{fill:#1a7f37}.f3{fill:#8250df}.f4{fill:#bf3989}
.f5{fill:#7d6100}.f6{fill:#57606a}
@media(prefers-color-scheme:dark){.ground{fill:#0d1117}.mark{stroke:#0d1117}
.text{fill:#e6edf3}.grid{stroke:#30363d}.axis{stroke:#8b949e}
.s0{stroke:#58a6ff}.s1{stroke:#ff9457}.s2{stroke:#56d364}.s3{stroke:#bc8cff}.s4{stroke:#ff7bc0}.s5{stroke:#e3b341}
.s6{stroke:#8b949e}.f0{fill:#58a6ff}.f1{fill:#ff9457}.f2{fill:#56d364}.f3{fill:#bc8cff}.f4{fill:#ff7bc0}
.f5{fill:#e3b341}.f6{fill:#8b949e}}
""".replace("\n", "")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """`kind`: plain numbers, `percent` of one, or `seconds` (told as minutes, hours, days)."""

    label: str
    kind: str = "plain"
    log: bool = False
    least: float | None = None
    most: float | None = None

    def told(self, value: float) -> str:
        if self.kind == "percent":
            return f"{value * 100:g} %"
        return duration(value) if self.kind == "seconds" else number(value)


def number(value: float) -> str:
    if value and abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def duration(seconds: float) -> str:
    for unit, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds:g} s"


# --- ticks ----------------------------------------------------------------------------------------------------------

CLOCK = (1.0, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
LOG_CLOCK = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 86400.0, 864000.0, 8640000.0, 86400000.0)


def ticks(axis: Axis, least: float, most: float, about: int = 6) -> list[float]:
    """Round values within the two, about so many."""
    if axis.log:
        return _log_ticks(axis, least, most)
    step = _step(axis, (most - least) / about)
    first = math.ceil(least / step - 1e-9)
    found = [round((first + n) * step, 10) for n in range(int((most - first * step) / step + 1e-9) + 1)]
    return found or [least]


def _step(axis: Axis, rough: float) -> float:
    if rough <= 0:
        return 1.0
    if axis.kind == "seconds" and rough <= CLOCK[-1]:
        return next(float(step) for step in CLOCK if step >= rough)
    unit = 86400.0 if axis.kind == "seconds" else 1.0
    power = 10.0 ** math.floor(math.log10(rough / unit))
    return unit * min((power * m for m in (1, 2, 5, 10)), key=lambda step: abs(math.log(step * unit / rough)))


def _log_ticks(axis: Axis, least: float, most: float) -> list[float]:
    if axis.kind == "seconds":
        return [value for value in LOG_CLOCK if least * 0.999 <= value <= most * 1.001]
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    return [10.0**power for power in powers if least * 0.999 <= 10.0**power <= most * 1.001]


# --- the frame ------------------------------------------------------------------------------------------------------


class Frame:
    """Where things are on the page."""

    def __init__(self, x: Axis, y: Axis, xs: tuple[float, float], ys: tuple[float, float], top: float) -> None:
        self.x, self.y, self.xs, self.ys, self.top = x, y, xs, ys, top

    def across(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _part(self.x, value, self.xs)

    def up(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - self.top) * _part(self.y, value, self.ys)

    def drawn(self, *, x_ticks: bool = True) -> list[str]:
        left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = []
        for value in ticks(self.y, *self.ys):
            height = self.up(value)
            parts.append(f'<path class="grid" d="M{left} {height:.1f}H{right}"/>')
            parts.append(text(left - 8, height + 4, self.y.told(value), "end"))
        for value in ticks(self.x, *self.xs) if x_ticks else ():
            place = self.across(value)
            parts.append(f'<path class="grid" d="M{place:.1f} {self.top:.1f}V{bottom}"/>')
            parts.append(text(place, bottom + 18, self.x.told(value), "middle"))
        parts.append(f'<path class="axis" fill="none" d="M{left} {self.top:.1f}V{bottom}H{right}"/>')
        parts.append(text((left + right) / 2, HEIGHT - 14, self.x.label, "middle"))
        middle = (self.top + bottom) / 2
        turned = f'transform="rotate(-90 16 {middle:.1f})" '
        parts.append(text(16, middle, self.y.label, "middle", turned))
        return parts


def _part(axis: Axis, value: float, span: tuple[float, float]) -> float:
    least, most = span
    if axis.log:
        least, most, value = math.log10(least), math.log10(most), math.log10(max(value, least))
    part = (value - least) / (most - least) if most > least else 0.5
    return min(1.0, max(0.0, part))


def text(x: float, y: float, words: str, anchor: str = "start", more: str = "", kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _legend(names: Sequence[str], marks: Sequence[str] = ()) -> tuple[list[str], float]:
    """The names with their colours, in as many rows as they need, and where the plot begins below them."""
    parts, x, y = [], float(LEFT), float(LEGEND_AT)
    for place, name in enumerate([*names, *marks]):
        width = 26 + len(name) * LETTER + 18
        if x + width > WIDTH - RIGHT and x > LEFT:
            x, y = float(LEFT), y + LEGEND_ROW
        field = f'<rect class="f{place % COLOURS}" x="{x:.1f}" y="{y - 9:.1f}" width="18" height="9" rx="2"/>'
        parts.append(field if place < len(names) else _mark(x + 9, y - 4.5, place))
        parts.append(text(x + 24, y, name))
        x += width
    return parts, y + 16 if names else float(LEGEND_AT)


def _mark(x: float, y: float, number_: int) -> str:
    """A diamond on a thin ground of its own, so that it is seen where lines cross it."""
    shape = f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"
    return f'<path class="mark f{number_ % COLOURS}" d="{shape}"/>'


def _page(title: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
    about = f'role="img" aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
    ground = f'<style>{STYLE}</style><rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>'
    return "\n".join([head + about, ground, text(LEFT, TITLE_AT, title, kind="text title"), *parts, "</svg>", ""])


# --- what can be drawn ----------------------------------------------------------------------------------------------


def lines(
    title: str,
    series: Mapping[str, Points],
    x: Axis,
    y: Axis,
    *,
    steps: bool = False,
    marks: Mapping[str, Points] | None = None,
    dashed: Collection[str] = (),
) -> str:
    """One line for each name; with `steps` a value holds until the next point. Marks are points without a line. A
    dashed line lets another one be seen below it."""
    shown = {name: _thin(points) for name, points in series.items() if points}
    single = dict(marks or {})
    legend, top = _legend(list(shown), list(single))
    every = [point for points in (*shown.values(), *single.values()) for point in points]
    xs = _span(x, [place for place, _ in every])
    ys = _span(y, [value for _, value in every], grounded=True)
    frame = Frame(x, y, xs, ys, top)
    drawn = [
        _path(frame, points, place, steps, dashed=name in dashed) for place, (name, points) in enumerate(shown.items())
    ]
    for place, points in enumerate(single.values(), len(shown)):
        drawn += [_mark(frame.across(across), frame.up(up), place) for across, up in points]
    return _page(title, [*frame.drawn(), *drawn, *legend])


def cdf(title: str, series: Mapping[str, Sequence[float]], x: Axis) -> str:
    """Which part of the values is at most so large."""
    points = {name: _distribution(values, x) for name, values in series.items() if values}
    return lines(title, points, x, Axis("part of all", "percent", least=0.0, most=1.0))


def bars(title: str, names: Sequence[str], series: Mapping[str, Sequence[float]], y: Axis, label: str = "") -> str:
    """For each name a group of bars, one of each series, with its value on top if there is room for all of them."""
    legend, top = _legend(list(series))
    ys = _span(y, [value for values in series.values() for value in values], grounded=True)
    frame = Frame(Axis(label), y, (0.0, float(len(names))), ys, top)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    each = width * 0.8 / max(1, len(series))
    told = all(len(_short(y, value)) * LETTER <= each * 1.05 for values in series.values() for value in values)
    parts = frame.drawn(x_ticks=False)
    for place, name in enumerate(names):
        parts.append(text(LEFT + (place + 0.5) * width, HEIGHT - BOTTOM + 18, name, "middle"))
        for number_, values in enumerate(series.values()):
            left = LEFT + place * width + width * 0.1 + number_ * each
            parts += _bar(frame, left, each, values[place], number_, told=told)
    return _page(title, [*parts, *legend])


def rows(title: str, names: Sequence[str], series: Mapping[str, Sequence[float | None]], x: Axis) -> str:
    """Bars that lie, for names too long to stand below one: for each name one of each series, with its value behind it.
    None: there is no such bar."""
    legend, top = _legend(list(series))
    left = min(WIDTH // 2, 20 + round(max((len(name) for name in names), default=0) * LETTER))
    room = WIDTH - RIGHT - BEHIND - left
    least, most = _span(
        x, [value for values in series.values() for value in values if value is not None], grounded=True
    )
    bottom = top + len(names) * (len(series) * ROW_BAR + ROW_GAP)
    parts = []
    for value in ticks(x, least, most):
        place = left + room * _part(x, value, (least, most))
        parts.append(f'<path class="grid" d="M{place:.1f} {top:.1f}V{bottom:.1f}"/>')
        parts.append(text(place, bottom + 18, x.told(value), "middle"))
    for place_, name in enumerate(names):
        high = top + place_ * (len(series) * ROW_BAR + ROW_GAP) + ROW_GAP / 2
        parts.append(text(left - 8, high + len(series) * ROW_BAR / 2 + 4, name, "end"))
        for number_, values in enumerate(series.values()):
            value_ = values[place_]
            if value_ is not None:
                width = room * _part(x, value_, (least, most))
                parts += _lying(x, left, high + number_ * ROW_BAR, width, value_, number_)
    parts.append(f'<path class="axis" fill="none" d="M{left} {top:.1f}V{bottom:.1f}H{left + room}"/>')
    parts.append(text(left + room / 2, bottom + 42, x.label, "middle"))
    return _page(title, [*parts, *legend], round(bottom) + BOTTOM)


def _lying(x: Axis, left: float, high: float, width: float, value: float, number_: int) -> list[str]:
    shape = f'x="{left:.1f}" y="{high:.1f}" width="{width:.1f}" height="{ROW_BAR - 2}"'
    told = text(left + width + 6, high + ROW_BAR - 4, _short(x, value))
    return [f'<rect class="f{number_ % COLOURS}" {shape}/>', told]


def _bar(frame: Frame, left: float, width: float, value: float, number_: int, *, told: bool) -> list[str]:
    height = frame.up(value)
    shape = f'x="{left:.1f}" y="{height:.1f}" width="{width * 0.92:.1f}" height="{HEIGHT - BOTTOM - height:.1f}"'
    bar = f'<rect class="f{number_ % COLOURS}" {shape}/>'
    return [bar, text(left + width * 0.46, height - 4, _short(frame.y, value), "middle")] if told else [bar]


def _short(axis: Axis, value: float) -> str:
    return axis.told(float(f"{value:.3g}"))


def _path(frame: Frame, points: Points, number_: int, steps: bool, *, dashed: bool = False) -> str:
    drawn, before = [], ""
    for place, (x, y) in enumerate(points):
        across, up = f"{frame.across(x):.1f}", f"{frame.up(y):.1f}"
        if place == 0:
            drawn.append(f"M{across} {up}")
        elif steps:
            drawn.append(f"H{across}" + (f"V{up}" if up != before else ""))
        else:
            drawn.append(f"L{across} {up}")
        before = up
    dashes = ' stroke-dasharray="7 5"' if dashed else ""
    return f'<path class="line s{number_ % COLOURS}"{dashes} d="{"".join(drawn)}"/>'


def _span(axis: Axis, values: Sequence[float], *, grounded: bool = False) -> tuple[float, float]:
    """From where to where an axis goes: round ends where they are not given, and from zero upwards if grounded."""
    if axis.log:
        positive = [value for value in values if value > 0] or [1.0]
        least = axis.least if axis.least is not None else min(positive)
        return least, max(axis.most if axis.most is not None else max(positive), least * 10)
    low = min(values, default=0.0)
    least = axis.least if axis.least is not None else min(0.0, low) if grounded else low
    most = axis.most if axis.most is not None else max(values, default=1.0)
    if most <= least:
        most = least + 1.0
    if axis.most is None and grounded:
        step = _step(axis, (most - least) / 6)
        most = math.ceil(most / step - 1e-9) * step
    return least, most


def _thin(points: Points) -> Points:
    """Few enough points; where several fall together the lowest and the highest of them are kept, in their order."""
    if len(points) <= MOST_POINTS:
        return points
    size = math.ceil(len(points) / (MOST_POINTS / 2))
    found: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        found += sorted({min(part, key=itemgetter(1)), max(part, key=itemgetter(1))})
    return found


def _distribution(values: Sequence[float], x: Axis) -> Points:
    ordered = sorted(values)
    least = x.least if x.least is not None else ordered[0]
    count = len(ordered)
    places = sorted({round(part * (count - 1) / 199) for part in range(200)})
    first = sum(1 for value in ordered if value <= least) / count
    return [(least, first), *((ordered[place], (place + 1) / count) for place in places if ordered[place] > least)]
