"""Is it bad, who loses, where, what changed: questions to the published copy of an audit.

``streamlit run app.py -- store/dashboard.duckdb``, or ``EVENRANK_DASHBOARD`` names the copy.
It reads the views alone, says what they say in the words and the order of the page of the audit,
and follows the copy when that is replaced.
"""

import json
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
LOOKS = {  # verdicts; what asks for attention has a colour, all else is grey, with symbol and word
    "breach": ("✕", "#D55E00"),
    "composition": ("≠", "#B57600"),
    "insufficient": ("?", "#B57600"),
    "gated": ("⊘", "#A8507F"),
    "undefined": ("∅", "#8B939D"),
    "ok": ("✓", "#8B939D"),
    "not judged": ("–", "#8B939D"),
}
STATES = {"missing": "○", "no data": "□", "refused": "!", "failed": "■"}  # batches without scores
TONES = {"new_breach": "red", "breach": "red", "gated": "violet", "refused": "violet",
         "insufficient": "orange", "composition": "orange", "no_data": "orange",
         "missing": "orange", "failed": "orange"}  # fmt: skip
LINE, LOSER, OTHER, LIMIT = "#3D444C", "#0072B2", "#D3D8DD", "#D55E00"
RECENT = 60  # batches of a trend that are drawn at first
NAMES = (
    "if(slice = 'all', 'whole batch', slice || ' = ' || slice_value) AS place, "
    "concat_ws(': ', attribute, label) AS score"
)
CONCLUSIONS = """
    SELECT batch, state, sign, word, note, sentence, emphasis, second, small, facts, shown_batch,
      slice, slice_value, attribute, label, explain, acknowledge
    FROM v_conclusions ORDER BY batch DESC"""
BATCHES = "SELECT batch, breach FROM v_batches WHERE scores > 0"
ALERTS = """
    SELECT alert, kind, opened, split_part(text, chr(10), 1) AS told
    FROM v_alerts
    WHERE state = 'open' AND acknowledged_at IS NULL
      AND coalesce(snoozed_until <= now()::TIMESTAMP, true)
    ORDER BY opened DESC, slice <> 'all', size DESC NULLS LAST"""
SCORES = f"""
    SELECT {NAMES}, replace(status, '_', ' ') AS status, judged_value AS value,
      judged_lower AS lower, judged_upper AS upper, judged_worst_group AS worst_group,
      slice, slice_value, attribute, label
    FROM v_history WHERE batch = ?
    ORDER BY count(*) FILTER (status = 'breach') OVER same DESC,
      bool_and(status = 'not_judged') OVER same, min(margin) OVER same, attribute, label,
      slice <> 'all', slice, slice_value
    """
SCORES = SCORES.replace("OVER same", "OVER (PARTITION BY attribute, label)")
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
    SELECT {NAMES}, center AS expected, value, change,
      CASE worse WHEN true THEN 'less fair' WHEN false THEN 'fairer' END AS direction,
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
    return alt.Color("status:N", scale=alt.Scale(**looks), legend=None)


def legend(statuses: pd.Series) -> None:
    """What the symbols mean, of those that are drawn."""
    looks = {name: sign for name, (sign, _) in LOOKS.items()} | STATES
    found = [f"{sign} {name}" for name, sign in looks.items() if name in set(statuses)]
    st.caption(plain("   ".join(found)))


def is_it_bad(row: Any) -> None:
    """What a batch comes to: the chip, the sentence, what stands beside it."""
    note = f" &emsp; {plain(row.note)}" if row.note else ""
    st.markdown(f":{TONES.get(row.state, 'gray')}[**{plain(f'{row.sign} {row.word}')}**]{note}")
    sentence = plain(row.sentence)
    if row.emphasis:
        sentence = sentence.replace(plain(row.emphasis), f"**{plain(row.emphasis)}**", 1)
    st.markdown(f"## {sentence}")
    for text, show in ((row.second, st.markdown), (row.small, st.caption)):
        if text:
            show(plain(text))


def alerts(rows: pd.DataFrame) -> None:
    """Alerts that wait for somebody, the newest first."""
    if rows.empty:
        st.markdown("No alert is open.")
    for row in rows.head(6).itertuples():
        st.error(f"**{plain(row.kind)}** since {plain(row.opened)}: {plain(row.told)}")
    if len(rows) > 6:
        st.caption(f"and {len(rows) - 6:,} more: evenrank alerts lists them")


