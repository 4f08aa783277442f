"""The command line ``evenrank``: the group that all commands belong to.

Heavy imports happen inside commands, so that help answers at once.  Not here: any command.
"""

import click

from pipeline.cli.alerts import alerts, assess, mark
from pipeline.cli.common import examples
from pipeline.cli.compare import compare
from pipeline.cli.explain import explain
from pipeline.cli.files import check, metrics, score
from pipeline.cli.generate import generate
from pipeline.cli.history import history
from pipeline.cli.integrity import backup, forget, rebuild, restore, verify
from pipeline.cli.report import publish, report
from pipeline.cli.run import backfill, run
from pipeline.cli.suggest import suggest


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from pipeline.version import code_version

        click.echo(f"evenrank {code_version()}")
        context.exit()


class Sections(click.Group):
    """A group whose help lists commands by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with its first sentence, whole, below the title of its section."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(command.name or "", command.get_short_help_str(200)) for command in commands]
                )


@click.group(
    cls=Sections,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "evenrank run --batch 2026-01-20",
        "evenrank history --batch 2026-01-20",
        "evenrank COMMAND --help",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version, as rows of the history carry it.",
)
def main() -> None:
    """Audit the fairness of rankings, batch after batch.

    Exit codes: 0 done, 2 usage or settings, 3 data refused, 4 no data for the batch, 5 what
    is passed under --fail-on, 75 store busy, 143 ended by SIGTERM, 1 anything else.
    """


SECTIONS = {
    "Run": (run, backfill, assess, publish),
    "Look": (history, report, explain, compare),
    "Alerts": (alerts, mark),
    "Set up": (check, score, suggest, metrics, generate),
    "Trust": (verify, rebuild, backup, restore, forget),
}
"""The commands by what they are for, those that are needed most first."""
for command in (each for commands in SECTIONS.values() for each in commands):
    main.add_command(command)
