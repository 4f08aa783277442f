"""The page in a real browser: what it shows is what the copy holds, for whatever day is chosen."""

import csv
import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from math import log2
from pathlib import Path
from statistics import median

import pytest
from browser import Scheme, Watched, chromium, opened, required, why_not
from pages import HOSTILE, MISSING, UNFAIR, shared
from playwright.sync_api import Browser
from stores import read

from pipeline.formatting.apart import texts_apart
from pipeline.formatting.numbers import interval_text, number
from pipeline.publish.page import page
from pipeline.publish.page.page import write_report
from pipeline.publish.page.scores import about
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.usual import BEFORE, FAR, LEAST

pytestmark = pytest.mark.slow

SCORED = ("month", "hostile", "one", "last_night", "years")
EVERY = (*SCORED, "none")
MOST_BYTES, MOST_BYTES_OF_YEARS = 2_000_000, 5_000_000
WIDTHS = (1440, 860, 390)
SIZES = (
    *(0.3125, 0.72, 1.0, 12.5, 99.95, 999.4, 999.5, 999.6, 1234.5, 2500.5, 999999.4, 1e6, 1.235e9),
    *(2.5e-7, 0.000099999, 0.0001, 0.00012345, 0.0625, 0.099996, 1 / 3, 2 / 3, 0.1, 0.766519),
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


@pytest.fixture(scope="session")
def month(settings_of: Callable[[str], Settings]) -> Path:
    """The published copy of the month."""
    return store_of(settings_of("month")).dashboard


def go(watched: Watched, **said: str) -> None:
    """Choose by the address, as a link does."""
    watched.page.evaluate("said => { location.hash = new URLSearchParams(said).toString(); }", said)
    watched.page.wait_for_function("() => new Promise(done => setTimeout(() => done(true), 0))")


def texts(watched: Watched, selector: str) -> list[str]:
    return watched.page.locator(selector).all_inner_texts()


def shown(value: float | None) -> str:
    """A number as the page writes it."""
    return re.sub("^-", "−", number(value))


# -- what holds for every page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_drawn_quietly_and_is_for_everybody(
    browser: Browser, written: Written, name: str, scheme: Scheme
) -> None:
    with opened(browser, written(name), scheme=scheme) as watched:
        assert watched.page.get_attribute("html", "data-ready") == "yes"
        assert watched.not_drawn() == []
        assert watched.barriers() == []
        assert [watched.overflow(width) for width in WIDTHS] == [0, 0, 0]
        assert watched.barriers() == []
        assert watched.faults() == []


@pytest.mark.parametrize("name", EVERY)
def test_without_scripts_the_numbers_are_there(
    browser: Browser, written: Written, name: str
) -> None:
    with opened(browser, written(name), scripts=False) as watched:
        assert watched.page.inner_text("#headline").strip()
        rows = watched.page.locator("[data-part=heat] tbody tr").count()
        assert rows > (0 if name in SCORED else -1)
        assert watched.overflow(390) == 0
        assert watched.said == []


@pytest.mark.parametrize("name", ["month", "none"])
def test_printed_it_shows_what_the_screen_shows(
    browser: Browser, written: Written, name: str
) -> None:
    with opened(browser, written(name)) as watched:
        watched.page.emulate_media(media="print")
        assert watched.page.is_visible("#headline")
        assert not watched.page.is_visible("#acts")
        assert watched.not_drawn() == []
        assert watched.page.pdf().startswith(b"%PDF")
        assert watched.faults() == []


@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_small_enough_to_send(written: Written, name: str) -> None:
    most = MOST_BYTES_OF_YEARS if name == "years" else MOST_BYTES
    assert 0 < written(name).stat().st_size < most


@pytest.mark.parametrize("name", ["month", "years", "one"])
def test_no_text_of_a_chart_lies_on_another(browser: Browser, written: Written, name: str) -> None:
    with opened(browser, written(name)) as watched:
        assert (
            watched.page.evaluate("() => performance.getEntriesByName('first-chart').length") == 1
        )
        for batch in (UNFAIR, MISSING, ""):
            if batch:
                go(watched, batch=batch)
            for width in WIDTHS:
                watched.page.set_viewport_size({"width": width, "height": 900})
                # The page puts its texts apart when the window has come to rest.
                watched.page.wait_for_timeout(150)
                assert watched.touching() == [], (batch, width)


