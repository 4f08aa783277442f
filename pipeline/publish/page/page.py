"""Writes the page: text around the data, one file, nothing fetched from anywhere.

Not here: which data (``document``), and the looks of verdicts (``formatting.looks``).
"""

import fcntl
import gzip
import json
import os
from base64 import b64encode
from contextlib import suppress
from datetime import datetime
from functools import cache
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from metrics import AGGREGATIONS, METRICS
from pipeline.formatting.looks import ABSENT, GROUPS, LOOKS, VERDICTS
from pipeline.formatting.numbers import number, slice_name, utc
from pipeline.privacy.suppression import OTHERS
from pipeline.publish.page.document import ALERTS_SHOWN, Document, document
from pipeline.publish.page.drawing import drawing
from pipeline.publish.page.extent import Extent
from pipeline.publish.page.reading import Copy, Row, opened_copy
from pipeline.publish.page.words import headline
from pipeline.settings.audit import Settings
from pipeline.store.files import replace_file
from pipeline.store.paths import store_of

STRIP = 31
"""Batches in the strip below the headline, and back to which alerts that are over are told:
a month of days."""
ROWS_WITHOUT_SCRIPT = 120
"""Rows of the table where no script runs to fold them: a few screens."""
_HERE = Path(__file__).parent
_UNFINISHED = ".new"
_SCRIPTS = (
    *("state", "words", "drawing", "heat", "trend", "groups", "changes", "calendar"),
    *("quality", "lists", "choosing", "start"),
)
SECTIONS = (
    ("trend", "Course of the score", VERDICTS),
    ("changes", "Largest changes", ()),
    ("groups", "Groups", ()),
    ("calendar", "Calendar", (*VERDICTS, ABSENT[0])),
    ("quality", "Fairness against quality", ()),
    ("lists", "Worst lists", ()),
)


