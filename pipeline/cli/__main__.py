"""``python -m pipeline.cli``: the command without its script.  Not here: any command (``main``)."""

from pipeline.cli.main import main

main(prog_name="evenrank")
