"""What was tried: deliveries that the tests make, and the record of harm done to stores.

Not here: the trying itself (``tests/helpers/bad_inputs.py``, ``tests/harm``).
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from docs.build.markdown import code, codes, grid

_TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.append(str(_TESTS / "helpers"))
if TYPE_CHECKING:
    from bad_inputs import Case


def bad_inputs() -> str:
    """One line per delivery that the tests make, and what becomes of it."""
    from bad_inputs import CASES

    return grid(("delivery", "outcome"), ((case.name, _outcome(case)) for case in CASES))


def _outcome(case: "Case") -> str:
    if case.status == "done":
        return f"its list is dropped: {codes(sorted(case.rules))}" if case.rules else "accepted"
    said = "; ".join(map(code, case.said))
    return f"{case.status.replace('_', ' ')}: {said}"


def crashes() -> str:
    """One line per way in which a store was harmed, with how often, by version of DuckDB."""
    record = json.loads((_TESTS / "harm" / "crashes.json").read_text("utf-8"))
    versions = sorted(record, reverse=True)
    kinds = list(dict.fromkeys(kind for each in versions for kind in record[each]["kinds"]))
    rows = [
        (kind, *(f"{record[each]['kinds'].get(kind, 0):,}" for each in versions)) for kind in kinds
    ]
    rows.append(
        (
            "**lost, torn, or wrong in silence**",
            *(f"**{record[each]['problems']:,}**" for each in versions),
        )
    )
    return grid(("harm", *(f"DuckDB {each}" for each in versions)), rows)
