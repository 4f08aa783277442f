"""``python -m pipeline.cli``: the command without its script."""

from pipeline.cli.main import main

main(prog_name="evenrank")