# -- every number is that of SQL, rounded once


def test_scores_by_slice_are_those_of_the_copy(
    browser: Browser, written: Written, month: Path
) -> None:
    with opened(browser, written("month")) as watched:
        for batch in (UNFAIR, "2026-01-30"):
            go(watched, batch=batch)
            for fold in watched.page.locator(".fold > summary").all():
                fold.click()
            # A fold draws its table once the browser has told it that it is open.
            watched.page.wait_for_function(
                "() => [...document.querySelectorAll('.fold')]"
                ".every(each => each.querySelector('table'))"
            )
            found = watched.page.locator("td.c a").evaluate_all(
                "all => all.map(each => [each.dataset.label, each.dataset.attribute ?? 'null', "
                "each.dataset.slice, each.querySelector('.value').textContent])"
            )
            rows = read(
                month,
                "SELECT label, attribute, slice, slice_value, judged_value AS value "
                f"FROM v_history WHERE batch = '{batch}'",
            )
            expected = {
                (
                    row["label"],
                    row["attribute"] or "null",
                    f"{row['slice']}={row['slice_value']}",
                ): shown(row["value"])
                for row in rows
                if about(row["label"]).main
            }
            assert {tuple(key): text for *key, text in found} == expected


def test_on_a_phone_each_cell_names_its_slice(browser: Browser, written: Written) -> None:
    with opened(browser, written("month"), width=390) as watched:
        found = watched.page.locator("[data-part=heat] > table tr td.c a").evaluate_all(
            "all => all.map(each => [each.dataset.slice.split('=')[1], "
            "getComputedStyle(each, '::before').content])"
        )
    assert {(value, text.strip('"')) for value, text in found} == {
        ("all", "All"),
        *((each, each) for each in ("desktop", "mobile", "tablet", "de", "fr", "us")),
    }


def test_judged_scores_stand_in_the_order_that_is_stated(
    browser: Browser, written: Written, month: Path
) -> None:
    with opened(browser, written("month")) as watched:
        for batch in (UNFAIR, "2026-01-30"):
            go(watched, batch=batch)
            table = watched.page.locator("[data-part=heat] > table")
            found = table.locator("td.all a").evaluate_all(
                "all => all.map(each => [each.dataset.label, each.dataset.attribute])"
            )
            # The limits of the month are those of ratios, whose fair value is 1.
            rows = read(
                month,
                "SELECT label, attribute, count(*) FILTER (status = 'breach') AS breaches, "
                "max((judged_value - threshold_min) / (1 - threshold_min)) "
                "FILTER (slice = 'all') AS margin FROM v_history "
                f"WHERE batch = '{batch}' GROUP BY ALL "
                "HAVING bool_or(status <> 'not_judged') ORDER BY breaches DESC, margin",
            )
            assert found == [[row["label"], row["attribute"]] for row in rows]


def test_groups_are_those_of_the_copy_worst_first(
    browser: Browser, written: Written, month: Path
) -> None:
    with opened(browser, written("month")) as watched:
        go(watched, batch=UNFAIR)
        found = watched.page.locator("[data-part=groups] .rows").evaluate(
            "rows => [...rows.querySelectorAll('.row[data-group]')].map(row => "
            "[row.querySelector('.name').textContent, row.querySelector('.say').textContent])"
        )
    kept = read(
        month,
        "SELECT attribute, group_value, value, lower, upper, n, "
        "sum(value * n) OVER (PARTITION BY attribute) / sum(n) OVER (PARTITION BY attribute) "
        f"AS average FROM v_groups WHERE batch = '{UNFAIR}' AND slice = 'all' AND metric = 'EXP' "
        "AND value IS NOT NULL ORDER BY attribute, group_value = 'unknown', value",
    )
    expected = []
    for row in kept:
        away = row["value"] / row["average"] - 1
        text = f"{_percent(abs(away))} {'less' if away < 0 else 'more'}"
        if row["group_value"] == "unknown":
            text += ", not compared"
        elif row["lower"] <= row["average"] <= row["upper"]:
            text += ", may be equal"
        name = row["group_value"]
        bad = "✕ " if (row["attribute"], name) == ("gender", "F") else ""
        expected.append(["Not known" if name == "unknown" else name, f"{bad}{text}"])
    assert found == expected


