"""Two batches of a store: which counts are compared, cut into which cells.

Not here: the split itself (``decomposition``), and its report (``report``).
"""

from collections.abc import Sequence

from metrics import Counts, Measure, ScoreName, asked, parse_score
from pipeline.compare.batches.cells import Stored, query_cells, slice_cells, stored
from pipeline.compare.batches.contributions import Split
from pipeline.compare.batches.partition import split
from pipeline.compare.batches.report import Explanation, Side
from pipeline.compare.batches.scorer import point
from pipeline.errors import NoData, SettingsError, several
from pipeline.history.manifest import Manifest, manifest
from pipeline.privacy.small_cells import ALL, Block, Hidden, Place
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key

QUERY = "query"
"""What ``by`` calls the split by queries."""


def explain(
    settings: Settings,
    batch: str,
    score: str,
    *,
    against: str | None = None,
    attribute: str | None = None,
    by: Sequence[str] = (),
) -> Explanation:
    """Why ``score`` of ``batch`` is another than in the batch ``against``.

    ``score`` is a label such as EXP.MinMaxRatio, ``against`` by default the last done batch before,
    ``attribute`` the first of the settings.  ``by`` names slice columns, or ``query``; without it,
    all that the score can be split by are taken.

    SettingsError on names that the settings lack, or where the score cannot be split as asked;
    NoData where a batch is not in the store, has no such score, or none that may be told.  Slice
    values that may not be told of are told of together.
    """
    name = _named(score)
    chosen = _attribute(settings, name, attribute)
    ways = _ways(settings, by)
    manifest_rows = manifest(settings)
    first = (
        _before(manifest_rows, check_batch_key(batch))
        if against is None
        else check_batch_key(against)
    )
    if first == batch:
        raise SettingsError(f"--against {batch}: a batch is not compared with itself")
    sides = (stored(settings, first, manifest_rows), stored(settings, batch, manifest_rows))
    asked_of = chosen if name.measure.metric.grouped else None
    few = [side.batch for side in sides if _is_hidden(side.hidden, ALL, asked_of)]
    if few:
        raise NoData(
            f"{name.label}: {' and '.join(few)} is about too few for it to be told "
            "(privacy.min_cell)"
        )
    a, b = (each.whole(settings, name.measure, chosen) for each in sides)
    good = settings.top_of_list == "good"
    points = [point(name, each, top_is_good=good) for each in (a, b)]
    undefined = [
        f"{side.batch}: {side_point.reason}"
        for side, side_point in zip(sides, points, strict=True)
        if side_point.reason is not None
    ]
    if undefined:
        of = f" of {chosen}" if name.measure.metric.grouped else ""
        raise NoData(several(f"{name.label}{of} has no value to compare", undefined))
    splits: dict[str, Split] = {}
    refused: dict[str, str] = {}
    for way in ways:
        try:
            check_way(name.measure, way)
            way_split = _split(settings, name, chosen, way, sides, (a, b))
            if way_split.score.reason is not None:
                raise NoData(way_split.score.reason)
            splits[way] = way_split
        except (SettingsError, NoData) as error:
            refused[way] = str(error)
    if refused and (by or not splits):
        problems = [f"by {way}: {cause}" for way, cause in refused.items()]
        raise SettingsError(several(f"{name.label} cannot be split", problems))
    return Explanation(
        score=name.label,
        attribute=chosen if name.measure.metric.grouped else None,
        before=Side(sides[0].batch, a.lists, points[0].value, points[0].worst_group),
        after=Side(sides[1].batch, b.lists, points[1].value, points[1].worst_group),
        splits=splits,
        refused=refused,
    )


def _named(label: str) -> ScoreName:
    try:
        name = parse_score(label)
    except ValueError as error:
        raise SettingsError(f"--score: {error}") from None
    ways = name.measure.ways
    if name.aggregation is None and ways:
        raise SettingsError(f"--score {label}: say which, as in {name.label}.{ways[0].name}")
    return name


def _attribute(settings: Settings, name: ScoreName, asked: str | None) -> str:
    """The attribute asked for, or the first; counts of scores without groups stand under any."""
    there = settings.attribute_names
    if asked is not None and not name.measure.metric.grouped:
        raise SettingsError(f"--attribute {asked}: {name.label} has no groups; leave it out")
    if asked is not None and asked not in there:
        raise SettingsError(f"--attribute {asked}: there are {', '.join(there)}")
    return asked or there[0]


def _ways(settings: Settings, by: Sequence[str]) -> tuple[str, ...]:
    there = (*settings.slices, *([] if QUERY in settings.slices else [QUERY]))
    wrong = [f"--by {each}" for each in by if each not in there]
    if wrong:
        raise SettingsError(f"{', '.join(wrong)}: there are {', '.join(there)}")
    return tuple(dict.fromkeys(by)) or there


def _before(known: Manifest, batch: str) -> str:
    """The last done batch before ``batch``."""
    done = [key for key, row in known.items() if row.revision and row.status == "done"]
    earlier = [key for key in done if key < batch]
    if not earlier:
        raise NoData(f"there is no batch before {batch} in the history; name one with --against")
    return max(earlier)


def check_way(measure: Measure, way: str) -> None:
    """SettingsError where what a measure is made of does not add up over the cells of ``way``."""
    fields = asked(measure, (measure.k or 1) + 1).fields
    if measure.metric.by_query is not None:
        raise SettingsError(
            "it looks at all lists of a query together, and they can fall into several cells"
        )
    if "items" in fields:
        raise SettingsError(
            "it sums up items, each over all lists that show it, so that cells do not add up"
        )
    if way == QUERY and fields & {"pairs", "prefixes", "list_sums"}:
        raise SettingsError("it needs sums over lists, which are kept per slice only")


def _split(
    settings: Settings,
    name: ScoreName,
    attribute: str,
    way: str,
    sides: tuple[Stored, Stored],
    whole: tuple[Counts, Counts],
) -> Split:
    good = settings.top_of_list == "good"
    if way == QUERY and QUERY not in settings.slices:
        if settings.privacy.min_cell > 1:
            raise SettingsError("a query is too few to be told of (privacy.min_cell)")
        named = [(side.batch, counts) for side, counts in zip(sides, whole, strict=True)]
        return split(name, query_cells(settings, attribute, *named), *whole, top_is_good=good)
    cells = slice_cells(settings, name.measure, attribute, way, *sides)
    asked_of = attribute if name.measure.metric.grouped else None
    left_out = {
        value
        for value in cells
        for side in sides
        if _is_hidden(side.hidden, Place(way, value), asked_of)
    }
    return split(name, cells, *whole, top_is_good=good, left_out=left_out)


def _is_hidden(out: Hidden, place: Place, attribute: str | None) -> bool:
    """Whether nothing is told of a slice, or of an attribute in it."""
    return place in out.places or (attribute is not None and Block(*place, attribute) in out.blocks)
