"""What the pages of assets in Dagster say: what a score means, who owns it, its last month."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from histories import NIGHTS, fill, score, small_audit
from stores import audit

from assets.definitions import definitions
from assets.month import DAYS, last_month, past_rows, verdict_chart
from metrics import FAMILIES, METRICS
from pipeline.errors import SettingsError
from pipeline.formatting.sparks import BLOCKS
from pipeline.publish.copy import publish
from pipeline.publish.month_picture import verdict_picture, verdict_words
from pipeline.store.paths import store_of

OWNERS = ["team:search", "someone@example.org"]
MOST = 60_000


def _row(batch: str, value: float | None, **more: Any) -> dict[str, Any]:
    return {"batch": batch, "lower": None, "upper": None, **score(value, **more)}


def _items(said: dict[str, dg.MarkdownMetadataValue]) -> list[str]:
    return said["last_month"].value.split("\n")[2:]


# -- the last month of a metric


def test_the_month_holds_the_published_past_and_the_batch_at_hand(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 8, {5: 0.5})
    publish(settings)
    today = {NIGHTS[9]: [_row(NIGHTS[9], 0.4, lower=0.3, upper=0.5)]}
    rows = past_rows(settings, NIGHTS[9], today)
    assert [row["batch"] for row in rows] == [*NIGHTS[:8], NIGHTS[9]]
    said = last_month(settings, NIGHTS[9], rows)
    assert said["last_month"].value.startswith(f"{NIGHTS[0]} to {NIGHTS[9]}; ")
    assert _items(said) == [
        "- gender EXP\\.MinMaxRatio\\",
        "  `█████▂██·▁`\\",
        "  ✕ breach, 0.400 (0.300 to 0.500); wanted: at least 0.8",
    ]


def test_what_a_run_has_found_stands_in_for_what_was_published(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 4)
    publish(settings)
    again = {night: [_row(night, 0.5)] for night in NIGHTS[2:4]}
    values = [row["value"] for row in past_rows(settings, NIGHTS[3], again)]
    assert values[2:] == [0.5, 0.5]
    assert min(values[:2]) > 0.8


@pytest.mark.parametrize("content", [None, b"", b"no database"])
def test_a_copy_that_cannot_be_read_is_no_reason_to_fail(
    tmp_path: Path, content: bytes | None
) -> None:
    settings = small_audit(tmp_path)
    store_of(settings).make()
    if content is not None:
        store_of(settings).dashboard.write_bytes(content)
    rows = past_rows(settings, NIGHTS[9], {NIGHTS[9]: [_row(NIGHTS[9], 0.9)]})
    assert [row["batch"] for row in rows] == [NIGHTS[9]]
    assert "`█`" in _items(last_month(settings, NIGHTS[9], rows))[1]
    assert verdict_chart(settings, NIGHTS[9]) == {}


def test_a_month_is_no_longer_than_a_month(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 40)
    publish(settings)
    rows = past_rows(settings, NIGHTS[39], {})
    assert len(rows) == DAYS
    assert len(_items(last_month(settings, NIGHTS[39], rows))[1].strip(" `\\")) == DAYS


def test_only_plotted_scores_of_whole_batches_are_shown(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    rows = [
        _row(NIGHTS[0], 0.9, slice="device", slice_value="app"),
        _row(NIGHTS[0], 0.9, aggregation="Variance", status="not_judged"),
        _row(NIGHTS[0], None),
    ]
    found = past_rows(settings, NIGHTS[0], {NIGHTS[0]: rows})
    items = _items(last_month(settings, NIGHTS[0], found))
    assert items[0] == "- gender EXP\\.MinMaxRatio\\"
    assert items[2].startswith("  ∅ undefined, no value")
    assert items[1] == f"  `{BLOCKS.gap}`\\"
    assert len(items) == 3
    assert last_month(settings, NIGHTS[1], found) == {}, "nothing of the batch itself"


def test_names_of_settings_are_shown_and_not_rendered(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    name = "<b>|[x](javascript:1)`_*www.example.org"
    rows = [_row(NIGHTS[0], 0.9, attribute=name)]
    item = _items(last_month(settings, NIGHTS[0], rows))[0]
    shown = item.removeprefix("- ").split(" EXP")[0]
    assert shown.replace("\\", "") == name
    assert all(f"\\{sign}" in shown for sign in "<>|[]()`_*.:")


# -- the picture


@pytest.mark.slow
def test_a_picture_of_verdicts_is_small_and_says_what_it_shows(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 31, {5: 0.5})
    publish(settings)
    text = verdict_chart(settings, NIGHTS[30])["last_month"].value
    words, _, data = text.removeprefix("![").partition("](data:image/jpeg;base64,")
    assert words == (
        "Verdicts from 2026-01-01 to 2026-01-31: breaches in 1 of 31 batches, "
        "0 missing or not judged"
    )
    assert len(text) < MOST
    assert b64decode(data.removesuffix(")"), validate=True).startswith(b"\xff\xd8\xff")


def test_a_missing_batch_changes_the_picture_and_the_words() -> None:
    counted = [{"batch": night, "status": "breach", "scores": 2} for night in NIGHTS[:3]]
    without = [counted[0], counted[2]]
    assert verdict_picture(NIGHTS[:3], counted) != verdict_picture(NIGHTS[:3], without)
    assert verdict_words(NIGHTS[:3], without).endswith("2 of 3 batches, 1 missing or not judged")


def test_nothing_judged_is_no_picture(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    assert verdict_chart(settings, NIGHTS[0]) == {}
    assert verdict_chart(settings, "release-7") == {}


# -- the catalogue


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dg.AssetSpec]:
    """Every asset of an audit of all families."""
    folder = tmp_path_factory.mktemp("catalogue")
    families = ", ".join(family.name for family in FAMILIES)
    (folder / "audit.yaml").write_text(
        f"attributes: [gender]\nslices: [device]\nmetrics: [{families}]\nowners: {OWNERS}\n"
        "thresholds:\n  EXP.MinMaxRatio: {min: 0.8, attributes: [gender], slices: [all, device]}\n"
    )
    made = definitions(folder / "audit.yaml").resolve_all_asset_specs()
    return {spec.key.to_user_string(): spec for spec in made}


def test_every_asset_names_its_owners(specs: dict[str, dg.AssetSpec]) -> None:
    assert {tuple(spec.owners) for spec in specs.values()} == {tuple(OWNERS)}


def test_every_metric_is_explained_on_the_page_of_its_asset(
    specs: dict[str, dg.AssetSpec],
) -> None:
    for metric in METRICS:
        name = metric.name if metric.name in specs else metric.family.name
        text = specs[name].description or ""
        for part in (metric.title, metric.formula, str(metric.range), metric.source):
            assert part in text, (metric.name, part)
        assert metric.family.text in text
        assert specs[name].tags["family"] == metric.family.name
    exp = specs["EXP"].description or ""
    assert "Fairest at 1, unfair when low" in exp
    assert "`EXP.MinMaxRatio`: at least 0.8; attributes `gender`; slices `all`, `device`" in exp
    assert "Thresholds" not in (specs["EXPU"].description or "")


def test_tags_say_whether_groups_have_values(specs: dict[str, dg.AssetSpec]) -> None:
    kinds = {name: spec.tags["values"] for name, spec in specs.items() if "values" in spec.tags}
    assert kinds["EXP"] == "per_group"
    assert kinds["NDKL"] == "one"
    assert kinds["quality"] == "one_or_per_group"


# -- owners


def test_owners_are_told_as_dagster_wants_them(tmp_path: Path) -> None:
    assert audit(tmp_path).owners == ()
    assert audit(tmp_path, owners="team:search").owners == ("team:search",)
    assert audit(tmp_path, owners=OWNERS).owners == tuple(OWNERS)


@pytest.mark.parametrize("owner", ["search", "team:", "a@b", "team:a b", "@example.org", "", 1])
def test_an_owner_is_an_address_or_a_team(tmp_path: Path, owner: Any) -> None:
    with pytest.raises(SettingsError, match="owners"):
        audit(tmp_path, owners=[owner])


def test_owners_change_no_score(tmp_path: Path) -> None:
    assert audit(tmp_path).config_hash == audit(tmp_path, owners=OWNERS).config_hash
