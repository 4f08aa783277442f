"""Writes the page: text around the data, one file, nothing fetched from anywhere.

Not here: which data (``document``), and the tables for readers without script (``plain``).
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

import jinja2
from markupsafe import Markup

from metrics import AGGREGATIONS, METRICS
from pipeline.formatting.numbers import utc
from pipeline.publish.page import plain
from pipeline.publish.page.document import Document, document
from pipeline.publish.page.reading import Copy, opened_copy
from pipeline.publish.page.words import WORDS
from pipeline.settings.audit import Settings
from pipeline.store.files import replace_file
from pipeline.store.paths import store_of

_HERE = Path(__file__).parent
_UNFINISHED = ".new"
_STYLES = ("base", "charts", "heat", "narrow")
_SCRIPTS = (
    *("state", "numbers", "days", "elements", "plot", "clock", "hero", "band", "alerts"),
    *("groups", "over_time", "heat", "changes", "lists", "start"),
)
PARTS = (("changes", "What changed"), ("lists", "The lists of this day"))
"""Sections that only the script fills."""


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
    contents = document(copy, settings)
    data, about = contents.data, contents.data["about"]
    published = datetime.fromisoformat(about["published_at"])
    style = "\n".join(
        (_HERE / "style" / f"{name}.css").read_text(encoding="utf-8") for name in _STYLES
    )
    script = _script()
    return _template().render(
        policy=_policy(style, script),
        name=_name(settings),
        about=about,
        published=utc(published),
        epoch=int(published.timestamp() * 1000),
        newest=contents.newest,
        verdict=plain.verdict(data),
        strip=plain.strip(data),
        plain=plain.tables(data),
        parts=PARTS,
        words=WORDS,
        definitions=_definitions(contents),
        aggregations=AGGREGATIONS,
        timezone=_timezone(about["timezone"]),
        database=store_of(settings).dashboard.name,
        before=_before(copy),
        style=Markup(style),
        packed=_packed(data),
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
    # Nothing in it may end the element it stands in.
    return "\n".join(texts).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, sent or run but what this page was written with."""

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {digest(script)}",
            f"style-src {digest(style)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _packed(data: dict[str, Any]) -> str:
    """The data, compressed: a part of its size, and no text of it is ever parsed as markup."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    # Without a time in it, equal data gives equal bytes.
    return b64encode(gzip.compress(text, compresslevel=6, mtime=0)).decode()


def _name(settings: Settings) -> str:
    """What tells the page of one audit from that of another: the folder it lies in."""
    return Path(settings.folder).resolve().name


def _timezone(name: str) -> str:
    days = "Days and times are UTC." if name == "UTC" else f"Days are those of {name}, times UTC."
    return days


def _before(copy: Copy) -> str:
    before = copy.missing_before()
    return f"{before:,} expected before the first batch are not shown." if before else ""


def _definitions(contents: Document) -> list[dict[str, str]]:
    """What the catalogue says of the metrics on the page."""
    shown = {name.split("(")[0].split("@")[0] for name in contents.data["metrics"]}
    return [
        {
            "name": metric.name,
            "plain": metric.title,
            "what": "Of each group:" if metric.per_group else "",
            "formula": metric.formula,
            "range": str(metric.range),
            "source": metric.source,
        }
        for metric in METRICS
        if metric.name in shown
    ]