def _percent(value: float) -> str:
    return texts_apart({"value": value}, "percent")["value"]


def test_changes_are_those_of_the_copy_the_largest_first(
    browser: Browser, written: Written, month: Path
) -> None:
    with opened(browser, written("month")) as watched:
        go(watched, batch=UNFAIR)
        watched.page.locator("[data-part=changes] summary").click()
        heading = watched.page.inner_text("#h-changes")
        found = watched.page.locator("[data-part=changes] .row[data-score]").evaluate_all(
            "all => all.map(row => [row.dataset.score, row.dataset.attribute, "
            "row.querySelector('.say').firstChild.textContent + row.querySelector('b').textContent,"
            " row.querySelector('.say small').textContent])"
        )
    moves = sorted(_moves(month), key=lambda move: -move[0])
    # The rule is that of the view.
    assert {move[1:] for move in moves} == {
        (
            row["moved_beyond"],
            row["label"],
            row["attribute"] or "",
            f"{shown(row['usual'])} → {shown(row['value'])}",
        )
        for row in read(
            month,
            f"FROM v_usual WHERE batch = '{UNFAIR}' AND slice = 'all' AND moved_beyond IS NOT NULL",
        )
        if about(row["label"]).main
    }
    moved = [move for move in moves if move[1]]
    assert heading == f"What changed: {len(moved)} of {len(moves)} scores moved beyond chance"
    assert [tuple(row[:3]) for row in found] == [
        move[2:] for move in (*moved, *(move for move in moves if not move[1]))
    ]
    assert [("beyond" in row[3]) for row in found] == [True] * len(moved) + [False] * (
        len(moves) - len(moved)
    )


def _moves(month: Path) -> Iterator[tuple[float, bool, str, str, str]]:
    """Size in units of chance, whether beyond it, score, attribute and text of each change."""
    (release,) = read(month, f"SELECT max(batch) AS batch FROM v_markers WHERE batch <= '{UNFAIR}'")
    rows = read(
        month,
        "SELECT label, coalesce(attribute, '') AS attribute, list(judged_value ORDER BY batch) "
        f"FILTER (batch < '{UNFAIR}' AND batch >= '{release['batch']}') AS before, "
        f"max(judged_value) FILTER (batch = '{UNFAIR}') AS value, "
        f"max(judged_upper - judged_lower) FILTER (batch = '{UNFAIR}') AS width "
        "FROM v_history WHERE slice = 'all' GROUP BY ALL",
    )
    for row in rows:
        before = [value for value in row["before"] or [] if value is not None][-BEFORE:]
        if not about(row["label"]).main or row["value"] is None or len(before) < LEAST:
            continue
        usual = median(before)
        spread = FAR * median(abs(value - usual) for value in before)
        reach = max(spread, (row["width"] or 0) / 2) or 1e-12
        size = abs(row["value"] - usual)
        text = f"{shown(usual)} → {shown(row['value'])}"
        yield size / reach, size > reach + 1e-9, row["label"], row["attribute"], text


def test_lists_are_those_of_the_copy(browser: Browser, written: Written, month: Path) -> None:
    with opened(browser, written("month")) as watched:
        heading = watched.page.inner_text("#h-lists")
        found = texts(watched, ".lists li b")
        go(watched, batch=MISSING)
        assert "There are none." in watched.page.inner_text("[data-part=lists]")
    assert heading.startswith("The lists of 30 January")
    rows = read(
        month,
        "SELECT place, losing_group, rank, group_value FROM v_lists WHERE attribute = 'region' "
        "AND batch = '2026-01-30' ORDER BY place, rank",
    )
    expected = []
    for place in range(1, 9):
        entries = [row for row in rows if row["place"] == place]
        own = [row for row in entries if row["group_value"] == row["losing_group"]]
        exposure = [sum(1 / log2(row["rank"] + 1) for row in part) for part in (own, entries)]
        expected.append(
            f"{entries[0]['losing_group']}: {_percent(len(own) / len(entries))} of the items, "
            f"{_percent(exposure[0] / exposure[1])} of the exposure"
        )
    assert found == expected


