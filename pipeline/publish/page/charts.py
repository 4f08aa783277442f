"""The charts of the page, declared with Altair; the page's script gives each its rows.

Fields have fixed names, and names from the data travel as values only: no name can mean anything
to Vega.  Texts are ready to read when they arrive.

Not here: their data (``document``), and what happens at a click (``script/``).
"""

from typing import Any

import altair as alt

from pipeline.formatting.looks import ABSENT, BLUE, VERDICTS, VERMILLION, Look

Chart = alt.LayerChart | alt.FacetChart
_WIDE: Any = "container"
_BATCHES = alt.Axis(
    labelAngle=0, labelOverlap="greedy", labelSeparation=12, title=None, grid=False, ticks=False
)


def _rows() -> alt.Chart:
    return alt.Chart(alt.NamedData(name="rows"))


def _scale(looks: tuple[Look, ...], of: str) -> alt.Scale:
    return alt.Scale(
        domain=[each.name for each in looks], range=[getattr(each, of) for each in looks]
    )


def _tooltip(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:N", title=name) for name in names]


def _batch(**changes: Any) -> alt.X:
    options: dict[str, Any] = {"axis": _BATCHES, "sort": None, "scale": alt.Scale(padding=0.5)}
    return alt.X("batch:O", **{**options, **changes})


def trend() -> Chart:
    """One score over batches: its interval, threshold, noise floor, releases and gaps.

    Rows: one per batch, in order; ``gap`` where there is no score, ``release`` where one starts.
    """
    rows = _rows()
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    status = {
        "color": alt.Color("status:N", scale=_scale(VERDICTS, "colour"), legend=None),
        "shape": alt.Shape("status:N", scale=_scale(VERDICTS, "shape"), legend=None),
    }
    gaps = (
        rows.transform_filter("isValid(datum.gap)")
        .mark_text(align="center", baseline="bottom", dy=-2, fontSize=14)
        .encode(_batch(), y=alt.value("height"), text="gap:N", tooltip=_tooltip("Batch", "State"))
    )
    hollow = (
        rows.transform_filter("isValid(datum.gap)")
        .mark_rule(strokeDash=[2, 3], opacity=0.6)
        .encode(_batch())
    )
    releases = (
        rows.transform_filter("isValid(datum.release)").mark_rule(strokeWidth=1.5).encode(_batch())
    )
    named = (
        rows.transform_filter("isValid(datum.release)")
        .mark_text(align="left", baseline="top", dx=4, limit=180)
        .encode(_batch(), y=alt.value(0), text="release:N", tooltip=_tooltip("Batch", "Release"))
    )
    band = rows.mark_area(opacity=0.18, color=BLUE).encode(
        _batch(), alt.Y("lower:Q"), alt.Y2("upper:Q")
    )
    bars = (
        rows.transform_filter("isValid(datum.lower) && isValid(datum.upper)")
        .mark_rule(opacity=0.55, color=BLUE)
        .encode(_batch(), alt.Y("lower:Q"), alt.Y2("upper:Q"))
    )
    noise = rows.mark_line(strokeDash=[1, 3], strokeWidth=1.5, interpolate="step").encode(
        _batch(), alt.Y("noise:Q"), tooltip=_tooltip("Batch", "Noise floor")
    )
    limit = rows.mark_line(
        strokeDash=[6, 3], strokeWidth=1.5, color=VERMILLION, interpolate="step"
    ).encode(_batch(), alt.Y("limit:Q"), tooltip=_tooltip("Batch", "Threshold"))
    line = rows.mark_line(color=BLUE, strokeWidth=1.5).encode(_batch(), value)
    points = (
        rows.transform_filter("isValid(datum.value)")
        .mark_point(filled=True, opacity=1, strokeWidth=0.5)
        .encode(
            _batch(),
            value,
            size=alt.Size("size:Q", scale=None, legend=None),
            tooltip=_tooltip(
                *("Batch", "Value", "Interval", "Verdict", "Judged", "Worst off", "Why"),
                "Certainty",
            ),
            **status,
        )
    )
    return alt.layer(
        band, bars, hollow, gaps, releases, named, noise, limit, line, points
    ).properties(width=_WIDE, height=260)


def groups() -> Chart:
    """The value of each group over batches, one small chart each, and how many rows it has."""
    rows = _rows()
    value = alt.Y(
        "value:Q", title=None, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=4)
    )
    x = _batch(
        axis=alt.Axis(
            labelAngle=0, labelOverlap="greedy", labelSeparation=20, title=None, ticks=False
        )
    )
    tooltip = _tooltip("Batch", "Group", "Value", "Interval", "Rows")
    bars = (
        rows.transform_filter("isValid(datum.lower) && isValid(datum.upper)")
        .mark_rule(opacity=0.5)
        .encode(x, alt.Y("lower:Q"), alt.Y2("upper:Q"))
    )
    line = rows.mark_line(strokeWidth=1.5).encode(x, value)
    points = (
        rows.transform_filter("isValid(datum.value)")
        .mark_point(filled=True, size=22, opacity=1)
        .encode(x, value, tooltip=tooltip)
    )
    return (
        alt.layer(bars, line, points)
        .properties(width=200, height=110)
        .facet(
            alt.Facet(
                "name:N",
                sort=None,
                title=None,
                header=alt.Header(labelLimit=300, labelAnchor="start", labelFontWeight="bold"),
            ),
            columns=4,
        )
    )


