"""The command explain: why a score moved from one batch to another.

Not here: the decomposition (``compare.batches``).
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.common import CONFIG, JSON, QUIET, examples, reports_errors, settings_of

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.compare.batches.answers import Answer
    from pipeline.compare.batches.contributions import Split
    from pipeline.compare.batches.report import Explanation
    from pipeline.settings.audit import Settings

_SHOWN = 8
"""Cells that are shown one by one: they come largest first, and --json has all of them."""


@click.command(
    epilog=examples(
        "evenrank explain --batch 2026-01-19 --score EXP.MinMaxRatio",
        "evenrank explain --batch 2026-01-19 --score EXP.MinMaxRatio --by market",
    )
)
@click.option("--batch", required=True, help="The batch to explain, as in 2026-01-05.")
@click.option("--against", help="The batch to compare with [the last done before].")
@click.option("--score", required=True, help="Label, as in EXP.MinMaxRatio.")
@click.option("--attribute", help="Attribute [the first].")
@click.option("--by", multiple=True, help="Slice column, or query; may be repeated [all].")
@CONFIG
@JSON
@QUIET
@reports_errors
def explain(
    batch: str,
    against: str | None,
    score: str,
    attribute: str | None,
    by: tuple[str, ...],
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Why a score moved: other requests (mix), or other answers (treatment).

    Mix is which values of a slice column, or which queries, were asked for how often; treatment is
    what the lists of the same requests show, in which order.  The two add up to the change.
    """
    settings = settings_of(config)
    from pipeline.compare.batches.explain import explain as explained
    from pipeline.terminal.printing import console, printable

    explanation = explained(settings, batch, score, against=against, attribute=attribute, by=by)
    if as_json:
        click.echo(json.dumps(explanation.document()))
        return
    out = console(quiet=quiet)
    if sentence := _sentence(settings, explanation):
        out.print(printable(sentence), style="bold")
    out.print(printable(explanation.sentence))
    _print_answer(out, explanation.answer)
    for line in explanation.remarks():
        out.print(printable(line))
    if len(explanation.splits) > 1:
        out.print(
            "Details, one column at a time: what changed in another one counts as treatment there."
        )
    for way, split in explanation.splits.items():
        _print_parts(out, way, split)
        _print_groups(out, split)


def _sentence(settings: "Settings", explanation: "Explanation") -> str:
    """What the score says of groups in the later batch, and what it was; nothing without them."""
    from metrics import WHOLE
    from pipeline.history.queries import labelled
    from pipeline.scores.score_texts import ScoreTexts

    rows = labelled(
        settings,
        "batch = ? AND slice = ? AND label = ? AND attribute IS NOT DISTINCT FROM ?",
        [explanation.after.batch, WHOLE, explanation.score, explanation.attribute],
    )
    if not rows or rows[0]["value"] != explanation.after.value:
        # The store has another score by now, or files of batches tell of other groups.
        return ""
    score = ScoreTexts.as_limited_now(rows[0], settings)
    before = score.text(explanation.before.value)
    return f"{score.sentence()}; in {explanation.before.batch} it was {before}."


def _print_answer(out: "Console", answer: "Answer") -> None:
    """The change and what it is made of, with intervals."""
    from rich.table import Table

    from pipeline.compare.batches.answers import joined
    from pipeline.formatting.signed import Signed
    from pipeline.terminal.printing import printable

    rows = {"change": answer.change, "mix": answer.mix, "treatment": answer.treatment}
    there = {name: each for name, each in rows.items() if each is not None}
    show = Signed(*(n for each in there.values() for n in (each.value, each.lower, each.upper)))
    table = Table(box=None, pad_edge=False)
    table.add_column(printable(f"by {joined(answer.by)}" if answer.by else ""), overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column(f"{answer.confidence:.0%} interval", justify="right", no_wrap=True)
    for name, each in there.items():
        told = "not known" if each.lower is None else f"{show(each.lower)} to {show(each.upper)}"
        table.add_row(name, show(each.value), told)
    out.print()
    out.print(table)
    out.print()


def _print_parts(out: "Console", way: str, split: "Split") -> None:
    """The cells that contribute most."""
    from rich.table import Table

    from pipeline.compare.batches.report import rest_of, signed
    from pipeline.formatting.numbers import number
    from pipeline.formatting.signed import either_side
    from pipeline.terminal.printing import printable

    out.print(f"\n[bold]By {printable(way)}[/]: what each adds to mix and to treatment")
    table = Table(box=None, pad_edge=False)
    table.add_column(printable(way), overflow="fold")
    for name in ("lists A", "lists B", "score A", "score B", "mix", "treatment"):
        table.add_column(name, justify="right", no_wrap=True)
    show = signed(split)
    about = either_side(out.encoding)
    lists = [
        sum(part.lists_before for part in split.parts),
        sum(part.lists_after for part in split.parts),
    ]
    for part in split.parts[:_SHOWN]:
        shares = (part.lists_before / lists[0], part.lists_after / lists[1])
        scores = ("-" if value is None else number(value) for value in (part.before, part.after))
        table.add_row(
            printable(part.cell),
            *(f"{share:.1%}" if share else "-" for share in shares),
            *scores,
            show.within(part.mix, part.mix_interval, about),
            show.within(part.treatment, part.treatment_interval, about),
        )
    count, mix, treatment = rest_of(split.parts, _SHOWN)
    if count:
        table.add_row(f"{count:,} more", "", "", "", "", show(mix), show(treatment))
    score = split.score
    table.add_row(
        *("all", "", "", "", ""),
        show.within(score.mix, score.mix_interval, about),
        show.within(score.treatment, score.treatment_interval, about),
        style="bold",
    )
    out.print(table)
    if min(split.shared_before, split.shared_after) < 1:
        out.print(
            f"{split.shared_before:.1%} of the lists of A and {split.shared_after:.1%} of those of "
            f"B stand in lines of both.\nThe others, of which no other treatment is known, make "
            f"{show(split.turnover)} of mix."
        )


def _print_groups(out: "Console", split: "Split") -> None:
    """The values of the groups behind the score."""
    from rich.table import Table

    from pipeline.formatting.numbers import number
    from pipeline.formatting.signed import Signed, either_side
    from pipeline.terminal.printing import printable

    if not split.groups:
        return
    show = Signed(
        *(
            n
            for change in split.groups.values()
            for n in (change.change, change.mix, change.treatment)
        )
    )
    about = either_side(out.encoding)
    table = Table(box=None, pad_edge=False)
    table.add_column("group", overflow="fold")
    for name in ("A", "B", "change", "mix", "treatment"):
        table.add_column(name, justify="right", no_wrap=True)
    for group, change in split.groups.items():
        values = (
            "-" if value is None else number(value) for value in (change.before, change.after)
        )
        table.add_row(
            printable(group),
            *values,
            show.within(change.change, change.change_interval, about),
            show.within(change.mix, change.mix_interval, about),
            show.within(change.treatment, change.treatment_interval, about),
        )
    out.print()
    out.print(table)
