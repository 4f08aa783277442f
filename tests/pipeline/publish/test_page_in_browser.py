"""The page in a real browser: drawn, quiet, within reach of everybody, and without network."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import Scheme, Watched, chromium, opened, required, why_not
from pages import HOSTILE, HOSTILE_SLICES, MISSING, UNFAIR, shared
from playwright.sync_api import Browser
from stores import read

from pipeline.formatting.numbers import interval_text, number
from pipeline.publish.page import page
from pipeline.publish.page.page import write_report
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

pytestmark = pytest.mark.slow

SCORED = ("month", "hostile", "one", "last_night", "years")
EVERY = (*SCORED, "none")
CHOOSERS = ("choose-metric", "choose-attribute", "choose-slice")
CHARTS = {"heat", "changes", "trend", "groups", "calendar", "quality", "lists"}
MOST_BYTES, MOST_BYTES_OF_YEARS = 3_000_000, 5_000_000
_CHOICES = 6
SIZES = (
    *(0.3125, 0.72, 1.0, 12.5, 99.95, 999.4, 999.5, 999.6, 1234.5, 2500.5, 999999.4, 1e6, 1.235e9),
    *(2.5e-7, 0.000099999, 0.0001, 0.00012345, 0.0625, 0.099996, 1 / 3, 2 / 3, 0.1),
)
Written = Callable[[str], Path]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    if missing := why_not():
        if required():
            pytest.fail(missing)
        pytest.skip(missing)
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def settings_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Settings]:
    """Settings of a store by its name, made with its page when first asked for."""
    base = tmp_path_factory.getbasetemp()
    return lambda name: shared(base, name, write_report)


@pytest.fixture(scope="session")
def written(settings_of: Callable[[str], Settings]) -> Written:
    """The page of a store, by its name."""
    return lambda name: store_of(settings_of(name)).root / "report.html"


def choose(watched: Watched, chooser: str, option: int) -> None:
    """Take an option of a chooser, and wait until all charts are drawn."""
    watched.page.select_option(f"#{chooser}", index=option)
    watched.wait()


def options(watched: Watched, chooser: str) -> list[str]:
    """The texts of a chooser's options."""
    return watched.page.locator(f"#{chooser} option").all_text_contents()


def cells(watched: Watched, chart: str) -> list[list[str]]:
    """The table under a chart, row by row, without its head."""
    found: list[list[str]] = watched.page.locator(f"[data-table={chart}] tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found


# -- what holds for every page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_drawn_quietly_and_is_for_everybody(
    browser: Browser, written: Written, name: str, scheme: Scheme
) -> None:
    with opened(browser, written(name), scheme=scheme) as watched:
        assert {part["name"] for part in watched.charts()} == CHARTS
        assert watched.not_drawn() == []
        assert watched.barriers() == []
        assert [watched.overflow(width) for width in (1280, 390)] == [0, 0]
        assert watched.barriers() == []
        assert watched.faults() == []


@pytest.mark.parametrize("name", SCORED)
def test_every_choice_is_drawn(browser: Browser, written: Written, name: str) -> None:
    with opened(browser, written(name)) as watched:
        for chooser in CHOOSERS:
            count = len(options(watched, chooser))
            assert count > 0
            for option in sorted(
                {round(at * (count - 1) / _CHOICES) for at in range(_CHOICES + 1)}
            ):
                choose(watched, chooser, option)
                assert watched.not_drawn() == [], (chooser, option)
        assert watched.barriers() == []
        assert watched.overflow(390) == 0
        assert watched.faults() == []


@pytest.mark.parametrize("name", EVERY)
def test_without_scripts_the_numbers_are_there(
    browser: Browser, written: Written, name: str
) -> None:
    with opened(browser, written(name), scripts=False) as watched:
        page = watched.page
        assert page.inner_text("#headline").strip()
        assert page.locator("[data-chart=heat]").is_visible()
        assert page.locator("table:visible tbody tr").count() > (0 if name in SCORED else -1)
        assert [part for part in page.locator("#choose").all() if part.is_visible()] == []
        assert watched.overflow(390) == 0
        assert watched.said == []


@pytest.mark.parametrize("name", EVERY)
def test_printed_it_shows_what_the_screen_shows(
    browser: Browser, written: Written, name: str
) -> None:
    with opened(browser, written(name)) as watched:
        watched.page.emulate_media(media="print")
        assert watched.page.is_visible("#headline")
        assert watched.page.is_visible("[data-chart=heat]")
        assert not watched.page.is_visible("#choose")
        assert watched.not_drawn() == []
        assert watched.page.pdf().startswith(b"%PDF")
        assert watched.faults() == []


@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_small_enough_to_send(written: Written, name: str) -> None:
    most = MOST_BYTES_OF_YEARS if name == "years" else MOST_BYTES
    assert 0 < written(name).stat().st_size < most