def facts(row: Any) -> None:
    """Since when, where worst, what else, whether the data are sound; and what to do next."""
    given = json.loads(row.facts or "[]")
    for column, fact in zip(st.columns(len(given) or 1), given, strict=False):
        column.caption(plain(fact["name"]))
        column.markdown(f"**{plain(fact['text'])}**")
        column.caption(plain(fact["more"] or ""))
    for command in filter(None, (row.explain, row.acknowledge)):
        st.code(command, language="sh")


def days(coverage: pd.DataFrame, batches: pd.DataFrame, batch: str) -> None:
    """Every batch: as tall as its breaches, its sign where it has no scores."""
    due = coverage[coverage["expected"]]
    if not due.empty and not due["scored"].iloc[-1]:
        st.warning(f"**The last night, {plain(due['batch'].iloc[-1])}, has no scores.**")
    for state, rows in coverage[~coverage["scored"]].groupby("state"):
        name = state.replace("_", " ")
        st.markdown(f"**{STATES.get(name, '')} {name}**: {listed(rows['batch'])}")
    rows = coverage.tail(RECENT).merge(batches, on="batch", how="left")
    rows["status"] = rows["state"].str.replace("_", " ")
    rows = marked(rows).assign(chosen=rows["batch"] == batch, breach=rows["breach"].fillna(0))
    axis = alt.Axis(labelOverlap=True, labelAngle=-40)
    base = alt.Chart(rows[["batch", "status", "mark", "breach", "chosen"]]).encode(
        alt.X("batch:O", title=None, sort=rows["batch"].to_list(), axis=axis),
        tooltip=["batch", "status", "breach"],
    )
    whole = alt.Axis(format="d", tickMinStep=1)
    stroke = alt.condition("datum.chosen", alt.value(LINE), alt.value(OTHER))
    bars = base.mark_bar(color=LIMIT, strokeWidth=2)
    bars = bars.encode(alt.Y("breach:Q", title="breaches", axis=whole), stroke=stroke)
    signs = base.mark_text(color=LINE, baseline="bottom", dy=-2)
    signs = signs.encode(text="mark:N", y=alt.value("height"))
    drawn((bars + signs).properties(height=170), rows[["batch", "status", "breach"]], "the days")


def where(scores: pd.DataFrame) -> None:
    """Every score of the batch, in every slice: most breaches first, then closest to the limit."""
    judged = scores[scores["status"] != "not judged"]
    if not judged.empty and st.toggle("Only scores with a threshold", value=True, key="judged"):
        scores = judged
    places = scores.sort_values(["slice", "slice_value"], key=lambda by: by.mask(by == "all", ""))
    top = alt.Axis(orient="top", labelLimit=120, labelAngle=-40)
    base = alt.Chart(marked(scores)).encode(
        alt.X("place:N", title=None, sort=[*places["place"].unique()], axis=top),
        alt.Y("score:N", title=None, sort=None, axis=alt.Axis(labelLimit=260, labelOverlap=False)),
        tooltip=["place", "score", alt.Tooltip("value", format=".3~g"), "status", "worst_group"],
    )
    cells = base.mark_rect(stroke="white").encode(shades())
    cells += base.mark_text().encode(text="mark:N")
    legend(scores["status"])
    drawn(cells.properties(height=alt.Step(24)), scores, "scores of the batch")


def chosen(scores: pd.DataFrame, row: Any) -> pd.Series:
    """The row of the score that somebody chose; at first that of the sentence."""
    own = scores[
        (scores["slice"] == row.slice)
        & (scores["slice_value"] == row.slice_value)
        & (scores["label"] == row.label)
        & (scores["attribute"].fillna("") == (row.attribute or ""))
    ]
    scores = pd.concat([own, scores.drop(own.index)])
    if st.session_state.get("of") != row.batch:
        # Another batch begins with its own sentence again.
        first = scores.iloc[0]
        st.session_state.update(of=row.batch, place=first["place"], score=first["score"])
    left, right = st.columns(2)
    place = left.selectbox("Slice", scores["place"].unique(), key="place")
    scores = scores[scores["place"] == place]
    score = right.selectbox("Score", scores["score"], key="score")
    return scores[scores["score"] == score].iloc[0]


