"""The command generate: synthetic logs of a marketplace, or rankings with a known bias.

Not here: what the logs hold (``synthetic``).
"""

from collections.abc import Callable, Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import DAY, FILE, QUIET, examples, reports_errors

_BIASED = (
    click.option("--group", multiple=True, metavar="NAME=SHARE", help="Group; repeat."),
    click.option(
        "--order",
        type=click.Choice(["smallest", "largest", "given"]),
        help="Which group bias puts first [smallest].",
    ),
    click.option("--attribute", help="Column of the groups [group]."),
    click.option("--length", metavar="N|N-M", help="Rows of a list [20]."),
    click.option("--candidates", type=int, help="Items ranked before a list is cut [its length]."),
    click.option(
        "--slice",
        multiple=True,
        metavar="NAME=VALUES",
        help="Slice column, as in market=de:0.6,fr:0.4 or market=de,fr; repeat.",
    ),
    click.option(
        "--relevance",
        type=click.Choice(["graded", "binary", "none"]),
        help="Column of relevance [graded].",
    ),
    click.option(
        "--correlation",
        type=float,
        help="Of order with relevance within a group, -1 to 1 [0.7].",
    ),
    click.option("--mean-relevance", type=float, help="Midway between first and last group [0.5]."),
    click.option(
        "--group-gap", type=float, help="Mean relevance of the first group less the last's [0]."
    ),
    click.option(
        "--clicks",
        type=click.Choice(["log", "power", "none"]),
        help="Examined with 1/log2(rank+1), rank^-eta [log].",
    ),
    click.option("--eta", type=float, help="Position bias of --clicks power [1]."),
    click.option("--click-noise", type=float, help="Clicks on irrelevant items, if examined [0]."),
    click.option(
        "--propensity", is_flag=True, default=None, help="Column: probability of examination."
    ),
    click.option("--unfair", type=DAY, multiple=True, help="Day of another phi; repeat."),
    click.option("--unfair-phi", type=float, help="phi of these days [0]."),
    click.option(
        "--unfair-in", multiple=True, metavar="NAME=VALUE", help="Only in this slice; repeat."
    ),
    click.option("--broken", type=DAY, multiple=True, help="Day of wrong rows; repeat."),
    click.option("--missing", type=DAY, multiple=True, help="Day without a log; repeat."),
)
"""Options that go with --phi."""


def _biased_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_BIASED):
        command = option(command)
    return command