def changes() -> Chart:
    """The largest moves of a batch, in standard errors, towards unfair to the right."""
    rows = _rows()
    name = alt.Y(
        "name:N", sort=None, title=None, axis=alt.Axis(labelLimit=420, ticks=False, domain=False)
    )
    toward = alt.Color(
        "toward:N",
        scale=alt.Scale(domain=["unfair", "fair"], range=[VERMILLION, BLUE]),
        legend=None,
    )
    bars = rows.mark_bar(height={"band": 0.6}).encode(
        alt.X(
            "residual:Q",
            title="standard errors from what was expected; right is towards unfair",
            # Room for the words beside the longest bar.
            scale=alt.Scale(padding=130, nice=False),
        ),
        name,
        color=toward,
        tooltip=_tooltip("Score", "Now", "Expected", "Moved", "Since"),
    )
    text = rows.mark_text(align="left", dx=5).encode(
        alt.X("end:Q"),
        name,
        text="said:N",
        tooltip=_tooltip("Score", "Now", "Expected", "Moved", "Since"),
    )
    return alt.layer(bars, text).properties(width=_WIDE, height={"step": 24})


def calendar() -> Chart:
    """One square per batch: its gravest verdict, hollow where it is missing."""
    rows = _rows()
    looks = (*VERDICTS, *ABSENT)
    x = alt.X(
        "column:O",
        sort=None,
        title=None,
        axis=alt.Axis(
            labelAngle=0, labelOverlap="greedy", labelSeparation=16, ticks=False, domain=False
        ),
    )
    y = alt.Y(
        "row:O",
        sort=None,
        title=None,
        scale=alt.Scale(paddingInner=0.12),
        axis=alt.Axis(ticks=False, domain=False),
    )
    tooltip = _tooltip("Batch", "State", "Breaches")
    full = (
        rows.transform_filter("datum.full")
        .mark_rect(strokeOpacity=0, cornerRadius=2)
        .encode(
            x,
            y,
            alt.Color("state:N", scale=_scale(looks, "colour"), legend=None),
            tooltip=tooltip,
        )
    )
    hollow = (
        rows.transform_filter("!datum.full")
        .mark_rect(fillOpacity=0, strokeDash=[3, 2], strokeWidth=1.2, cornerRadius=2)
        .encode(x, y, tooltip=tooltip)
    )
    on_full = (
        rows.transform_filter("datum.full")
        .mark_text(fontSize=11, fontWeight="bold", color="black")
        .encode(x, y, text="symbol:N", tooltip=tooltip)
    )
    on_hollow = (
        rows.transform_filter("!datum.full")
        .mark_text(fontSize=11)
        .encode(x, y, text="symbol:N", tooltip=tooltip)
    )
    return alt.layer(full, hollow, on_full, on_hollow).properties(
        width={"step": 22}, height={"step": 20}
    )


def quality() -> Chart:
    """Fairness against quality, batch after batch; the newest is named."""
    rows = _rows()
    x = alt.X("quality:Q", title="quality", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    path = rows.mark_line(strokeWidth=0.7, opacity=0.5).encode(x, y, order="order:Q")
    points = rows.mark_point(filled=True, opacity=0.9, strokeWidth=0.5).encode(
        x,
        y,
        color=alt.Color("status:N", scale=_scale(VERDICTS, "colour"), legend=None),
        shape=alt.Shape("status:N", scale=_scale(VERDICTS, "shape"), legend=None),
        size=alt.Size("size:Q", scale=None, legend=None),
        tooltip=_tooltip("Batch", "Fairness", "Quality", "Verdict"),
    )
    named = (
        rows.transform_filter("isValid(datum.named)")
        .mark_text(align="left", dx=7)
        .encode(x, y, text="named:N")
    )
    return alt.layer(path, points, named).properties(width=_WIDE, height=300)


def lists() -> Chart:
    """The worst lists from the top: a square per entry, its group by colour and letter."""
    rows = _rows()
    x = alt.X(
        "rank:O",
        sort=None,
        title="rank",
        axis=alt.Axis(labelAngle=0, labelOverlap="greedy", orient="top"),
    )
    y = alt.Y(
        "name:N", sort=None, title=None, axis=alt.Axis(labelLimit=320, ticks=False, domain=False)
    )
    tooltip = _tooltip("List", "Rank", "Item", "Group", "Relevance")
    squares = rows.mark_rect(stroke="white", strokeWidth=1).encode(
        x, y, color=alt.Color("colour:N", scale=None), tooltip=tooltip
    )
    letters = rows.mark_text(fontSize=10).encode(
        x, y, text="letter:N", color=alt.Color("ink:N", scale=None), tooltip=tooltip
    )
    return alt.layer(squares, letters).properties(width={"step": 20}, height={"step": 22})


CHARTS = {
    "changes": changes,
    "trend": trend,
    "groups": groups,
    "calendar": calendar,
    "quality": quality,
    "lists": lists,
}
"""Charts by the name that the page knows them by."""


def specs() -> dict[str, dict[str, Any]]:
    """Every chart as Vega-Lite, without rows."""
    return {name: _spec(make()) for name, make in CHARTS.items()}


def _spec(chart: Any) -> dict[str, Any]:
    """Rows come from the page; colours of text and axes do too."""
    told: dict[str, Any] = chart.to_dict(validate=True)
    for name in ("config", "datasets"):
        told.pop(name, None)
    return told
