"""The queries of lists as metrics of queries take them, by plain loops."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rankings import rankings
from slow_list_native import query_items

from metrics import Rankings

Row = dict[str, Any]


def as_queries(rows: Sequence[Row], decay: float) -> Rankings:
    """The queries of rows as metrics of queries take them: an item each, with its exposure."""
    found = []
    for query in sorted({row["query_id"] for row in rows}):
        mine = [row for row in rows if row["query_id"] == query]
        names = sorted({row["list_id"] for row in mine})
        lists = [[row for row in mine if row["list_id"] == name] for name in names]
        for at, (exposure, relevance) in enumerate(query_items(lists, decay), start=1):
            found.append(
                {"list_id": query, "rank": at, "relevance": relevance, "exposure": exposure}
            )
    return replace(rankings(found), exposure=np.array([row["exposure"] for row in found]))