def test_numbers_read_as_they_do_elsewhere(browser: Browser) -> None:
    script = (Path(page.__file__).parent / "script" / "numbers.js").read_text("utf-8")
    chance = random.Random(5)
    drawn = [chance.uniform(-1, 1) * 10 ** chance.randint(-6, 7) for _ in range(20_000)]
    halves = [n / 2**k for k in range(1, 14) for n in range(1, 2**k, 2)]
    values = [sign * size for size in (*SIZES, *halves) for sign in (1, -1)] + drawn
    ends = [(0.5, 1.0), (None, 0.5), (0.5, None), (None, None)]
    with closing(browser.new_page()) as blank:
        said = blank.evaluate(
            f"(values) => {{ {script}; return values.map((v) => digits(v)); }}", values
        )
        spans = blank.evaluate(
            f"(all) => {{ {script}; return all.map((pair) => span(...pair)); }}", ends
        )
        shares = blank.evaluate(
            f"(values) => {{ {script}; return values.map((v) => percent(v)); }}", values
        )
    assert said == [shown(value) for value in values]
    assert spans == [interval_text(*pair) for pair in ends]
    assert shares == [re.sub("^-", "−", _percent(value)) for value in values]


def test_a_csv_has_the_rows_of_its_chart_whole(
    browser: Browser, written: Written, month: Path
) -> None:
    with opened(browser, written("month")) as watched:
        go(watched, batch=UNFAIR)
        with watched.page.expect_download() as download:
            watched.page.locator("#aside .csv").click()
        rows = list(csv.reader(download.value.path().open(encoding="utf-8")))
        assert watched.faults() == []
    kept = read(
        month,
        "SELECT batch, judged_value AS value FROM v_history WHERE slice = 'all' AND "
        "attribute = 'gender' AND label = 'EXP.MinMaxRatio' ORDER BY batch",
    )
    assert [[row[0], float(row[1])] for row in rows[1:] if row[1]] == [
        [*row.values()] for row in kept
    ]


# -- a chosen day is that day everywhere


def test_a_chosen_day_is_everywhere_that_day_and_back_works(
    browser: Browser, written: Written, month: Path
) -> None:
    said = {row["batch"]: row for row in read(month, "FROM v_conclusions")}
    with opened(browser, written("month")) as watched:
        newest = watched.page.inner_text("#headline")
        watched.page.click(f"[data-key=day-{18}]")
        watched.page.wait_for_function("() => location.hash.includes('2026-01-19')")
        assert watched.page.inner_text("#headline") == said[UNFAIR]["sentence"]
        assert watched.page.title() == said[UNFAIR]["title"]
        assert (
            watched.page.locator(".band [aria-current]")
            .get_attribute("aria-label")
            .startswith("Mon 19 January 2026")
        )
        assert "19 January" in watched.page.inner_text("#h-lists")
        assert "19 January" in watched.page.inner_text("[data-part=changes]")
        assert "19 January" in watched.page.inner_text("[data-part=groups]")
        cell = "td.all a[data-label='EXP.MinMaxRatio'][data-attribute=gender] .value"
        (row,) = read(
            month,
            f"SELECT value FROM v_history WHERE batch = '{UNFAIR}' AND slice = 'all' AND "
            "attribute = 'gender' AND label = 'EXP.MinMaxRatio'",
        )
        assert watched.page.locator(cell).first.inner_text() == shown(row["value"])
        watched.page.keyboard.press("ArrowRight")
        watched.page.wait_for_function("() => location.hash.includes('2026-01-20')")
        assert watched.page.inner_text("#headline") == said["2026-01-20"]["sentence"]
        watched.page.go_back()
        watched.page.wait_for_function("() => location.hash.includes('2026-01-19')")
        assert watched.page.inner_text("#headline") == said[UNFAIR]["sentence"]
        watched.page.go_back()
        watched.page.wait_for_function("() => location.hash === ''")
        assert watched.page.inner_text("#headline") == newest
        assert watched.faults() == []


