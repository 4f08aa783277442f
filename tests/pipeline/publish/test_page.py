"""The page as a file: what it holds, that it holds it safely, and when it is written anew."""

import fcntl
import gzip
import json
import os
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from histories import NIGHTS, put, score, small_audit
from pages import hostile, none, one
from stores import copied, read

from metrics import METRICS
from pipeline.errors import AuditError, NoData
from pipeline.formatting.looks import GROUPS, LOOKS, VERDICTS
from pipeline.formatting.numbers import number, slice_name
from pipeline.publish.copy import publish
from pipeline.publish.page.document import CODES, DIGITS, NO_SCORE, document, rounded
from pipeline.publish.page.extent import MOST_POINTS, Extent, Size, fitting
from pipeline.publish.page.fresh import renew_report
from pipeline.publish.page.page import SECTIONS, write_report
from pipeline.publish.page.reading import Copy, Row, opened_copy
from pipeline.publish.page.scores import about
from pipeline.publish.page.words import headline
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.scores import STATUSES

Data = dict[str, Any]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside.append(tag)
        if tag in ("script", "style"):
            self.texts.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] in ("script", "style"):
            tag, before = self.texts[-1]
            self.texts[-1] = tag, before + data


def packed(text: str) -> Data:
    """The data of a page, as its script reads it."""
    found = re.search(r'id="data">([^<]*)</script>', text)
    assert found
    data: Data = json.loads(gzip.decompress(b64decode(found[1])))
    return data


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An audit whose names try to be something else."""
    return hostile(tmp_path_factory.mktemp("hostile"))


def text_of(settings: Settings) -> str:
    return write_report(settings).read_text(encoding="utf-8")


# -- what it holds


def test_every_current_score_is_on_the_page_as_it_stands_in_the_copy(small_store: Settings) -> None:
    with opened_copy(small_store) as copy:
        data = document(copy).data
    told = set()
    for slice_, attribute, label, columns in data["series"]:
        for at, (value, code) in enumerate(
            zip(columns["value"], columns["status"], strict=True), columns["from"]
        ):
            if code != NO_SCORE:
                limits = [step[1:] for step in columns.get("limits", ()) if step[0] <= at]
                told.add(
                    (
                        data["batches"][at],
                        *data["slices"][slice_],
                        data["attributes"][attribute],
                        data["labels"][label]["label"],
                        value,
                        next(name for name, letter in CODES.items() if letter == code),
                        *(limits[-1] if limits else (None, None)),
                    )
                )
    expected = {
        (*key, rounded(value), status, rounded(least), rounded(most))
        for *key, value, status, least, most in (
            tuple(row.values())
            for row in read(
                store_of(small_store).dashboard,
                "SELECT batch, slice, slice_value, attribute, label, value, status, "
                "threshold_min, threshold_max FROM v_history",
            )
        )
    }
    assert told == expected
    assert len(told) > 50


def test_what_a_verdict_is_about_and_rests_on_is_on_the_page(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    judged = {"judged_value": 0.9, "judged_groups": '["F", "M"]', "judged_worst_group": "M"}
    thin = {"worst_group": "X", "thin_groups": '["X"]', "status_reason": "few_queries: X"}
    put(settings, NIGHTS[0], [score(0.9)])
    put(settings, NIGHTS[1], [score(0.2, status="insufficient", **judged, **thin)])
    publish(settings)
    with opened_copy(settings) as copy:
        data = document(copy).data
        (latest,) = copy.latest()
    assert (latest["value"], latest["worst_group"]) == (0.9, "M")
    ((*_, columns),) = data["series"]
    # A trend is one of all groups, whatever is judged.
    assert columns["value"] == [0.9, 0.2]
    assert columns["judged"] == {1: [0.9, None, None]}
    assert [data["groups"][at] for at in columns["worst"]] == ["F", "M"]
    assert {at: data["reasons"][n] for at, n in columns["sure"].items()} == {
        1: "X is not judged: few queries."
    }


def test_every_value_of_a_group_is_on_the_page(small_store: Settings) -> None:
    with opened_copy(small_store) as copy:
        data = document(copy).data
    told = {
        (
            data["batches"][at],
            *data["slices"][slice_],
            data["attributes"][attribute],
            data["metrics"][metric],
            data["groups"][group],
            value,
            n,
        )
        for slice_, attribute, metric, group, columns in data["group_series"]
        for at, (value, n) in enumerate(
            zip(columns["value"], columns["n"], strict=True), columns["from"]
        )
        if n is not None
    }
    rows = read(
        store_of(small_store).dashboard,
        "SELECT batch, slice, slice_value, attribute, metric, group_value, value, n FROM v_groups",
    )
    assert told == {(*list(row.values())[:6], rounded(row["value"]), row["n"]) for row in rows}
    assert told


@pytest.mark.slow
def test_batches_without_scores_are_there_and_say_why(tmp_path: Path) -> None:
    with opened_copy(none(tmp_path)) as copy:
        told = document(copy)
    assert told.newest is None
    assert not any(told.data["scored"])
    assert {"refused", "no_data"} <= set(told.data["states"])
    refused = told.data["states"].index("refused")
    assert told.data["messages"][refused]
    assert told.data["series"] == told.data["labels"] == []


@pytest.mark.slow
def test_equal_copies_give_equal_pages(settings: Settings) -> None:
    first = text_of(settings)
    assert text_of(settings) == first
    before = packed(first)
    publish(settings)
    after = packed(text_of(settings))
    assert {**after, "about": {}} == {**before, "about": {}}


@pytest.mark.parametrize("value", [0.123456789, -1.5e-12, 1e300, 0.0, 5e-324])
def test_a_number_travels_with_four_digits(value: float) -> None:
    told = rounded(value)
    assert told == pytest.approx(value, rel=0.5 * 10 ** (1 - DIGITS), abs=0)


# -- how much of a long history


@pytest.mark.parametrize(
    "size",
    [
        Size(30, 6, 40, 160, 80),
        Size(1095, 40, 26, 114, 80),
        Size(1095, 1000, 200, 1200, 5000),
        Size(20_000, 0, 10, 60, 10),
        Size(1, 0, 1, 0, 0),
    ],
)
def test_a_page_holds_what_fits(size: Size) -> None:
    extent = fitting(size)
    assert extent.points(size) <= MOST_POINTS or extent == fitting(
        Size(10**6, 10**6, 500, 500, 500)
    )
    if Extent().points(size) <= MOST_POINTS:
        assert extent == Extent()


def test_less_fits_of_more() -> None:
    points = [
        fitting(Size(days, 40, 26, 114, 80)).points(Size(days, 40, 26, 114, 80))
        for days in (10, 30, 365, 1095, 5000)
    ]
    assert max(points) <= MOST_POINTS
    assert points[0] == 10 * 220 * 41


def test_every_number_of_a_small_page_names_something(
    small_store: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {
        **dict.fromkeys(("value", "center", "residual", "previous"), 0.5),
        **{"worse": True, "shift": False, "since": None},
    }

    def changes(copy: Copy, since: str, most: int) -> list[Row]:
        return [{**row, **change} for row in copy.scores([], whole=("", ""), parts=("", ""))]

    monkeypatch.setattr(
        "pipeline.publish.page.document.fitting", lambda size: Extent(1, 0, 0, 0, 0, 0, 0)
    )
    monkeypatch.setattr(Copy, "changes", changes)
    with opened_copy(small_store) as copy:
        data = document(copy).data
    assert data["slices"] == [["all", "all"]]
    assert data["changes"]
    for at, slice_, attribute, label, *_ in data["changes"]:
        assert data["batches"][at]
        assert slice_ == 0
        assert attribute < len(data["attributes"])
        assert data["labels"][label]["label"]
        assert data["metrics"][data["metric_of"][label]]


# -- that it asks for nothing and runs nothing else


def test_only_what_the_page_was_written_with_may_run(small_store: Settings, tmp_path: Path) -> None:
    elements = Elements(text_of(copied(small_store, tmp_path)))
    policy = next(
        said["content"] or ""
        for tag, said in elements.found
        if tag == "meta" and said.get("http-equiv") == "Content-Security-Policy"
    )
    rules = {rule.split()[0]: set(rule.split()[1:]) for rule in policy.split("; ")}

    def digests(kind: str) -> set[str]:
        typed = [said for tag, said in elements.found if tag == kind]
        return {
            f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
            for said, (_, text) in zip(
                typed, [each for each in elements.texts if each[0] == kind], strict=True
            )
            if said.get("type") in (None, "module")
        }

    assert rules == {
        "default-src": {"'none'"},
        "script-src": digests("script"),
        "style-src": digests("style"),
        "base-uri": {"'none'"},
        "form-action": {"'none'"},
    }
    assert len(rules["script-src"]) == 2


def assert_inert(elements: Elements) -> None:
    for tag, said in elements.found:
        assert tag not in ("a", "base", "embed", "iframe", "img", "link", "object", "svg") or (
            tag == "a" and said["href"] == "#main"
        )
        assert not {"src", "srcset", "action", "ping", "style"} & said.keys()
        assert not [name for name in said if name.startswith("on")]


@pytest.mark.slow
def test_names_never_become_markup(strange: Settings) -> None:
    elements = Elements(text_of(strange))
    assert_inert(elements)
    assert [tag for tag, _ in elements.found].count("script") == 4
    assert elements.inside in ([], ["html"])


def test_the_plain_page_is_inert_too(small_store: Settings, tmp_path: Path) -> None:
    assert_inert(Elements(text_of(copied(small_store, tmp_path))))


@pytest.mark.parametrize("cell", [5, 1_000_000])
def test_what_is_kept_back_is_not_on_the_page(settings: Settings, cell: int) -> None:
    hiding = settings.model_copy(
        update={"privacy": settings.privacy.model_copy(update={"min_cell": cell})}
    )
    publish(hiding)
    data = packed(text_of(hiding))
    assert data["lists"] == []
    shown = read(
        store_of(hiding).dashboard,
        "SELECT count(value) AS told, count(*) AS rows FROM v_history",
    )
    columns = [columns for *_, columns in data["series"]]
    rows = [code for each in columns for code in each["status"] if code != NO_SCORE]
    told = [value for each in columns for value in each["value"] if value is not None]
    assert [{"told": len(told), "rows": len(rows)}] == shown


@pytest.mark.slow
def test_an_empty_and_a_short_history_have_a_page(tmp_path: Path) -> None:
    empty = text_of(none(tmp_path / "none"))
    assert "No batch has been scored yet" in empty
    short = packed(text_of(one(tmp_path / "one")))
    assert len(short["batches"]) == 1
    assert short["series"]


# -- when it is written


def test_without_a_copy_there_is_no_page(tmp_path: Path, settings: Settings) -> None:
    store_of(settings).dashboard.unlink()
    with pytest.raises(NoData, match="nothing is published yet"):
        write_report(settings)
    assert renew_report(settings) is None


def test_it_is_renewed_with_the_copy_only(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    path = renew_report(settings)
    assert path == store_of(settings).report
    made = path.stat().st_mtime_ns
    renew_report(settings)
    assert path.stat().st_mtime_ns == made
    later = made + 1_000_000_000
    os.utime(store_of(settings).dashboard, ns=(later, later))
    renew_report(settings)
    assert path.stat().st_mtime_ns != made
    assert not caplog.messages


def test_a_copy_of_an_older_version_is_named(settings: Settings) -> None:
    from damaged import change

    change(store_of(settings).dashboard, "DROP VIEW v_coverage")
    with pytest.raises(AuditError, match="evenrank publish"):
        write_report(settings)


def test_what_a_killed_process_left_beside_the_page_goes(settings: Settings) -> None:
    page = store_of(settings).report
    dead, living = (page.with_name(f".{page.name}.{pid}.new") for pid in (1, 2))
    dead.write_text("half a page")
    with living.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_report(settings)
        assert living.exists()
        assert not dead.exists()
    write_report(settings)
    assert not [*page.parent.glob(".*.new")]


def test_a_page_that_cannot_be_written_fails_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    (store_of(settings).report).mkdir()
    assert renew_report(settings) is None
    assert len(caplog.messages) == 1
    assert not list(store_of(settings).root.glob("*.new"))


# -- words and looks


def test_there_is_a_code_for_every_verdict() -> None:
    assert set(CODES) == set(STATUSES)
    assert len({*CODES.values(), NO_SCORE}) == len(CODES) + 1


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_on_colours_can_be_read() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for look in VERDICTS[:-1]:
        assert contrast("#000000", look.colour) >= 4.5
    assert contrast("#FFFFFF", GROUPS[0]) >= 4.5
    for colour in GROUPS[1:]:
        assert contrast("#000000", colour) >= 4.5


@pytest.mark.parametrize(
    ("counts", "said", "look"),
    [
        ({"breach": 1, "gated": 3}, "d: 1 score beyond its threshold", "breach"),
        ({"breach": 2, "ok": 9}, "d: 2 scores beyond their thresholds", "breach"),
        ({"gated": 4}, "d: not judged, as a data gate is closed", "gated"),
        (
            {"insufficient": 1, "ok": 5},
            "d: no breach, but 1 score cannot be judged with confidence",
            "insufficient",
        ),
        (
            {"composition": 1, "ok": 5},
            "d: no breach, but 1 score is beyond its threshold as lists in random order would be",
            "composition",
        ),
        (
            {"composition": 2, "insufficient": 3},
            "d: no breach, but 2 scores are beyond their thresholds as lists in "
            "random order would be; 3 scores cannot be judged with confidence",
            "composition",
        ),
        ({"ok": 1}, "d: no score breaches its threshold", "ok"),
        (
            {"undefined": 1, "not_judged": 7},
            "d: no score with a threshold has a value",
            "undefined",
        ),
        ({"not_judged": 7}, "d: scored, but no thresholds are set", "not_judged"),
    ],
)
def test_the_headline_says_the_gravest(counts: dict[str, int], said: str, look: str) -> None:
    batch = {**dict.fromkeys(STATUSES, 0), **counts, "scores": sum(counts.values())}
    assert headline("d", batch) == (said, look)
    assert "kept back" in headline("d", {**batch, "scores": 0})[0]
    assert headline(None, None)[1] is None


def test_words() -> None:
    assert slice_name("all", "all") == "whole batch"
    assert slice_name("market", "de") == "market: de"
    assert number(-1234.6) == "-1,235"


def test_a_score_is_explained_by_its_declaration() -> None:
    told = about("EXP.MinMaxRatio")
    assert (told.low, told.high, told.fairest, told.alarm, told.main) == (0, 1, 1, "low", True)
    assert not about("EXP.Variance").main
    assert about("Gone(p=3).Someway").title is None
    assert all(about(metric.usual.label).title for metric in METRICS if not metric.usual.ways)


def test_every_section_has_a_chart(small_store: Settings, tmp_path: Path) -> None:
    text = text_of(copied(small_store, tmp_path))
    data = packed(text)
    names = {name for name, _, _ in SECTIONS}
    assert set(data["charts"]) == names
    assert set(re.findall(r'data-chart="(\w+)"', text.split("<script")[0])) == {*names, "heat"}
    assert set(LOOKS) >= {look for each in data["states"] for look in [each] if each != "done"}
