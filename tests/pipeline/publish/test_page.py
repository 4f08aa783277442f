"""The page as a file: what it holds, that it holds it safely, and when it is written anew."""

import fcntl
import gzip
import json
import os
import random
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from histories import NIGHTS, put, score, small_audit
from pages import hostile, none, one
from stores import copied, read

from metrics import METRICS
from pipeline.errors import AuditError, NoData
from pipeline.formatting.numbers import number
from pipeline.publish.copy import publish
from pipeline.publish.page import page
from pipeline.publish.page.columns import CODES, NO_SCORE
from pipeline.publish.page.document import document
from pipeline.publish.page.extent import MOST_POINTS, Extent, Size, fitting
from pipeline.publish.page.fresh import renew_report
from pipeline.publish.page.page import write_report
from pipeline.publish.page.reading import opened_copy
from pipeline.publish.page.reasons import reason_text
from pipeline.publish.page.scores import about
from pipeline.publish.page.travel import cut, whole
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


def document_of(settings: Settings) -> Data:
    with opened_copy(settings) as copy:
        return document(copy, settings).data


@pytest.mark.slow
def test_every_current_score_is_on_the_page_whole(small_store: Settings) -> None:
    data = document_of(small_store)
    shown = set()
    for slice_, attribute, label, columns in data["series"]:
        for at, (value, code) in enumerate(
            zip(columns["value"], columns["status"], strict=True), columns["from"]
        ):
            if code != NO_SCORE:
                limits = [step[1:] for step in columns.get("limits", ()) if step[0] <= at]
                shown.add(
                    (
                        data["batches"][at],
                        *data["slices"][slice_][:2],
                        data["attributes"][attribute][0],
                        data["labels"][label]["label"],
                        value,
                        data["codes"][code],
                        *(limits[-1] if limits else (None, None)),
                    )
                )
    rows = read(
        store_of(small_store).dashboard,
        "SELECT batch, slice, slice_value, attribute, label, value, status, "
        "threshold_min, threshold_max FROM v_history",
    )
    judged = {row["label"] for row in rows if row["status"] != "not_judged"}
    expected = {
        tuple(row.values()) for row in rows if row["label"] in judged or about(row["label"]).main
    }
    assert shown == expected
    assert len(shown) > 20