def test_an_alert_opens_its_score_on_its_worst_day(
    browser: Browser, written: Written, month: Path
) -> None:
    alerts = read(month, "FROM v_alerts WHERE kind = 'breach' AND reading_of IS NOT NULL")
    assert alerts
    with opened(browser, written("month")) as watched:
        watched.page.locator("#band details summary").first.click()
        for alert in alerts:
            watched.page.click(f"[data-show='{alert['alert']}']")
            batch = alert["worst_batch"]
            watched.page.wait_for_function("(batch) => location.hash.includes(batch)", arg=batch)
            current = watched.page.locator("td a[aria-current=true]").first
            assert current.get_attribute("data-label") == alert["reading_of"]
            assert current.get_attribute("data-attribute") == alert["attribute"]
            assert current.get_attribute("data-slice") == f"{alert['slice']}={alert['slice_value']}"
            assert current.locator(".value").inner_text() == shown(alert["worst_value"])
            watched.page.locator("#band details summary").first.click()


def test_keys_reach_everything(browser: Browser, written: Written) -> None:
    with opened(browser, written("month")) as watched:
        reached = list(watched.tabbed())
        assert reached[0]["href"] == "#main"
        assert any(at["label"] and at["slice"] for at in reached)
        assert any(at["tag"] == "summary" for at in reached)
        assert [at for at in reached if at["outline"] == "none"] == []


# -- the clock


@pytest.mark.parametrize(("hours", "late"), [(-18, False), (-1, False), (1, True), (99, True)])
def test_it_says_that_a_night_is_missing(
    browser: Browser,
    written: Written,
    settings_of: Callable[[str], Settings],
    hours: int,
    late: bool,
) -> None:
    schedule = settings_of("last_night").schedule
    began = schedule.start
    midnight = datetime(began.year, began.month, began.day, tzinfo=UTC)
    # The second night's day ends two days after the first began; then hours are left.
    moment = midnight + timedelta(days=2, hours=schedule.deadline_hours + hours)
    with opened(browser, written("last_night"), at=moment) as watched:
        said = watched.page.inner_text("main").split("\n")[0]
        assert ("Overdue" in said) == late
        assert watched.page.title().startswith("○") or not late
        assert watched.barriers() == []
        assert watched.faults() == []


def test_an_audit_that_has_ended_says_how_old_it_is(browser: Browser, written: Written) -> None:
    with opened(browser, written("month"), at=datetime(2026, 1, 31, 9, tzinfo=UTC)) as watched:
        assert not watched.page.is_visible("#stale")
    with opened(browser, written("month"), at=datetime(2030, 1, 1, tzinfo=UTC)) as watched:
        assert watched.page.title().startswith("○ Ended: ✓ ")
        assert watched.page.inner_text("#stale").startswith("○ Ended: ")
        assert "30 January, is 1431 days old" in watched.page.inner_text("#stale").replace(
            ",431", "431"
        )


# -- names that try to be more


def test_names_are_text(browser: Browser, written: Written) -> None:
    with opened(browser, written("hostile")) as watched:
        for summary in watched.page.locator("summary").all():
            if summary.is_visible():
                summary.click()
        text = watched.page.evaluate("() => document.body.textContent")
        assert [name for name in HOSTILE[:4] if name not in text] == []
        for link in watched.page.locator("td.c a").all()[:6]:
            href = link.get_attribute("href") or ""
            watched.page.evaluate("href => { location.hash = href; }", href)
            assert watched.not_drawn() == []
        assert watched.faults() == []


def test_an_address_cannot_run_anything(browser: Browser, written: Written) -> None:
    with opened(browser, written("hostile")) as watched:
        for text in HOSTILE[:8]:
            go(watched, score=text, attribute=text, slice=text, value=text, batch=text)
            watched.page.evaluate("text => { location.hash = text; }", text)
        assert watched.not_drawn() == []
        assert watched.faults() == []


# -- whether these tests would notice


EVIL = """<!doctype html><html lang="en" data-ready="yes"><head><title>evil</title>
<meta http-equiv="Content-Security-Policy" content="img-src 'none'"></head><body>
<main><h1>evil</h1><p style="width:3000px;color:#ccc;background:#fff">pale and wide</p>
<div data-part="a"></div><div data-part="b">b<div class="plot"><svg></svg></div></div>
<div class="plot"><span>one</span><span style="margin-left:-20px">other</span></div></main>
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
        assert watched.not_drawn() == ["a", "b"]
        assert watched.touching() == ["one | other"]
        assert watched.overflow(1280) > 1000
        assert any("color-contrast" in each for each in watched.barriers())
