"""What tests of rankings with a known bias ask for, and how they look at what they get."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_period import biased_table

START = date(2026, 1, 1)
GROUPS = {"a": 0.2, "b": 0.3, "c": 0.5}


def frame(rankings: BiasedRankings, lists: int, **more: Any) -> pd.DataFrame:
    return biased_table(rankings, lists, **more).to_pandas()


def exposures(rows: pd.DataFrame) -> pd.Series:
    """Mean of 1 / log2(rank + 1) by group, from the definition."""
    return (1 / np.log2(rows["rank"] + 1)).groupby(rows["group"]).mean()


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