def test_what_a_verdict_is_about_is_on_the_page(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    judged = {"judged_value": 0.9, "judged_groups": '["F", "M"]', "judged_worst_group": "M"}
    thin = {"worst_group": "X", "thin_groups": '["X"]', "status_reason": "few_queries: X"}
    put(settings, NIGHTS[0], [score(0.9)])
    put(settings, NIGHTS[1], [score(0.2, status="insufficient", **judged, **thin)])
    publish(settings)
    data = document_of(settings)
    ((*_, columns),) = data["series"]
    # A trend is one of all groups, whatever is judged.
    assert columns["value"] == [0.9, 0.2]
    assert columns["judged"] == {1: [0.9, None, None]}
    assert [data["groups"][at][1] for at in columns["worst"]] == ["F", "M"]
    assert {at: data["reasons"][n] for at, n in columns["why"].items()} == {1: "X: few queries"}


def test_every_value_of_a_group_is_on_the_page_whole(small_store: Settings) -> None:
    data = document_of(small_store)
    shown = {
        (
            data["batches"][at],
            *data["slices"][slice_][:2],
            data["attributes"][attribute][0],
            data["metrics"][metric],
            data["groups"][group][1],
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
    assert shown == {tuple(row.values()) for row in rows}
    assert shown


def test_values_have_their_labels(small_store: Settings) -> None:
    said = small_store.model_copy(update={"labels": {"gender": {"F": "women"}}})
    data = document_of(said)
    names = {(of, group): label for of, group, label in data["groups"]}
    gender = [name for name, _ in data["attributes"]].index("gender")
    assert names[gender, "F"] == "women"
    assert names[gender, "M"] == "M"
    assert data["slices"][0] == ["all", "all", "all requests"]


@pytest.mark.slow
def test_batches_without_scores_are_there_and_say_why(tmp_path: Path) -> None:
    settings = none(tmp_path)
    data = document_of(settings)
    assert data["newest"] is None
    assert not any(data["scored"])
    assert {"refused", "no_data"} <= set(data["states"])
    assert {"refused", "no_data"} <= {said["state"] for said in data["conclusions"] if said}
    assert data["series"] == []


@pytest.mark.slow
def test_equal_copies_give_equal_pages(settings: Settings) -> None:
    first = text_of(settings)
    assert text_of(settings) == first
    before = packed(first)
    publish(settings)
    after = packed(text_of(settings))
    assert {**after, "about": {}} == {**before, "about": {}}


@pytest.mark.parametrize("value", [0.1234567890123456, -1.5e-12, 1e300, 0.0, 5e-324])
def test_a_number_travels_whole(value: float) -> None:
    assert json.loads(json.dumps(whole(value))) == value
    assert whole(float("inf")) is None


def test_an_end_of_an_interval_that_was_cut_reads_like_the_whole_one() -> None:
    chance = random.Random(3)
    values = [chance.uniform(-1, 1) * 10 ** chance.randint(-5, 6) for _ in range(20_000)]
    values += [n / 2**k for k in range(1, 14) for n in range(1, 2**k, 2)]
    assert [value for value in values if number(cut(value)) != number(value)] == []


# -- how much of a long history


@pytest.mark.parametrize(
    "size",
    [
        Size(30, 6, 40, 80),
        Size(1095, 40, 26, 80),
        Size(1095, 1000, 200, 5000),
        Size(20_000, 0, 10, 10),
        Size(1, 0, 1, 0),
    ],
)
def test_a_page_holds_what_fits(size: Size) -> None:
    extent = fitting(size)
    assert extent.points(size) <= MOST_POINTS or extent == fitting(Size(10**6, 10**6, 500, 500))
    if Extent().points(size) <= MOST_POINTS:
        assert extent == Extent()


def test_every_number_of_a_small_page_names_something(
    small_store: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pipeline.publish.page.document.fitting", lambda size: Extent(1, 1, 0, 0, 0)
    )
    data = document_of(small_store)
    assert data["slices"] == [["all", "all", "all requests"]]
    assert len({at for *_, columns in data["series"] for at in [columns["from"]]}) == 1
    for slice_, attribute, label, columns in data["series"]:
        assert slice_ == 0
        assert attribute < len(data["attributes"])
        assert data["metrics"][data["metric_of"][label]]
        assert all(worst < len(data["groups"]) for worst in columns.get("worst", ()))
    for said in filter(None, data["conclusions"]):
        assert said["score"] is None or said["score"][2] < len(data["labels"])


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
    assert len(rules["script-src"]) == 1


def assert_inert(elements: Elements) -> None:
    for tag, said in elements.found:
        assert tag not in ("a", "base", "embed", "iframe", "img", "link", "object", "svg") or (
            tag == "a" and (said["href"] or "").startswith("#")
        )
        assert not {"src", "srcset", "action", "ping", "style"} & said.keys()
        assert not [name for name in said if name.startswith("on")]


@pytest.mark.slow
def test_names_never_become_markup(strange: Settings) -> None:
    elements = Elements(text_of(strange))
    assert_inert(elements)
    assert [tag for tag, _ in elements.found].count("script") == 2
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
        "SELECT count(value) AS told, count(*) AS rows FROM v_history WHERE label IN (SELECT "
        f"unnest({[each['label'] for each in data['labels']]}))",
    )
    columns = [columns for *_, columns in data["series"]]
    rows = [code for each in columns for code in each["status"] if code != NO_SCORE]
    told = [value for each in columns for value in each["value"] if value is not None]
    assert [{"told": len(told), "rows": len(rows)}] == shown


@pytest.mark.slow
def test_an_empty_and_a_short_history_have_a_page(tmp_path: Path) -> None:
    empty = text_of(none(tmp_path / "none"))
    assert packed(empty)["newest"] is None
    assert "There are no scores yet." in empty
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


# -- words


def test_there_is_a_code_for_every_verdict() -> None:
    assert set(CODES) == set(STATUSES)
    assert len({*CODES.values(), NO_SCORE}) == len(CODES) + 1


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_what_is_behind_it(dark: bool) -> None:
    style = (Path(page.__file__).parent / "style" / "base.css").read_text(encoding="utf-8")
    light, rest = style.split("@media", 1)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light))
    if dark:
        colours |= dict(re.findall(r"--([\w-]+): (#\w{6})", rest))
    pairs = [
        *((name, ground) for name in ("ink", "soft", "link") for ground in ("paper", "wash")),
        *((f"{name}-text", f"{name}-wash") for name in ("bad", "unsure", "held")),
        *((f"{name}-text", "paper") for name in ("bad", "unsure", "held")),
        ("on-bad", "bad-fill"),
    ]
    assert [pair for pair in pairs if contrast(*(colours[name] for name in pair)) < 4.5] == []
    marks = [(name, "paper") for name in ("mark", "line", "bad", "unsure", "held", "loser")]
    assert [pair for pair in marks if contrast(*(colours[name] for name in pair)) < 3] == []


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


def test_without_script_the_verdict_and_the_scores_are_there(
    small_store: Settings, tmp_path: Path
) -> None:
    settings = copied(small_store, tmp_path)
    text = text_of(settings).split("<script")[0]
    (newest,) = read(
        store_of(settings).dashboard,
        "SELECT batch, sentence, title FROM v_conclusions "
        "WHERE batch = (SELECT newest_batch FROM v_about)",
    )
    assert escape(newest["title"]) in text
    headline = re.search(r'<h1 id="headline">(.*?)</h1>', text)
    assert headline
    assert re.sub("</?em>", "", headline[1]) == escape(newest["sentence"])
    judged = read(
        store_of(settings).dashboard, "SELECT label FROM v_latest WHERE status <> 'not_judged'"
    )
    assert len(re.findall('<tr><th scope="row">', text)) >= len(judged) > 0


def test_a_score_is_explained_by_its_declaration() -> None:
    told = about("EXP.MinMaxRatio")
    assert (told.low, told.high, told.fairest, told.alarm, told.main) == (0, 1, 1, "low", True)
    assert (told.plain, told.parity) == ("exposure ratio", "average")
    assert about("ARP.MinMaxRatio").parity == "half"
    assert about("Skew@10.MinSkew").parity == "zero"
    assert not about("EXP.Variance").main
    assert about("Gone(p=3).Someway").plain == "Gone(p=3).Someway"
    assert all(about(metric.usual.label).fold for metric in METRICS if not metric.usual.ways)


def test_a_reason_is_said_in_words() -> None:
    assert reason_text("missing_group: X") == "X: a group is missing"
    assert reason_text("relevance_not_binary") == "relevance holds values other than 0 and 1"
