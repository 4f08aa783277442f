"""A picture of a month of verdicts, kept beside each night's results.

Not here: the page's charts (``page.charts``), and who keeps the picture (``assets.month``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from pipeline.formatting.looks import LOOKS, VERDICTS

_JUDGED = [look for look in VERDICTS if look.name != "not_judged"]
_MISSING = LOOKS["missing"]
_WIDTH, _HEIGHT = 560, 120
"""Pixels: a bar for each day of a month is 18 wide, and the picture fits beside text."""
_QUALITY = 80
"""Texts stay crisp, in about 30 kB; the PNG of the same package is packed for speed, in 80."""


def verdict_words(batches: Sequence[str], counted: Sequence[Mapping[str, Any]]) -> str:
    """What the picture shows, for those who do not see it."""
    breaches = [row for row in counted if row["status"] == "breach"]
    missing = len(batches) - len({row["batch"] for row in counted})
    return (
        f"Verdicts from {batches[0]} to {batches[-1]}: breaches in {len(breaches)} of "
        f"{len(batches)} batches, {missing} missing or not judged"
    )


def verdict_picture(batches: Sequence[str], counted: Sequence[Mapping[str, Any]]) -> bytes:
    """A JPEG with a bar for each of ``batches``, made of its scores by verdict.

    Takes rows with ``batch``, ``status`` and how many ``scores``; a batch without any is hollow.
    """
    totals: dict[str, int] = {}
    for row in counted:
        totals[row["batch"]] = totals.get(row["batch"], 0) + row["scores"]
    words = {look.name: f"{look.symbol} {look.word}" for look in (*_JUDGED, _MISSING)}
    bars = [{**row, "verdict": words[row["status"]]} for row in counted]
    hollow = [
        {"batch": batch, "scores": max(totals.values()), "verdict": words["missing"]}
        for batch in batches
        if batch not in totals
    ]
    shown = [look for look in _JUDGED if any(row["status"] == look.name for row in counted)]
    shown += [_MISSING] if hollow else []
    x = alt.X(
        "batch:O",
        scale=alt.Scale(domain=list(batches)),
        axis=alt.Axis(title=None, labelAngle=0, values=list(batches[::7])),
    )
    colour = alt.Scale(
        domain=[words[look.name] for look in shown], range=[look.colour for look in shown]
    )
    base = alt.Chart().encode(
        x=x,
        y=alt.Y("sum(scores):Q", title="judged scores"),
        color=alt.Color("verdict:N", scale=colour, title=None),
    )
    order = {look.name: at for at, look in enumerate(_JUDGED)}
    layers = [
        base.mark_bar()
        .encode(order="gravity:Q")
        .properties(
            data=alt.InlineData(values=[{**bar, "gravity": order[bar["status"]]} for bar in bars])
        ),
        base.mark_bar(filled=False, strokeDash=[2, 2]).properties(
            data=alt.InlineData(values=hollow)
        ),
    ]
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, background="white")
    return vl_convert.vegalite_to_jpeg(chart.to_json(), quality=_QUALITY)
