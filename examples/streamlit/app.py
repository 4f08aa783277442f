"""Is it bad, where, since when, why: four questions to the published copy of an audit.

``streamlit run app.py -- store/dashboard.duckdb``, or ``EVENRANK_DASHBOARD`` names the copy.
It reads the views alone, and follows the copy when that is replaced.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import altair as alt
import duckdb
import pandas as pd
import streamlit as st

COPY = Path([*sys.argv[1:], os.environ.get("EVENRANK_DASHBOARD", "store/dashboard.duckdb")][0])
LOOKS = {  # verdicts; colours of Okabe and Ito, and the symbol and the word say it without them
    "breach": ("✕", "#D55E00"),
    "composition": ("≠", "#F0E442"),
    "insufficient": ("?", "#E69F00"),
    "gated": ("⊘", "#CC79A7"),
    "undefined": ("∅", "#56B4E9"),
    "ok": ("✓", "#009E73"),
    "not judged": ("–", "#8C8C8C"),
}
STATES = {"missing": "○", "no data": "□", "refused": "!", "failed": "■"}  # batches without scores
BLUE = "#0072B2"
RECENT = 60  # batches of a trend that are drawn at first
NAMES = (
    "if(slice = 'all', 'whole batch', slice || ' = ' || slice_value) AS place, "
    "concat_ws(': ', attribute, label) AS score"
)
BATCHES = "SELECT batch, breach FROM v_batches WHERE scores > 0 ORDER BY batch DESC"
SCORES = f"""
    SELECT {NAMES}, replace(status, '_', ' ') AS status, judged_value AS value,
      judged_lower AS lower, judged_upper AS upper, judged_worst_group AS worst_group,
      slice, slice_value, attribute, label,
      CASE status WHEN 'breach' THEN 0 WHEN 'not_judged' THEN 2 ELSE 1 END AS gravity
    FROM v_history WHERE batch = ?
    ORDER BY slice <> 'all', slice, slice_value, attribute, label"""
TREND = """
    SELECT batch, replace(coalesce(status, state), '_', ' ') AS status, value, lower, upper,
      threshold_min, threshold_max, worst_group, release, release_starts
    FROM v_trend
    WHERE slice = ? AND slice_value = ? AND attribute IS NOT DISTINCT FROM ? AND label = ?
    ORDER BY batch"""
GROUPS = """
    SELECT group_value, value, lower, upper, n, lists,
      concat(group_value, ' (n = ', n, ')') AS told
    FROM v_groups
    WHERE slice = ? AND slice_value = ? AND attribute = ?
      AND metric = (SELECT any_value(metric) FROM v_history WHERE label = ?) AND batch = ?
    ORDER BY value"""
CHANGES = f"""
    SELECT {NAMES}, value, center AS expected, change,
      CASE worse WHEN true THEN '▼ less fair' WHEN false THEN '▲ fairer' END AS direction,
      shift, worst_group
    FROM v_changes WHERE batch = ? ORDER BY abs(residual) DESC LIMIT 10"""


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """The copy as it lies there now, read-only.

    Attached to a database of its own: ``connect`` to a path that another session of this process
    has open would hand out the file of that session, replaced or not.
    """
    with duckdb.connect() as audit:
        audit.execute("ATTACH '{}' AS audit (READ_ONLY)".format(str(COPY).replace("'", "''")))
        audit.execute("USE audit")
        yield audit


@st.cache_data(max_entries=100, show_spinner="Reading the copy")
def ask(_audit: duckdb.DuckDBPyConnection, copy: tuple[Any, ...], sql: str, *given: Any) -> Any:
    """Rows of a query as a data frame, asked once for each ``copy``."""
    return _audit.execute(sql, given).df()


def plain(text: object) -> str:
    """Text of the data, with nothing in it that Markdown takes for more than text."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", str(text))


def listed(batches: pd.Series) -> str:
    """The last eight of some batches, and how many there are before."""
    more = f" and {len(batches) - 8} before" if len(batches) > 8 else ""
    return plain(", ".join(batches.tail(8))) + more