@pytest.mark.parametrize("name", SCORED)
def test_it_says_when_its_first_chart_was_drawn(
    browser: Browser, written: Written, name: str
) -> None:
    with opened(browser, written(name)) as watched:
        marks = watched.page.evaluate("() => performance.getEntriesByName('first-chart').length")
        assert marks == 1


# -- hands on keys


def test_keys_reach_everything(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        reached = list(watched.tabbed())
        assert reached[0]["href"].startswith("#")
        ids = [at["id"] for at in reached]
        assert [each for each in ids if each in CHOOSERS] == [*CHOOSERS]
        assert any(at["label"] and at["slice"] for at in reached)
        assert any(at["tag"] == "summary" for at in reached)
        without = [at for at in reached if at["outline"] == "none"]
        assert without == []


def test_enter_on_a_cell_shows_its_trend(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        page = watched.page
        before = cells(watched, "trend")
        assert before
        for _ in watched.tabbed():
            at = page.evaluate("() => ({...document.activeElement.dataset})")
            pressed = page.evaluate("() => document.activeElement.getAttribute('aria-pressed')")
            if at.get("slice", "").startswith("market") and pressed == "false":
                break
        else:
            pytest.fail("no key reaches a cell of another slice")
        page.keyboard.press("Enter")
        watched.wait()
        assert cells(watched, "trend") != before
        focus = page.evaluate("() => ({...document.activeElement.dataset})")
        assert (focus["label"], focus["slice"]) == (at["label"], at["slice"])
        assert page.locator("button[aria-pressed=true]").count() == 1
        assert watched.faults() == []


# -- what it says is so


def test_the_tables_hold_what_the_copy_holds(
    browser: Browser, written: Written, settings_of: Callable[[str], Settings]
) -> None:
    copy = store_of(settings_of("month")).dashboard
    with opened(browser, written("month")) as watched:
        label = options(watched, "choose-metric").index("EXP.MinMaxRatio")
        choose(watched, "choose-attribute", options(watched, "choose-attribute").index("gender"))
        choose(watched, "choose-metric", label)
        choose(watched, "choose-slice", options(watched, "choose-slice").index("whole batch"))
        shown = cells(watched, "trend")
        marks = watched.page.locator("[data-chart=trend] .mark-symbol path").count()
        groups = cells(watched, "groups")
    kept = read(
        copy,
        "SELECT batch, value, worst_group FROM v_trend WHERE slice = 'all' AND attribute = "
        "'gender' AND label = 'EXP.MinMaxRatio' ORDER BY batch DESC",
    )
    assert [row[0] for row in shown] == [row["batch"] for row in kept]
    assert [_number(row[1]) for row in shown] == [_rounded(row["value"]) for row in kept]
    assert [row[6] or None for row in shown] == [row["worst_group"] for row in kept]
    assert marks == sum(row["value"] is not None for row in kept) == 29
    of_groups = read(
        copy,
        "SELECT batch, group_value, value, n FROM v_groups WHERE slice = 'all' AND attribute = "
        "'gender' AND metric = 'EXP' AND n > 0",
    )
    assert sorted((row[0], row[1], _number(row[2]), row[4]) for row in groups) == sorted(
        (row["batch"], row["group_value"], _rounded(row["value"]), f"{row['n']:,}")
        for row in of_groups
    )


def _number(text: str) -> float | None:
    return float(text) if text and text != "none" else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{float(f'{value:.4g}'):.3g}")


def test_the_heat_map_holds_what_the_copy_holds(
    browser: Browser, written: Written, settings_of: Callable[[str], Settings]
) -> None:
    rows = read(
        store_of(settings_of("month")).dashboard,
        "SELECT label, slice, slice_value, value FROM v_latest WHERE label = 'EXP.MinMaxRatio' "
        "AND attribute = 'gender'",
    )
    with opened(browser, written("month")) as watched:
        choose(watched, "choose-attribute", options(watched, "choose-attribute").index("gender"))
        found: list[dict[str, Any]] = watched.page.locator(
            "button[data-label='EXP.MinMaxRatio'][data-slice]"
        ).evaluate_all(
            "all => all.map(each => ({slice: each.dataset.slice, text: each.textContent}))"
        )
    assert {each["slice"]: _number(each["text"].split()[0]) for each in found} == {
        f"{row['slice']}={row['slice_value']}": _rounded(row["value"]) for row in rows
    }


def test_a_whole_month_leaves_no_chart_empty(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        assert [part["name"] for part in watched.charts() if part["empty"]] == []


def test_the_unfair_day_stands_out_on_the_first_screen(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        first = [
            part.inner_text()
            for part in watched.page.locator(".alerts li").all()
            if (box := part.bounding_box()) and box["y"] < 900
        ]
    assert any(UNFAIR in text and "with F worst off" in text for text in first)


def test_a_missing_day_is_a_gap_and_is_hollow(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        trend = {row[0]: row for row in cells(watched, "trend")}
        calendar = {row[0]: row[1] for row in cells(watched, "calendar")}
        hollow = watched.page.locator("[data-chart=calendar] path[fill-opacity='0']").count()
    assert trend[MISSING][1] == ""
    assert "missing" in calendar[MISSING] or "no data" in calendar[MISSING]
    assert hollow == 1


def test_numbers_read_as_they_do_elsewhere(browser: Browser) -> None:
    script = (Path(page.__file__).parent / "script" / "words.js").read_text("utf-8")
    values = [sign * size for size in SIZES for sign in (1, -1)]
    ends = [(0.5, 1.0), (None, 0.5), (0.5, None), (None, None)]
    spans = f"(ends) => {{ {script}; return ends.map((pair) => span(...pair)); }}"
    with closing(browser.new_page()) as blank:
        texts = blank.evaluate(f"(values) => {{ {script}; return values.map(digits); }}", values)
        said = blank.evaluate(spans, ends)
    assert texts == [number(value) for value in values]
    assert said == [interval_text(*pair) for pair in ends]


# -- the clock


@pytest.mark.parametrize(("hours", "missing"), [(-18, False), (-1, False), (1, True), (99, True)])
def test_a_red_bar_says_that_a_night_is_missing(
    browser: Browser,
    written: Written,
    settings_of: Callable[[str], Settings],
    hours: int,
    missing: bool,
) -> None:
    schedule = settings_of("last_night").schedule
    began = schedule.start
    midnight = datetime(began.year, began.month, began.day, tzinfo=UTC)
    # The second night's day ends two days after the first began; then hours are left.
    moment = midnight + timedelta(days=2, hours=schedule.deadline_hours + hours)
    with opened(browser, written("last_night"), at=moment) as watched:
        bar = watched.page.locator("#missing")
        assert bar.is_visible() == missing
        if missing:
            assert (began + timedelta(days=1)).isoformat() in bar.inner_text()
        assert watched.barriers() == []
        assert watched.faults() == []


def test_an_audit_that_has_ended_misses_nothing(browser: Browser, written: Written) -> None:
    with opened(browser, written("month"), at=datetime(2030, 1, 1, tzinfo=UTC)) as watched:
        assert not watched.page.is_visible("#missing")


# -- names that try to be more


def test_names_are_text(browser: Browser, written: Written) -> None:
    with opened(browser, written("hostile")) as watched:
        slices = options(watched, "choose-slice")
        assert {text.split(": ")[0] for text in slices} == {"whole batch", *HOSTILE_SLICES}
        shown = "\n".join(slices)
        assert [text for text in HOSTILE[:4] if text not in shown] == []
        for attribute in range(len(options(watched, "choose-attribute"))):
            choose(watched, "choose-attribute", attribute)
        assert watched.faults() == []


def test_an_address_cannot_run_anything(browser: Browser, written: Written) -> None:
    file = written("hostile")
    with opened(browser, file) as watched:
        for text in HOSTILE[:8]:
            watched.page.evaluate(
                "text => { location.hash = new URLSearchParams("
                "{score: text, attribute: text, slice: text, value: text, batch: text}); }",
                text,
            )
            watched.page.evaluate("text => { location.hash = text; }", text)
            watched.wait()
        assert watched.not_drawn() == []
        assert watched.faults() == []


# -- whether these tests would notice


EVIL = """<!doctype html><html lang="en" data-ready="yes"><head><title>evil</title>
<meta http-equiv="Content-Security-Policy" content="img-src 'none'"></head><body>
<main><h1>evil</h1><p style="width:3000px;color:#ccc;background:#fff">pale and wide</p>
<div data-chart="a"><canvas></canvas></div><div data-chart="b"><svg></svg></div>
<div data-chart="c"></div><div data-chart="heat"><table></table></div></main>
<script>window.pwned = 1; console.error("said"); alert("asked"); nowhere();</script>
<script src="http://127.0.0.1:9/other.js"></script><img alt="" src="x.png"></body></html>"""


def test_what_a_page_must_not_do_is_noticed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "evil.html"
    file.write_text(EVIL, encoding="utf-8")
    with opened(browser, file) as watched:
        faults = "\n".join(watched.faults())
        for text in ("said", "dialog: asked", "nowhere", "request: http://127.0.0.1:9/other.js",
                     "img-src", "a script of data"):  # fmt: skip
            assert text in faults
        assert watched.not_drawn() == ["a", "b", "c", "heat"]
        assert watched.overflow(1280) > 1000
        assert any("color-contrast" in each for each in watched.barriers())
