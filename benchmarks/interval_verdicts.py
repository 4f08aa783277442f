"""What verdicts come of intervals and minima: in a fair world, and with a real difference."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measured import table
from served import Served, buckets, exposure_by_chance, measured, served, truth

from metrics import Score, parse_measure
from pipeline.scores.evidence.chance import drawn
from pipeline.scores.evidence.doubt import Doubt
from pipeline.scores.evidence.randomness import normal_draws
from pipeline.scores.verdicts import Basis, Verdict, verdict_on
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from

EXP = (parse_measure("EXP"),)
SIZES = (30, 100, 300, 1000)
THRESHOLD = 0.8
SETTINGS = settings_from(
    {"attributes": ["group"], "thresholds": {"EXP.MinMaxRatio": {"min": THRESHOLD}}}, folder=Path()
)
WITHOUT_MINIMA = settings_from(
    {
        "attributes": ["group"],
        "thresholds": {"EXP.MinMaxRatio": {"min": THRESHOLD}},
        "evidence": {"min_queries": 0, "min_appearances": 0},
    },
    folder=Path(),
)


def judged(log: Served, bucket: Any, settings: Settings = SETTINGS) -> tuple[Score, Verdict]:
    """EXP.MinMaxRatio of a day, and the verdict on it."""
    found = measured(log, EXP, bucket)[0]
    score, (lower, upper) = found.evaluation.scores[0], found.scores[0]
    mean, covariance = exposure_by_chance(log)
    said = settings.evidence
    draws = drawn(mean, covariance, normal_draws(said.seed, said.noise_draws, len(mean)))
    size = log.member.sum(axis=2)
    by_chance = draws / size.sum(axis=1)
    ratio = by_chance.min(axis=1) / by_chance.max(axis=1)
    p_noise = (np.sum(ratio <= score.value) + 1) / (len(ratio) + 1)
    relevant = (log.member * log.relevance).sum(axis=(1, 2))
    bases = [
        Basis(name, *2 * (int((size[at] > 0).sum()),), int(size[at].sum()), int(relevant[at]))
        for at, name in enumerate(log.names)
    ]
    doubt = Doubt(lower, upper, p_noise=float(p_noise))
    return score, verdict_on(score, settings, "group", "all", doubt, bases)


VERDICTS = (
    f"score below {THRESHOLD}",
    "breach without minima",
    "breach",
    "insufficient: few rows or queries",
    "insufficient: interval or noise",
    "ok",
)


def verdict_shares(
    size: int, advantage: Sequence[float], rows: int, days: int, seed: int
) -> list[str]:
    """How often EXP.MinMaxRatio is below the threshold, and what the verdict says then."""
    said: Counter[str] = Counter()
    for day in range(days):
        rng = np.random.default_rng([seed, size, day])
        log = served(rng, size, advantage, rows=(rows, rows), even=True)
        bucket = buckets(rng, log.query)
        score, verdict = judged(log, bucket)
        said[VERDICTS[0]] += score.value < THRESHOLD
        said[VERDICTS[1]] += judged(log, bucket, WITHOUT_MINIMA)[1].status == "breach"
        status = verdict.status
        if verdict.reason is not None:
            status = VERDICTS[3] if verdict.reason.startswith("few") else VERDICTS[4]
        said[status] += 1
    return [f"{said[name] / days:.1%}" for name in VERDICTS]


def fair_world(days: int, seed: int) -> str:
    found = {size: verdict_shares(size, (0.0,) * 5, 5, days, seed) for size in (10, 30, 100, 300)}
    rows = [[f"{size}", *cells] for size, cells in found.items()]
    return table(["requests", *VERDICTS], rows)


def power(days: int, large: int, seed: int) -> str:
    rows = []
    for ratio in (0.7, 0.76):
        advantage = (0.0, advantage_for(ratio, large, seed))
        for size in SIZES:
            cells = verdict_shares(size, advantage, 10, days, seed)
            rows.append([f"{ratio:g}", f"{size:,}", *cells])
    return table(["true score", "requests", *VERDICTS], rows)


def advantage_for(ratio: float, large: int, seed: int) -> float:
    """What the second of two groups must be favoured by, so that EXP.MinMaxRatio is ``ratio``."""
    low, high = -3.0, 0.0
    for _ in range(12):
        middle = (low + high) / 2
        rng = np.random.default_rng(seed)
        log = served(rng, large, (0.0, middle), rows=(10, 10), even=True)
        below = truth(log, EXP)[0].scores[0].value < ratio
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2
