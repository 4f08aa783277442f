"""The command line ``evenrank``: the group that all commands belong to.

Heavy imports happen inside commands, so that help answers at once.  Not here: any command.
"""

import click

from pipeline.cli.alerts import alerts, assess, mark
from pipeline.cli.compare import compare
from pipeline.cli.explain import explain
from pipeline.cli.files import check, metrics, score
from pipeline.cli.generate import generate
from pipeline.cli.history import history
from pipeline.cli.integrity import backup, forget, rebuild, restore, verify
from pipeline.cli.report import publish, report
from pipeline.cli.run import backfill, run


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from pipeline.version import code_version

        click.echo(f"evenrank {code_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
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


for command in (
    run,
    backfill,
    history,
    alerts,
    mark,
    assess,
    publish,
    report,
    verify,
    rebuild,
    backup,
    restore,
    forget,
    score,
    check,
    compare,
    explain,
    metrics,
    generate,
):
    main.add_command(command)