def drawn(chart: alt.LayerChart, rows: pd.DataFrame, what: str) -> None:
    """A chart, and the same as a table for those who cannot see it."""
    st.altair_chart(chart, width="stretch")
    with st.expander(f"Table: {what}"):
        st.dataframe(rows, hide_index=True)


def marked(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, each with the symbol of its status or, where it has no score, of its batch."""
    signs = {name: sign for name, (sign, _) in LOOKS.items()} | STATES
    return rows.assign(
        mark=[signs.get(status, "") for status in rows["status"]],
        scored=[status in LOOKS for status in rows["status"]],
    )


def shades() -> alt.Color:
    looks = {"domain": [*LOOKS], "range": [colour for _, colour in LOOKS.values()]}
    return alt.Color("status:N", scale=alt.Scale(**looks), title=None)


def is_it_bad(coverage: pd.DataFrame, batches: pd.DataFrame) -> None:
    """Red words for nights without scores, and for batches with a breach."""
    due = coverage[coverage["expected"]]
    if not due.empty and not due["scored"].iloc[-1]:
        st.error(f"**The last night, {plain(due['batch'].iloc[-1])}, has no scores.**")
    for state, rows in coverage[~coverage["scored"]].groupby("state"):
        name = state.replace("_", " ")
        st.markdown(f":red[**{STATES.get(name, '')} {name}**: {listed(rows['batch'])}]")
    if (batches["breach"] > 0).any():
        bad = batches[batches["breach"] > 0].iloc[::-1]
        told = bad["batch"] + " (" + bad["breach"].map(str) + ")"
        st.markdown(f":red[**{LOOKS['breach'][0]} breach**: {listed(told)}]")


def where(scores: pd.DataFrame) -> None:
    """Every score of the batch, in every slice."""
    judged = scores[scores["status"] != "not judged"]
    if not judged.empty and st.toggle("Only scores with a threshold", value=True, key="judged"):
        scores = judged
    base = alt.Chart(marked(scores)).encode(
        alt.X("place:N", title=None, sort=None, axis=alt.Axis(labelLimit=120, labelAngle=-40)),
        alt.Y("score:N", title=None, sort=None, axis=alt.Axis(labelLimit=260, labelOverlap=False)),
        tooltip=["place", "score", alt.Tooltip("value", format=".3~g"), "status", "worst_group"],
    )
    cells = base.mark_rect(stroke="white").encode(shades())
    cells += base.mark_text().encode(text="mark:N")
    drawn(cells.properties(height=alt.Step(24)), scores, "scores of the batch")


def chosen(scores: pd.DataFrame) -> tuple[str, str, str | None, str]:
    """The score that somebody chose: slice, its value, attribute, label.  At first a breach."""
    scores = scores.sort_values("gravity", kind="stable")
    left, right = st.columns(2)
    place = left.selectbox("Slice", scores["place"].unique(), key="place")
    scores = scores[scores["place"] == place]
    score = right.selectbox("Score", scores["score"], key="score")
    found = scores[scores["score"] == score].iloc[0]
    attribute = None if pd.isna(found["attribute"]) else found["attribute"]
    return found["slice"], found["slice_value"], attribute, found["label"]


def since_when(rows: pd.DataFrame) -> None:
    """The score, its interval as a bar, its threshold as a line across, the nights it lacks."""
    if len(rows) > RECENT and not st.toggle(f"All {len(rows)} batches", key="all"):
        rows = rows.tail(RECENT)
    axis = alt.Axis(labelOverlap=True, labelAngle=-40)
    x = alt.X("batch:O", title=None, sort=rows["batch"].to_list(), axis=axis)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    tips = ["batch", alt.Tooltip("value", format=".3~g"), "status", "worst_group", "release"]
    base = alt.Chart(marked(rows)).encode(x, tooltip=tips)
    intervals = base.mark_rule(opacity=0.25, size=6, color=BLUE)
    layers = [intervals.encode(alt.Y("lower:Q"), alt.Y2("upper")), base.mark_line().encode(value)]
    for limit in ("threshold_min", "threshold_max"):
        if rows[limit].notna().any():
            layers.append(base.mark_tick(thickness=2, color="#D55E00").encode(y=f"{limit}:Q"))
    symbols = base.mark_text(fontSize=16, fontWeight="bold").encode(text="mark:N")
    layers.append(symbols.transform_filter("datum.scored").encode(value, shades()))
    gaps = symbols.transform_filter("!datum.scored")
    gaps = gaps.encode(y=alt.value("height"), color=alt.value("#D55E00"))
    drawn(alt.layer(*layers, gaps).properties(height=280), rows, "the score, batch by batch")
    starts = rows[rows["release_starts"]]
    if not starts.empty:
        st.caption("Releases: " + listed(starts["batch"] + " " + starts["release"]))


def why(groups: pd.DataFrame, changes: pd.DataFrame) -> None:
    """The groups behind the score, and what moved most that night."""
    if not groups.empty:
        axis = alt.Axis(labelLimit=260)
        rows = alt.Y("told:N", title=None, sort=groups["told"].to_list(), axis=axis)
        tips = ["group_value", alt.Tooltip("value", format=".3~g"), "n", "lists"]
        base = alt.Chart(groups).encode(rows, tooltip=tips)
        ends = alt.X("lower:Q", title="value and its interval"), alt.X2("upper")
        points = base.mark_point(filled=True, size=90, color=BLUE).encode(alt.X("value:Q"))
        chart = base.mark_rule(color=BLUE).encode(*ends) + points
        drawn(chart.properties(height=alt.Step(30)), groups, "the groups")
    if changes.empty:
        st.caption("No score of this batch has a baseline yet: that takes more batches.")
    else:
        st.subheader("Largest changes")
        st.dataframe(changes, hide_index=True)


@st.fragment(run_every="60s")
def page() -> None:
    """All of it, from one copy; anew every minute."""
    if not COPY.is_file():
        st.error(f"No copy at {plain(COPY)}. Audit a batch, or name another copy.")
        return
    with opened() as audit:
        coverage = audit.execute("SELECT * FROM v_coverage ORDER BY due_at NULLS FIRST, batch").df()
        about = audit.execute("SELECT generation, published_at FROM v_about").fetchall()[0]
        # A night that falls due adds a gap to the trends of the same copy.
        copy = (str(COPY), *about, len(coverage))
        st.caption(f"Published {about[1]:%Y-%m-%d %H:%M} UTC")
        batches = ask(audit, copy, BATCHES)
        is_it_bad(coverage, batches)
        if batches.empty:
            st.info("No batch has scores yet.")
            return
        newest = batches["batch"].iloc[0]
        # Nothing chosen is an option, which goes on to the next batch when that is there.
        options = ["", *batches["batch"]]
        batch = st.selectbox("Batch", options, 0, lambda each: each or f"newest: {newest}", "batch")
        batch = batch or newest
        scores = ask(audit, copy, SCORES, batch)
        counts = scores["status"].value_counts()
        told = [f"{mark} {counts.get(name, 0)} {name}" for name, (mark, _) in LOOKS.items()]
        st.write(" &emsp; ".join(told))
        for row in scores[scores["status"] == "breach"].head(3).itertuples():
            loser = f", worst off: {row.worst_group}" if isinstance(row.worst_group, str) else ""
            told = f"{row.score}, {row.place}: {row.value:.3g}{loser}"
            st.error(plain(f"{LOOKS['breach'][0]} {told}"))
        st.header("Where")
        where(scores)
        st.header("Since when")
        score = chosen(scores)
        since_when(ask(audit, copy, TREND, *score))
        st.header("Why")
        why(ask(audit, copy, GROUPS, *score, batch), ask(audit, copy, CHANGES, batch))


st.set_page_config("Fairness of rankings", "⚖", layout="wide")
st.title("Fairness of rankings")
page()
