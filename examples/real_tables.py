"""Turn a table of people into ranking logs: daily batches, an item table and settings.

A request is a random sample of people; they are ranked by one column of the table and judged by
another.  Every kind of table that is known here is one entry of KINDS.

    python examples/real_tables.py law_data.csv my/law
    make audit CONFIG=my/law/audit.yaml
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import click
import numpy as np
import pandas as pd

HERE = Path(__file__).parent
Column = Callable[[pd.DataFrame], pd.Series]


class TableError(Exception):
    """A table cannot be turned into logs; the text says what to do."""


def same(name: str) -> Column:
    """A column as it stands in the table."""
    return lambda table: table[name]


def age_group(table: pd.DataFrame) -> pd.Series:
    """Ages in three bands, cut at 25 and 35 as the scored tables cut them."""
    ages = table["Age (years)"].astype(int)
    return pd.Series(
        np.select([ages < 25, ages < 35], ["under 25", "25 to 34"], "35 and over"),
        index=table.index,
    )


@dataclass(frozen=True)
class Kind:
    """How tables of one kind become logs.

    ``attributes`` are the columns of the item table; ``request`` is the slice that all people of
    a request share, if any; ``item_id`` is the column that names a person, else the row number.
    """

    columns: tuple[str, ...]
    attributes: dict[str, Column]
    rank_by: str
    relevance: str
    request: tuple[str, str] | None = None
    item_id: str | None = None
    hint: str = ""


KINDS = {
    "law": Kind(
        columns=("race", "sex", "LSAT", "ZFYA", "region_first", "sander_index", "first_pf"),
        attributes={"race": same("race"), "sex": same("sex")},
        rank_by="LSAT",
        relevance="first_pf",
        request=("region", "region_first"),
        item_id="Unnamed: 0",
    ),
    "german-credit": Kind(
        columns=(
            "Creditability",
            "Purpose",
            "Credit Amount",
            "Sex & Marital Status",
            "Age (years)",
            "Foreign Worker",
        ),
        attributes={
            "age_group": age_group,
            "sex_marital": same("Sex & Marital Status"),
            "foreign_worker": same("Foreign Worker"),
        },
        rank_by="Credit Amount",
        relevance="Creditability",
        request=("purpose", "Purpose"),
    ),
    "german-scores": Kind(
        columns=("score", "CreditAmount", "DurationMonth", "sex", "age25", "age35"),
        attributes={"sex": same("sex"), "age25": same("age25"), "age35": same("age35")},
        rank_by="score",
        relevance="CreditAmount",
        hint="name the sex, age25 and age35 tables together: they hold the same people",
    ),
    "compas": Kind(
        columns=("Recidivism_rawscore", "Violence_rawscore", "priors_count", "race", "sex"),
        attributes={"race": same("race"), "sex": same("sex")},
        rank_by="Recidivism_rawscore",
        relevance="priors_count",
        hint="name the race and sex tables together: they hold the same people",
    ),
}


def read_tables(paths: Sequence[Path]) -> pd.DataFrame:
    """One table from ``paths``, all values as text.

    Several tables must describe the same people: columns that they share must be equal.
    """
    whole = pd.DataFrame()
    for path in paths:
        table = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
        if len(whole.columns) and len(table) != len(whole):
            raise TableError(f"{path}: {len(table):,} rows; the tables before it {len(whole):,}")
        for name in table.columns:
            if name in whole.columns and not whole[name].equals(table[name]):
                raise TableError(f"{path}: column {name!r} differs from the tables before it")
            whole[name] = table[name]
    return whole


def kind_of(table: pd.DataFrame, name: str | None = None) -> str:
    """The kind called ``name``, or the one that the columns of ``table`` say."""
    for candidate in [name] if name else list(KINDS):
        if set(KINDS[candidate].columns) <= set(table.columns):
            return candidate
    best = name or min(KINDS, key=lambda each: len(set(KINDS[each].columns) - set(table.columns)))
    lacking = ", ".join(each for each in KINDS[best].columns if each not in table.columns)
    hint = f"; {KINDS[best].hint}" if KINDS[best].hint else ""
    raise TableError(f"not a table of kind {best}: it lacks {lacking}{hint}")


def scaled(text: pd.Series) -> pd.Series:
    """Numbers in [0, 1]: as they stand if they already lie there, stretched to it otherwise."""
    values = pd.to_numeric(text)
    low, high = values.min(), values.max()
    if low >= 0 and high <= 1:
        return text
    return ((values - low) / ((high - low) or 1)).round(6)


def people_of(
    table: pd.DataFrame, kind: Kind, rank_by: str | None = None, relevance: str | None = None
) -> pd.DataFrame:
    """One row per person: item_id, value (to rank by), relevance, request, and the attributes."""
    by, judged = rank_by or kind.rank_by, relevance or kind.relevance
    for name in (by, judged):
        if name not in table.columns:
            raise TableError(f"no column {name!r}; there are {', '.join(table.columns)}")
    people = pd.DataFrame(
        {
            "item_id": table[kind.item_id] if kind.item_id else (table.index + 1).astype(str),
            "value": pd.to_numeric(table[by]),
            "relevance": scaled(table[judged]),
            "request": table[kind.request[1]] if kind.request else "",
        }
    )
    return people.assign(**{name: column(table) for name, column in kind.attributes.items()})


def requests_of(
    people: pd.DataFrame, day: date, *, lists: int, length: int, seed: int
) -> pd.DataFrame:
    """Rows of one day: ``lists`` samples, each ranked by value, ties by item id.

    The first lists cover every request value once, so that even the smallest has a list; the
    others come from all of them by size.  A day depends on its date and the seed alone.
    """
    chance = np.random.default_rng([seed, day.toordinal()])
    pools = {name: rows.index.to_numpy() for name, rows in people.groupby("request")}
    names = list(pools)
    sizes = np.array([len(pools[name]) for name in names])
    further = chance.choice(len(names), size=max(0, lists - len(names)), p=sizes / sizes.sum())
    found = []
    for number, at in enumerate([*range(len(names)), *further][:lists], start=1):
        pool = pools[names[at]]
        shown = people.loc[chance.choice(pool, size=min(length, len(pool)), replace=False)]
        shown = shown.sort_values(["value", "item_id"], ascending=[False, True])
        found.append(shown.assign(list_id=f"{day}-{number:04d}", rank=np.arange(1, len(shown) + 1)))
    return pd.concat(found, ignore_index=True)


def write_day(rows: pd.DataFrame, folder: Path, slice_name: str | None) -> None:
    """Two files as two exporters would write them: one with a byte-order mark and its own order."""
    columns = ["list_id", "item_id", "rank", "relevance"]
    if slice_name:
        rows = rows.rename(columns={"request": slice_name})
        columns.append(slice_name)
    folder.mkdir(parents=True)
    lists = rows["list_id"].unique()
    first = rows["list_id"].isin(lists[: (len(lists) + 1) // 2])
    rows.loc[first, columns].to_csv(folder / "part-0.csv", index=False, encoding="utf-8-sig")
    if not first.all():
        rows.loc[~first, columns[::-1]].to_csv(folder / "part-1.csv", index=False)


def write_items(people: pd.DataFrame, table: pd.DataFrame, kind: Kind, file: Path) -> None:
    """The item table, with the unnamed empty columns of the source and a byte-order mark."""
    items = people[["item_id", *kind.attributes]]
    empty = [name for name in table.columns if (table[name] == "").all()]
    header = [*items.columns, *("" if name.startswith("Unnamed: ") else name for name in empty)]
    pd.concat([items, table[empty]], axis=1).to_csv(
        file, index=False, header=header, encoding="utf-8-sig"
    )


def convert(
    tables: Sequence[Path],
    out: Path,
    *,
    kind: str | None = None,
    start: date = date(2026, 1, 1),
    days: int = 5,
    lists: int = 200,
    length: int = 20,
    seed: int = 1,
    rank_by: str | None = None,
    relevance: str | None = None,
) -> str:
    """Write logs, items.csv and audit.yaml below ``out``; returns the kind of table."""
    for name, number in (("days", days), ("lists", lists), ("length", length)):
        if number < 1:
            raise TableError(f"{name} must be 1 or more, not {number}")
    if (out / "logs").exists():
        raise TableError(f"{out / 'logs'} is already there; delete it or name another folder")
    table = read_tables(tables)
    found = kind_of(table, kind)
    how = KINDS[found]
    people = people_of(table, how, rank_by, relevance)
    for day in (start + timedelta(days=each) for each in range(days)):
        rows = requests_of(people, day, lists=lists, length=length, seed=seed)
        write_day(rows, out / "logs" / day.isoformat(), how.request[0] if how.request else None)
    write_items(people, table, how, out / "items.csv")
    settings = (HERE / f"{found}.yaml").read_text(encoding="utf-8")
    end = start + timedelta(days=days - 1)
    settings += f"schedule:\n  start: {start}\n  end: {end}\n"
    (out / "audit.yaml").write_text(settings, encoding="utf-8")
    return found


def _existing(*, folder: bool) -> click.Path:
    return click.Path(exists=not folder, file_okay=not folder, dir_okay=folder, path_type=Path)


@click.command(help="Turn TABLES (one, or several of the same people) into logs below OUT_DIR.")
@click.argument("tables", nargs=-1, required=True, type=_existing(folder=False))
@click.argument("out_dir", type=_existing(folder=True))
@click.option("--kind", type=click.Choice(list(KINDS)), help="Default: what the columns say.")
@click.option("--start", type=click.DateTime(["%Y-%m-%d"]), default="2026-01-01")
@click.option("--days", default=5, show_default=True)
@click.option("--lists", default=200, show_default=True, help="Requests per day.")
@click.option("--length", default=20, show_default=True, help="People per request, at most.")
@click.option("--seed", default=1, show_default=True)
@click.option("--rank-by", help="Column to rank by, highest first.")
@click.option("--relevance", help="Column to judge by; scaled to [0, 1] where it is not.")
def main(tables: tuple[Path, ...], out_dir: Path, start: date, **options: object) -> None:
    """Command line around convert()."""
    day = date(start.year, start.month, start.day)
    try:
        kind = convert(tables, out_dir, start=day, **options)  # type: ignore[arg-type]
    except TableError as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(f"{kind}: logs, items.csv and audit.yaml are in {out_dir}")
    click.echo(f"Next: make audit CONFIG={out_dir / 'audit.yaml'}")


if __name__ == "__main__":
    main()
