"""``python -m pipeline.cli``: the command without its script.

Not here: anything else.
"""

from pipeline.cli.main import main

if __name__ == "__main__":
    main(prog_name="evenrank")
