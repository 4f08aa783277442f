"""FairRankTune on prepared frames: run by the interpreter that has it, with a file of lists.

Nothing of this project is imported here.  Prints the CPU seconds of each metric and the group
values or the one number that it returned; making the frames is not counted.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from FairRankTune import Metrics


def main() -> None:
    found = np.load(sys.argv[1])
    asked = json.loads(sys.argv[2])
    items = found["items"].astype(str).astype(object)
    rankings = pd.DataFrame(items.T)
    frames = {name: pd.DataFrame(found[name].T) for name in ("relevance", "click")}
    groups = dict(zip(items.ravel().tolist(), found["group"].ravel().tolist(), strict=True))
    seconds: dict[str, float] = {}
    values: dict[str, float | dict[str, float]] = {}
    for label, metric in asked.items():
        given = [frames[name] for name in metric["frames"]] + metric["parameters"]
        work = getattr(Metrics, metric["name"])
        start = time.process_time()
        if metric["one_list"]:
            # It takes one list at a time.
            each = [work(rankings[[column]], groups) for column in rankings.columns]
            values[label] = float(np.mean(each))
        else:
            _, by_group = work(rankings, groups, *given, "MinMaxRatio")
            values[label] = {name: float(value) for name, value in by_group.items()}
        seconds[label] = time.process_time() - start
    names = ("FairRankTune", "numpy", "pandas")
    versions = {name: version(name) for name in names}
    print(json.dumps({"seconds": seconds, "values": values, "versions": versions}))


if __name__ == "__main__":
    main()