@click.command(
    epilog=examples(
        "evenrank generate --out market --start 2026-01-01 --days 30 --lists 1000",
        "evenrank generate --out biased --start 2026-01-01 --days 7 --lists 500 \
"
        "    --phi 0.3 --group F=0.4 --group M=0.6",
    )
)
@click.option("--out", type=FILE, required=True, help="Folder for logs and items.parquet.")
@click.option("--start", type=DAY, required=True, help="First day.")
@click.option("--days", type=click.IntRange(1), required=True, help="How many days.")
@click.option("--lists", type=click.IntRange(1), required=True, help="Lists a day.")
@click.option("--items", type=click.IntRange(1), default=2000, help="Items in all [2000].")
@click.option("--seed", type=int, default=7, help="Same seed, same logs [7].")
@click.option(
    "--phi",
    type=float,
    help="Rankings with a known bias: 0 stacks whole groups, 1 is representative.",
)
@_biased_options
@QUIET
@reports_errors
def generate(
    out: Path,
    start: datetime,
    days: int,
    lists: int,
    items: int,
    seed: int,
    phi: float | None,
    quiet: bool,
    **more: Any,
) -> None:
    """Write synthetic logs: of a marketplace, or with --phi of a known bias.

    Options from --group on go with --phi, which needs two groups or more.
    """
    from pipeline.errors import AuditError, SettingsError

    def tell(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    options = {name: value for name, value in more.items() if value not in (None, ())}
    period = {"start": start.date(), "days": days, "lists": lists}
    try:
        if phi is None:
            _marketplace(out, options, items=items, seed=seed, progress=tell, **period)
        else:
            _biased(out, options, {"phi": phi, "items": items, "seed": seed}, period, tell)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    except OSError as error:
        raise AuditError(f"{out}: cannot be written ({error.strerror or error})") from None


def _marketplace(out: Path, said: dict[str, Any], **arguments: Any) -> None:
    from pipeline.synthetic.marketplace import generate as write

    if said:
        given = [option.opts[0] for option in generate.params if option.name in said]
        raise ValueError(
            f"{', '.join(given)}: only for rankings with a known bias; "
            "add --phi, from 0 (biased) to 1 (representative)"
        )
    write(out, **arguments)


def _biased(
    out: Path,
    options: dict[str, Any],
    knobs: dict[str, Any],
    period: dict[str, Any],
    tell: Callable[[str], None],
) -> None:
    """Generate with the options that were given; the problems of all of them come at once."""
    from pipeline.synthetic.biased import BiasedRankings
    from pipeline.synthetic.biased_checks import problems_of_period
    from pipeline.synthetic.biased_period import generate_biased
    from pipeline.synthetic.biased_request import BiasedIncidents
    from pipeline.synthetic.files import CannotGenerate

    problems: list[str] = []
    if "eta" in options and options.get("clicks") != "power":
        problems.append("--eta: only with --clicks power")
    if "unfair_phi" in options and "unfair" not in options:
        problems.append("--unfair-phi: on which day? Name it with --unfair")
    unfair_phi = options.pop("unfair_phi", 0.0)
    incidents = BiasedIncidents(
        unfair=dict.fromkeys(_dates(options.pop("unfair", ())), unfair_phi),
        broken=_dates(options.pop("broken", ())),
        missing=_dates(options.pop("missing", ())),
        only=_pairs("--unfair-in", options.pop("unfair_in", ()), "market=de", problems),
    )
    groups = _pairs("--group", options.pop("group", ()), "F=0.4", problems)
    slices = _pairs("--slice", options.pop("slice", ()), "market=de:0.6,fr:0.4", problems)
    asked = {
        **knobs,
        **options,
        "groups": {
            name: _number(f"--group {name}", share, problems) for name, share in groups.items()
        },
        "slices": {name: _values(name, text, problems) for name, text in slices.items()},
    }
    if "length" in options:
        asked["length"] = _length(options["length"], problems)
    try:
        rankings = BiasedRankings(**asked)
    except CannotGenerate as error:
        problems += error.problems
    problems += problems_of_period(**period, incidents=incidents, slices=asked["slices"])
    if problems:
        raise CannotGenerate(problems)
    generate_biased(out, rankings, **period, incidents=incidents, progress=tell)


def _dates(moments: Iterable[datetime]) -> list[date]:
    return [each.date() for each in moments]


def _pairs(option: str, texts: Iterable[str], example: str, problems: list[str]) -> dict[str, str]:
    """What stands before and after the first '=', each name once."""
    value_by_name: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name and value):
            problems.append(f"{option} {text}: write it as in {example}")
        elif name in value_by_name:
            problems.append(f"{option} {name}: given twice")
        else:
            value_by_name[name] = value
    return value_by_name


def _number(what: str, text: str, problems: list[str]) -> float:
    try:
        return float(text)
    except ValueError:
        problems.append(f"{what}: {text!r} is not a number")
        return 1.0


def _values(name: str, text: str, problems: list[str]) -> dict[str, float]:
    """Shares by value; a value without one has the share 1."""
    share_by_value: dict[str, float] = {}
    for part in text.split(","):
        value, sign, share = part.rpartition(":")
        value, share = (value, share) if sign else (part, "1")
        if value in share_by_value:
            problems.append(f"--slice {name}: {value} stands twice")
        share_by_value[value] = _number(f"--slice {name}, {value}", share, problems)
    return share_by_value


def _length(text: str, problems: list[str]) -> int | tuple[int, int]:
    fewest, sign, most = text.partition("-")
    try:
        return (int(fewest), int(most)) if sign else int(text)
    except ValueError:
        problems.append(f"--length {text}: write it as in 20 or 5-30")
        return 1