def since_when(rows: pd.DataFrame) -> None:
    """The score, its interval as a bar, its threshold as a line across, the nights it lacks."""
    if len(rows) > RECENT and not st.toggle(f"All {len(rows)} batches", key="all"):
        rows = rows.tail(RECENT)
    axis = alt.Axis(labelOverlap=True, labelAngle=-40)
    x = alt.X("batch:O", title=None, sort=rows["batch"].to_list(), axis=axis)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    tips = ["batch", alt.Tooltip("value", format=".3~g"), "status", "worst_group", "release"]
    base = alt.Chart(marked(rows)).encode(x, tooltip=tips)
    intervals = base.mark_rule(opacity=0.25, size=6, color=LINE)
    line = base.mark_line(color=LINE).encode(value)
    layers = [intervals.encode(alt.Y("lower:Q"), alt.Y2("upper")), line]
    for limit in ("threshold_min", "threshold_max"):
        if rows[limit].notna().any():
            layers.append(base.mark_tick(thickness=2, color=LIMIT).encode(y=f"{limit}:Q"))
    symbols = base.mark_text(fontSize=16, fontWeight="bold").encode(text="mark:N")
    layers.append(symbols.transform_filter("datum.scored").encode(value, shades()))
    gaps = symbols.transform_filter("!datum.scored")
    gaps = gaps.encode(y=alt.value("height"), color=alt.value(LINE))
    legend(rows["status"])
    drawn(alt.layer(*layers, gaps).properties(height=280), rows, "the score, batch by batch")
    starts = rows[rows["release_starts"]]
    if not starts.empty:
        st.caption("Releases: " + listed(starts["batch"] + " " + starts["release"]))


def who(groups: pd.DataFrame, score: pd.Series) -> None:
    """The groups behind the score, the lowest first; the one that loses by a breach is blue."""
    if groups.empty:
        st.caption("The score has no groups.")
        return
    loser = score["worst_group"] if score["status"] == "breach" else None
    groups = groups.assign(shade=groups["group_value"].eq(loser).map({True: LOSER, False: LINE}))
    rows = alt.Y("told:N", title=None, sort=groups["told"].to_list(), axis=alt.Axis(labelLimit=260))
    base = alt.Chart(groups).encode(
        rows,
        alt.Color("shade:N", scale=None),
        tooltip=["group_value", alt.Tooltip("value", format=".3~g"), "n", "lists"],
    )
    value = alt.Scale(zero=False)
    lower = alt.X("lower:Q", title="value and its interval", scale=value)
    chart = base.mark_rule().encode(lower, alt.X2("upper"))
    chart += base.mark_point(filled=True, size=90).encode(alt.X("value:Q", scale=value))
    drawn(chart.properties(height=alt.Step(30)), groups.drop(columns="shade"), "the groups")


def changed(changes: pd.DataFrame) -> None:
    """What moved most, from what was expected to what came."""
    if changes.empty:
        st.caption("No score of this batch has a baseline yet: that takes more batches.")
    else:
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
        found = ask(audit, copy, CONCLUSIONS).astype(object)
        found = found.where(found.notna(), None)
        if batches.empty:
            days(coverage, batches, "")
            st.info("No batch has scores yet.")
            return
        # Nothing chosen is an option, which goes on to the next batch when that is there.
        newest = found["batch"].iloc[0]
        options = ["", *found["batch"]]
        batch = st.selectbox("Batch", options, 0, lambda each: each or f"newest: {newest}", "batch")
        row = next(found[found["batch"] == (batch or newest)].itertuples())
        is_it_bad(row)
        alerts(ask(audit, copy, ALERTS))
        facts(row)
        st.header("Days")
        days(coverage, batches, row.batch)
        if row.shown_batch is None:
            return
        scores = ask(audit, copy, SCORES, row.shown_batch)
        st.header("Who")
        score = chosen(scores, row)
        attribute = None if pd.isna(score["attribute"]) else score["attribute"]
        key = (score["slice"], score["slice_value"], attribute, score["label"])
        since_when(ask(audit, copy, TREND, *key))
        who(ask(audit, copy, GROUPS, *key, row.shown_batch), score)
        st.header("Where")
        where(scores)
        st.header("What changed")
        changed(ask(audit, copy, CHANGES, row.shown_batch))


st.set_page_config("Fairness of rankings", "⚖", layout="wide")
st.title("Fairness of rankings")
page()
