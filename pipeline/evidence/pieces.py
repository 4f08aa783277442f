"""An ordered table, cut where its key changes."""

from collections.abc import Sequence

import numpy as np
import pyarrow


def pieces(table: pyarrow.Table, key: Sequence[str]) -> dict[tuple[str, ...], pyarrow.Table]:
    """Pieces of a table that is ordered by ``key``, one for each of its values."""
    if not len(table):
        return {}
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in key]
    starts = np.flatnonzero(
        np.any([np.diff(code, prepend=code[0] - 1) != 0 for code in codes], axis=0)
    )
    return {
        tuple(table[name][start].as_py() for name in key): table.slice(start, length)
        for start, length in zip(
            starts.tolist(), np.diff(starts, append=len(table)).tolist(), strict=True
        )
    }
