"""One plot of growth: CPU seconds and memory against what makes a batch large."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10

from speed.goals import Number, Round, gigabytes, numbers, spent
from speed.rounds import Results

TIME, MEMORY, GUIDE = "var(--time)", "var(--memory)", "#888"
LIGHT = "svg{--time:#0072B2;--memory:#D55E00}text{fill:#444}"
DARK = "svg{--time:#56B4E9;--memory:#E69F00}text{fill:#ccc}"
"""Colours of Okabe and Ito, darker ones on light ground and lighter ones on dark."""
PANEL, GAP, HEIGHT = 150, 44, 150
LEFT, TOP = 46, 54


def rows_of(_: float, found: Round) -> str:
    """How many rows an entry had, in few signs."""
    rows = float(found["rows"])
    unit, sign = next(each for each in ((1e6, "M"), (1e3, "k"), (1, "")) if rows >= each[0])
    return f"{rows / unit:g}{sign}"


@dataclass(frozen=True)
class Panel:
    """What grows, and the entries that it is seen in, with how much of it there is."""

    title: str
    points: tuple[tuple[float, str], ...]
    label: Callable[[float, Round], str] = lambda at, _: f"{at:g}"


PANELS = (
    Panel("rows", ((1, "rows-hundredth"), (10, "rows-tenth"), (100, "rows-all")), rows_of),
    Panel("rows of a list", ((10, "length-10"), (100, "length-100"), (1000, "length-1000"))),
    Panel("groups", ((2, "groups-2"), (20, "groups-20"), (200, "groups-200"))),
    Panel(
        "slices",
        # The whole batch counts as a part of it, like a slice.
        ((1, "plain"), (2, "slices-1"), (3, "slices-2"), (4, "slices-3")),
        lambda at, _: f"{at - 1:g}",
    ),
    Panel("attributes", ((1, "plain"), (2, "attributes-2"), (4, "attributes-4"))),
)


def medians(results: Results, panel: Panel, number: Number) -> list[tuple[float, float]]:
    """Points of a panel that were measured."""
    found = [(at, numbers(results, entry, number)) for at, entry in panel.points]
    return [(at, statistics.median(values)) for at, values in found if values]


def svg(results: Results) -> str:
    """The plot: multiples of the first point of each panel, on logarithmic scales.

    Dashed is what would be in proportion.
    """
    width = LEFT + len(PANELS) * (PANEL + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 26}" '
        'font-family="sans-serif" font-size="11" role="img">',
        "<title>CPU seconds and memory as a batch grows, as multiples of the smallest</title>",
        f"<style>{LIGHT}.axis{{stroke:#888;fill:none}}"
        f"@media(prefers-color-scheme:dark){{{DARK}}}</style>",
        f'<circle cx="{LEFT + 5}" cy="14" r="4" fill="{TIME}"/>'
        f'<text x="{LEFT + 14}" y="18">CPU seconds</text>'
        f'<rect x="{LEFT + 106}" y="10" width="8" height="8" fill="{MEMORY}"/>'
        f'<text x="{LEFT + 119}" y="18">peak memory</text>'
        f'<path d="M{LEFT + 210} 14h22" stroke="{GUIDE}" stroke-dasharray="4 3"/>'
        f'<text x="{LEFT + 238}" y="18">in proportion</text>',
    ]
    for place, panel in enumerate(PANELS):
        parts += _panel(results, panel, LEFT + place * (PANEL + GAP))
    return "\n".join([*parts, "</svg>", ""])


def _panel(results: Results, panel: Panel, left: int) -> list[str]:
    seconds = medians(results, panel, spent)
    memory = medians(results, panel, gigabytes)
    middle = left + PANEL / 2
    parts = [f'<text x="{middle}" y="{TOP - 14}" text-anchor="middle">{panel.title}</text>']
    bottom = TOP + HEIGHT
    parts.append(f'<path class="axis" d="M{left} {TOP}V{bottom}H{left + PANEL}"/>')
    if len(seconds) < 2:
        where = f'x="{middle}" y="{TOP + HEIGHT / 2}"'
        return [*parts, f'<text {where} text-anchor="middle">not measured</text>']
    first, last = panel.points[0][0], panel.points[-1][0]
    reach = last / first
    relative = [value / line[0][1] for line in (seconds, memory) for _, value in line]
    low, top = min(1.0, *relative), max(reach, *relative)

    def spot(at: float, value: float) -> tuple[float, float]:
        across = log10(at / first) / log10(reach)
        up = log10(value / low) / log10(top / low)
        return round(left + 8 + across * (PANEL - 16), 1), round(bottom - 8 - up * (HEIGHT - 16), 1)

    ends = [spot(first, 1.0), spot(last, reach)]
    parts.append(_line(ends, GUIDE, ' stroke-dasharray="4 3"'))
    for line, colour in ((memory, MEMORY), (seconds, TIME)):
        spots = [spot(at, value / line[0][1]) for at, value in line]
        parts.append(_line(spots, colour, ' stroke-width="2"'))
        for x, y in spots:
            parts.append(
                f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
                if colour == TIME
                else f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" fill="{colour}"/>'
            )
    for at, entry in panel.points:
        for found in results.get(entry, {}).get("rounds", ())[:1]:
            x, _ = spot(at, 1.0)
            where = f'x="{x}" y="{bottom + 16}"'
            parts.append(f'<text {where} text-anchor="middle">{panel.label(at, found)}</text>')
    for value in sorted({1.0, *([reach] if reach <= top else [])}):
        _, y = spot(first, value)
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{value:g}x</text>')
    return parts


def _line(spots: Sequence[tuple[float, float]], colour: str, more: str) -> str:
    points = " ".join(f"{x},{y}" for x, y in spots)
    return f'<polyline points="{points}" fill="none" stroke="{colour}"{more}/>'