def write_report(settings: Settings, out: Path | None = None) -> Path:
    """Write the page of the published copy to ``out``, ``report.html`` in the store by default.

    Returns its path.  NoData where nothing is published.  The page takes the place of the one
    before as a whole, so that nobody opens half of one.
    """
    with opened_copy(settings) as copy:
        text = page(copy, settings)
    path = out or store_of(settings).report
    _remove_left_over(path)
    new = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    try:
        with new.open("w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(text)
            file.flush()
            replace_file(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path


def _remove_left_over(path: Path) -> None:
    """Remove unfinished pages of processes that were killed: nobody holds their locks."""
    for left in path.parent.glob(f".{escape(path.name)}.*{_UNFINISHED}"):
        with suppress(OSError), left.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def page(copy: Copy, settings: Settings) -> str:
    """The page of a copy as HTML."""
    contents = document(copy)
    batches = {row["batch"]: row for row in copy.batches()}
    title, verdict = headline(contents.newest, batches.get(contents.newest or ""))
    about = contents.data["about"]
    published = datetime.fromisoformat(about["published_at"])
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script, vega = _script(), _closed(drawing().library)
    since = contents.data["batches"][-STRIP:][:1]
    alerts = copy.alerts(since[0] if since else "", ALERTS_SHOWN + 1)
    heat = _judged(copy)
    return _template().render(
        policy=_policy(style, vega, script),
        title=f"Evenrank: {title}",
        name=_name(settings),
        about=about,
        published=utc(published),
        epoch=int(published.timestamp() * 1000),
        headline=title,
        look=LOOKS[verdict] if verdict else None,
        newest=contents.newest,
        facts=_facts(copy, contents, batches),
        counts=_counts(batches.get(contents.newest or "")),
        strip=_strip(contents),
        alerts=[_alert(row) for row in alerts[:ALERTS_SHOWN]],
        alerts_left=len(alerts) > ALERTS_SHOWN,
        heat=heat[:ROWS_WITHOUT_SCRIPT],
        heat_left=max(0, len(heat) - ROWS_WITHOUT_SCRIPT),
        sections=SECTIONS,
        definitions=_definitions(contents),
        aggregations=AGGREGATIONS,
        looks=(*VERDICTS, *ABSENT),
        database=store_of(settings).dashboard.name,
        small=_small(about),
        style=Markup(style),
        looks_json=_as_json(
            [
                {"name": look.name, "symbol": look.symbol, "word": look.word}
                for look in LOOKS.values()
            ]
        ),
        packed=_packed(contents),
        library=Markup(vega),
        script=Markup(script),
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(_HERE),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


@cache
def _script() -> str:
    texts = [(_HERE / "script" / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return _closed("\n".join(texts))


def _closed(script: str) -> str:
    """A script that cannot end the element it stands in."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(style: str, *scripts: str) -> str:
    """Nothing may be loaded, sent or run but what this page was written with."""

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(digest, scripts))}",
            f"style-src {digest(style)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _as_json(value: Any) -> Markup:
    """JSON that can stand in an element of a script, whatever texts it holds."""
    said = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _packed(contents: Document) -> str:
    """The data, compressed: a fifth of its size, and no text of it is ever parsed as markup."""
    document_data = {
        **contents.data,
        "newest": contents.data["batches"].index(contents.newest) if contents.newest else None,
        "charts": drawing().charts,
        "colours": GROUPS,
        "extent": {
            "cut": contents.extent.points(contents.size) < Extent().points(contents.size),
            "slices_left_out": contents.size.slices + 1 - len(contents.data["slices"]),
            "heat_from": _heat_from(contents),
        },
    }
    text = json.dumps(document_data, separators=(",", ":"), allow_nan=False).encode()
    # Without a time in it, equal data gives equal bytes.
    return b64encode(gzip.compress(text, compresslevel=6, mtime=0)).decode()


def _heat_from(told: Document) -> int:
    """The first batch whose slices are on the page."""
    back = told.extent.slice_main
    return 0 if back is None else max(0, told.size.batches - back)


def _name(settings: Settings) -> str:
    """What tells the page of one audit from that of another: the folder it lies in."""
    return Path(settings.folder).resolve().name


def _facts(copy: Copy, contents: Document, batches: Any) -> list[str]:
    days = contents.data["batches"]
    facts = []
    if contents.newest and (row := batches.get(contents.newest)):
        # Not told where it would tell of too few.
        told_of = ((row["lists"], "lists"), (row["rows_accepted"], "rows"))
        facts += [f"{count:,} {what}." for count, what in told_of if count is not None]
        if row["status"] != "done":
            facts.append(f"The last attempt at it: {LOOKS[row['status']].word}; these are older.")
        if contents.data["releases"]:
            at, text = contents.data["releases"][-1]
            facts.append(f"Last release: {text} ({days[at]}).")
    gaps = [day for day, scored in zip(days, contents.data["scored"], strict=True) if not scored]
    if gaps and contents.newest:
        shown = ", ".join(gaps[-3:])
        more = f" and {len(gaps) - 3:,} before" if len(gaps) > 3 else ""
        facts.append(f"Without scores: {shown}{more}.")
    if before := copy.missing_before():
        facts.append(f"{before:,} expected before the first batch are not shown.")
    return facts


def _counts(batch: Row | None) -> list[tuple[Any, str]]:
    if batch is None:
        return []
    return [(look, f"{batch[look.name]:,}") for look in VERDICTS if batch[look.name]]


def _strip(contents: Document) -> list[dict[str, Any]]:
    """The last batches, each by the gravest verdict of its scores."""
    data = contents.data
    first = max(0, len(data["batches"]) - STRIP)
    strip = []
    for at in range(first, len(data["batches"])):
        counts = {look.name: data["counts"][look.name][at] for look in VERDICTS}
        if data["scored"][at]:
            name = next((name for name, n in counts.items() if n), "not_judged")
            summary = f"{counts[name]:,} {LOOKS[name].word}"
        else:
            name = data["states"][at]
            summary = LOOKS[name].word
        strip.append(
            {
                "batch": data["batches"][at],
                "look": LOOKS[name],
                "absent": not data["scored"][at],
                "said": summary,
            }
        )
    return strip


def _alert(row: Row) -> dict[str, Any]:
    first, *more = row["text"].split("\n")
    where = [line for line in more if line.startswith(OTHERS[0])]
    opened, last = row["opened"], row["last_seen"]
    when = opened if opened == last else f"{opened} to {last}"
    status = f"{when}: {row['kind']}, {row['state']}"
    if row["acknowledged_at"]:
        status += f"; acknowledged by {row['acknowledged_by']}"
    show = {"slice": row["slice"], "value": row["slice_value"], "batch": row["last_seen"]}
    show["attribute"] = row["attribute"] or ""
    if row["kind"] == "breach":
        show["score"] = row["label"]
    return {
        "first": first,
        "where": " ".join(where),
        "more": [*(line for line in more if line not in where), f"Alert {row['alert']}."],
        "said": f"{status}.",
        "state": row["state"],
        "show": "" if row["kind"] == "gate" else urlencode(show),
    }


def _judged(copy: Copy) -> list[dict[str, Any]]:
    """Scores of the newest batch with a verdict, the gravest first, for readers without script."""
    order = [look.name for look in VERDICTS]
    rows = sorted(copy.latest(), key=lambda row: order.index(row["status"]))
    return [
        {
            "label": row["label"],
            "attribute": row["attribute"] or "",
            "slice": slice_name(row["slice"], row["slice_value"]),
            "value": number(row["value"]),
            "look": LOOKS[row["status"]],
            "worst": row["worst_group"] or "",
        }
        for row in rows
    ]


def _definitions(contents: Document) -> list[dict[str, str]]:
    """What the catalogue says of the metrics on the page."""
    titles = {score["title"] for score in contents.data["labels"]}
    return [
        {
            "name": metric.name,
            "title": metric.title,
            "what": "Of each group:" if metric.per_group else "",
            "formula": metric.formula,
            "range": str(metric.range),
            "source": metric.source,
        }
        for metric in METRICS
        if metric.title in titles
    ]


def _small(about: dict[str, Any]) -> list[str]:
    said = [f"evenrank {about['code_version']}, views {about['views_version']}."]
    if about.get("generation"):
        said.append(f"State of the history: {about['generation']}.")
    return said
