"""``python -m docs.build``.  Not here: what it does (``pages``)."""

import sys

from docs.build.pages import main

sys.exit(main(sys.argv[1:]))
