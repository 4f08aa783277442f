"""Two batches of a store: which counts are compared, cut into which cells.

Not here: the split itself (``decomposition``), and its report (``report``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metrics import ScoreName, parse_score
from pipeline.compare.batches.answers import (
    Answer,
    answered,
    furthest,
    without_intervals,
    without_parts,
)
from pipeline.compare.batches.cells import stored
from pipeline.compare.batches.contributions import Split
from pipeline.compare.batches.dividing import Divided, Dividing, is_hidden
from pipeline.compare.batches.report import Explanation, Side
from pipeline.compare.batches.request_cells import LARGE
from pipeline.compare.batches.requests import QUERY
from pipeline.compare.batches.scorer import point
from pipeline.compare.batches.uncertainty import with_intervals
from pipeline.errors import NoData, SettingsError, several
from pipeline.history.manifest import Manifest, manifest
from pipeline.privacy.small_cells import ALL
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key


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
    few = [side.batch for side in sides if is_hidden(side.hidden, ALL, asked_of)]
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
    with Dividing(settings, name, chosen, sides, (a, b)) as dividing:
        details: dict[str, Divided] = {}
        refused: dict[str, str] = {}
        apart: Divided | None = None
        for way in ways:
            try:
                found = dividing.by(way)
                if found.is_apart and way not in settings.slices:
                    apart = found
                    raise NoData("no query of one batch is in the other")
                details[way] = found
            except (SettingsError, NoData) as error:
                refused[way] = str(error)
        if refused and (by or not (details or apart)):
            problems = [f"by {way}: {cause}" for way, cause in refused.items()]
            raise SettingsError(several(f"{name.label} cannot be split", problems))
        answer = _answer(settings, dividing, details, apart, asked_by=bool(by))
    return Explanation(
        score=name.label,
        attribute=chosen if name.measure.metric.grouped else None,
        before=Side(sides[0].batch, a.lists, points[0].value, points[0].worst_group),
        after=Side(sides[1].batch, b.lists, points[1].value, points[1].worst_group),
        answer=answer,
        splits=_told(details, answer),
        refused=refused,
    )


def _answer(
    settings: Settings,
    dividing: Dividing,
    details: Mapping[str, Divided],
    apart: Divided | None,
    *,
    asked_by: bool,
) -> Answer:
    """The answer, by the rule of ``request_cells``; where one column is asked for, by that."""
    confidence = settings.evidence.confidence
    queries = QUERY in details and QUERY not in settings.slices
    columns = [way for way in details if not (queries and way == QUERY)]
    if not (asked_by and len(details) == 1):
        found = dividing.finest(columns, with_queries=queries)
        if found is not None and found.resamples is not None:
            return answered(found.by, found.split.score, found.shared, found.resamples, confidence)
    # Queries of one batch alone bring their treatment with them.
    usable = {
        way: each
        for way, each in details.items()
        if (asked_by and len(details) == 1)
        or (way in columns and max(each.shared) > 0)
        or min(each.shared) >= LARGE
    }
    if not usable:
        first = next(each for each in (*details.values(), apart) if each is not None)
        return without_parts(
            first.split.score,
            first.resamples,
            "too few requests of one batch have their like in the other",
            confidence,
        )
    way = furthest({way: (each.split.score, each.resamples) for way, each in usable.items()})
    best = usable[way]
    others = [
        (each.split.score, each.resamples)
        for other, each in usable.items()
        if other != way and each.resamples is not None
    ]
    if best.resamples is None:
        return without_intervals(
            best.by, best.split.score, best.shared, dividing.no_intervals, confidence
        )
    return answered(best.by, best.split.score, best.shared, best.resamples, confidence, others)


def _told(details: Mapping[str, Divided], answer: Answer) -> dict[str, Split]:
    """The splits with intervals; those of all tables hold at once."""
    confidence = 1.0 - (1.0 - answer.confidence) / max(1, len(details))
    found = {}
    for way, each in details.items():
        split = each.split
        if each.resamples is not None:
            split = with_intervals(split, each.cut, each.resamples, confidence)
            ends = (answer.change.lower, answer.change.upper)
            split = replace(split, score=replace(split.score, change_interval=ends))
        found[way] = split
    return found


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
