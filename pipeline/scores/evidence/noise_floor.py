"""The noise floor: what scores would be if group did not matter for position.

Not here: the law of groups in lists (``chance``), and the verdict (``scores.verdicts``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, isfinite
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pyarrow.compute

from metrics import (
    BELOW_ALL,
    UNIT,
    Asked,
    Counts,
    Evaluation,
    Measure,
    PairCounts,
    PrefixCounts,
    Replicates,
    Score,
    ScoreName,
    Total,
    asked,
    bare_ranks,
    replicated,
)
from metrics.distributions import normal_cdf, normal_quantile
from metrics.weights import FloatArray, IntArray, exposure_at, ratio_of
from pipeline.log.whole_lists import run_starts
from pipeline.scores.evidence.chance import SHUFFLES, Mix, drawn, shuffled_prefixes
from pipeline.scores.evidence.randomness import normal_draws
from pipeline.scores.evidence.resampling import Resampled
from pipeline.settings.audit import Settings
from schemas.columns import Table, quoted
from schemas.counts import MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE

Key = tuple[str, ...]
PASSED = 0.95
"""Where the noise limit lies: chance alone stays within it in this share of batches.  A score must
exist in this share of draws, too."""
ROUNDING = 1e-12
"""What rounding can make of equal numbers, relative to their size."""
_READ = frozenset(
    {"lists", "ranks", "groups", "unknown_counts", "absent", "catalogue", "target", "binary"}
)
"""What a measure may read beside what is drawn: chance leaves it as it is."""


@dataclass(frozen=True)
class Floor:
    """What chance alone gives for one score.

    ``limit`` is passed, to the unfair side, in 5 of 100 batches; ``p_value`` is the probability of
    a score as unfair as the batch's own, or more.  Both are None where no side is unfair, and a
    limit that is infinite is None.  A score without value, because a group is shut out, has the
    ``p_value`` alone.
    """

    expected: float | None
    limit: float | None
    p_value: float | None


class Noise:
    """Noise floors of a batch, from its tables mix_counts, mix_pairs and mix_sample."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, database: str, settings: Settings
    ) -> None:
        self._settings = settings
        self._database = quoted(database)
        self._connection = connection
        self._counts, self._pairs, self._samples = map(
            self._pieces, (MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE)
        )
        self._key: Key = ()
        self._clusters: Resampled | None = None
        self._made: dict[tuple[Any, ...], Any] = {}

    def _pieces(self, table: Table) -> dict[Key, pyarrow.Table]:
        """Rows of a mix table, by slice, its value and attribute."""
        columns = ", ".join(
            f"{quoted(column.name)}::DOUBLE AS {quoted(column.name)}"
            if column.type == "HUGEINT"
            else quoted(column.name)
            for column in table.columns
        )
        found = self._connection.sql(
            f"SELECT {columns} FROM {self._database}.{table.name} "
            f"ORDER BY {', '.join(map(quoted, table.key))}"
        ).to_arrow_table()
        return pieces(found, ("slice", "slice_value", "attribute"))

    def floors(
        self,
        part: tuple[str, str],
        attribute: str,
        found: Evaluation,
        counts: Counts,
        drawn: Resampled | None = None,
    ) -> tuple[Floor | None, ...]:
        """The floor of each score of an evaluation; None where it is not known.

        ``drawn`` says how alike lists of a query are; without it, all lists are independent.
        """
        none = (None,) * len(found.scores)
        key = (*part, attribute)
        measure = found.measure
        if measure.uses_lists or key not in self._counts:
            return none
        if key != self._key:
            # What is asked for next is of the same slice and attribute, or of another for good.
            self._key, self._made = key, {}
        self._clusters = drawn
        depth = int(counts.ranks.rank.max(initial=1))
        wants = asked(measure, depth)
        if "prefixes" in wants.fields:
            return self._of_prefixes(found, counts)
        replicates = self._drawn(measure, wants, counts, depth)
        if replicates is None:
            return none
        scores = replicated(found, replicates).scores
        return tuple(
            self._shut_out(score, found, wants, counts)
            if values is None or score.value is None
            else _floor(score.name, score.value, values)
            for score, values in zip(found.scores, scores, strict=True)
        )

    def _shut_out(
        self, score: Score, found: Evaluation, wants: Asked, counts: Counts
    ) -> Floor | None:
        """How likely chance alone keeps a group that was kept off all that has weight off it.

        Added up over such groups, it is that probability or more (Bonferroni).
        """
        weights = [weight for weight in wants.totals.values() if weight is not None]
        reasons = found.values.reasons if found.values is not None else ()
        kept_off = [at for at in found.compared if at < len(reasons) and reasons[at] in BELOW_ALL]
        if (score.reason or "").split(":")[0] not in BELOW_ALL or not weights or not kept_off:
            return None
        chances = self._mix(counts.groups).shut_out(weights[0])[kept_off]
        return Floor(None, None, min(1.0, float(np.cumsum(chances)[-1])))

    def _drawn(
        self, measure: Measure, wants: Asked, counts: Counts, depth: int
    ) -> Replicates | None:
        """Counts as chance draws them; None where that is more than one sum over positions."""
        weighted = [total for total, _ in wants.weighted]
        of_rows = [total for total in weighted if total[0] == "rows"]
        # Sums of what a measure cannot do with are asked for, and change nothing.
        idle = "relevance" not in measure.columns
        others = wants.fields - _READ - {"pairs", "known_rows"}
        one_sum = len(of_rows) == 1 and (idle or len(weighted) == 1)
        one_sum = one_sum and "pairs" not in wants.fields
        pairs = not weighted and "pairs" in wants.fields
        # With gaps, ranks are not the places that items can change.
        gaps = self._settings.ranks.gaps == "keep" and not pairs
        mix = self._mix(counts.groups)
        if others or gaps or not mix.paired or not (one_sum or pairs):
            return None
        totals: dict[Total, FloatArray] = {
            (column, packed): counts.total(
                column, None if weight is None else weight[counts.ranks.rank - 1]
            )[None]
            for (column, packed), weight in wants.totals.items()
            if (column, packed) not in of_rows
        }
        share = None
        if pairs:
            share = self._once(("pairs", counts.groups), lambda: self._shares(mix))
        for total in of_rows:
            weight = wants.totals[total]
            if weight is not None:
                sums = partial(self._sums, mix, weight, counts)
                totals[total] = self._once((total, counts.groups), sums)
        return _replicates(counts, depth, totals, share)

    def _once(self, name: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made once for the slice and attribute at hand."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _normal(self, groups: int) -> FloatArray:
        """Standard normal draws."""
        evidence = self._settings.evidence
        return normal_draws(evidence.seed, evidence.noise_draws, groups)

    def _sums(self, mix: Mix, weight: FloatArray, counts: Counts) -> FloatArray:
        """Each group's weight in draws, shape (draws, groups), within what positions allow."""
        mean, covariance = mix.weighted(weight)
        covariance = inflated(covariance, self._variance_of(weight))
        # What cannot change is what it is: not another number by a last bit.
        still = covariance.diagonal() <= (ROUNDING * mean) * (ROUNDING * mean)
        mean = np.where(still, counts.total("rows", weight[counts.ranks.rank - 1]), mean)
        least, most = mix.reach(weight)
        bounds = np.where(still, mean, least), np.where(still, mean, most)
        return np.clip(drawn(mean, covariance, self._normal(mix.groups)), *bounds)

    def _shares(self, mix: Mix) -> FloatArray:
        """Each group's sum of shares of pairs won in draws, shape (draws, groups)."""
        mean, covariance = mix.pairs_won()
        of_queries = None if self._clusters is None else self._clusters.pair_variance
        covariance = inflated(covariance, of_queries)
        return np.clip(drawn(mean, covariance, self._normal(mix.groups)), 0.0, 2.0 * mean)

    def _mix(self, groups: tuple[str, ...]) -> Mix:
        """The mix of the slice and attribute at hand."""
        made: Mix = self._once(("mix", groups), lambda: self._read_mix(groups))
        return made

    def _read_mix(self, groups: tuple[str, ...]) -> Mix:
        rows, pairs = self._counts[self._key], self._pairs.get(self._key)

        def numbers(column: str) -> Any:
            return np.zeros(0) if pairs is None else pairs[column].to_numpy()

        return Mix(
            groups=len(groups),
            group=_codes(rows["group_value"], groups),
            length=rows["length"].to_numpy(),
            own=rows["own"].to_numpy(),
            lists=rows["lists"].to_numpy(),
            first=_codes(pairs and pairs["group_value"], groups),
            second=_codes(pairs and pairs["other_value"], groups),
            pair_length=numbers("length").astype(np.int64),
            product=numbers("product"),
            pair_product=numbers("pair_product") / UNIT,
            # Where groups are too many to be counted in pairs, there are no pairs at all.
            paired=pairs is not None or not _several(rows),
        )

    def _of_prefixes(self, found: Evaluation, counts: Counts) -> tuple[Floor | None, ...]:
        """Exact mean, and the variance of some lists in random order."""
        groups = counts.groups
        score = found.scores[0]
        if score.value is None:
            return (None,)
        mean = self._once(("prefixes", groups), self._mix(groups).prefixes)
        if mean is None:
            return (None,)
        together = self._once(("shuffled", groups), lambda: self._shuffled(groups))
        (expected,) = replicated(found, _replicates(counts, 1, prefixes=mean)).scores
        alone = replace(counts, lists=1)
        (shuffled,) = replicated(found, _replicates(alone, 1, prefixes=together)).scores
        if expected is None or shuffled is None:
            return (None,)
        alike = self._once(("alike", groups), lambda: self._design_effect(counts))
        lists = counts.lists / alike
        spread = np.sqrt(shuffled.reshape(-1, SHUFFLES).var(axis=1, ddof=1).mean() / lists)
        return (_normal_floor(score.name, score.value, float(expected[0]), float(spread)),)

    def _variance_of(self, weight: FloatArray) -> FloatArray | None:
        """Variance of each group's weight by how far whole queries are apart, shape (groups,)."""
        by_chance = None if self._clusters is None else self._clusters.of_weight(weight)
        return None if by_chance is None else by_chance.variance

    def _design_effect(self, counts: Counts) -> float:
        """How many lists say no more than one, on average, where lists of a query are alike.

        Measured on exposure: NDKL is no sum over rows.
        """
        mix = self._mix(counts.groups)
        weight = exposure_at(np.arange(1, int(mix.length.max(initial=1)) + 1))
        covariance, of_queries = mix.weighted(weight)[1], self._variance_of(weight)
        alone, together = np.diag(covariance), np.diag(inflated(covariance, of_queries))
        return float(together.sum() / alone.sum()) if alone.sum() > 0.0 else 1.0

    def _shuffled(self, groups: tuple[str, ...]) -> PrefixCounts:
        """The sampled lists in random orders."""
        rows = self._samples[self._key]
        numbers, place = np.unique(rows["list"].to_numpy(), return_inverse=True)
        held = np.zeros((len(numbers), len(groups)), dtype=np.int64)
        held[place, _codes(rows["group_value"], groups)] = rows["own"].to_numpy()
        parts = shuffled_prefixes(held, self._settings.evidence.seed)
        flat = (-1, len(groups))
        return PrefixCounts(
            *(each.reshape(flat) for each in (parts.entropy, parts.share, parts.own))
        )


def inflated(covariance: FloatArray, of_queries: FloatArray | None) -> FloatArray:
    """``covariance``, with variances no smaller than those ``of_queries``.

    Lists of a query that are alike move together: there is less to average over (Kish 1965).
    """
    if of_queries is None:
        return covariance
    alone = covariance.diagonal()
    factor = np.sqrt(np.fmax(1.0, ratio_of(of_queries, alone)))
    factor = np.where(np.isfinite(factor), factor, 1.0)
    found: FloatArray = covariance * np.outer(factor, factor)
    return found


def _codes(names: Any, groups: tuple[str, ...]) -> IntArray:
    """Where each of a column of names stands among ``groups``; none for no column."""
    if names is None:
        return np.zeros(0, dtype=np.int64)
    found = pyarrow.compute.index_in(names, value_set=pyarrow.array(groups, names.type))
    codes: IntArray = found.to_numpy().astype(np.int64)
    return codes


def _several(rows: pyarrow.Table) -> bool:
    """Whether any list holds more than one group."""
    return bool((rows["own"].to_numpy() < rows["length"].to_numpy()).any())


def _replicates(
    counts: Counts,
    depth: int,
    totals: dict[Total, FloatArray] | None = None,
    share: FloatArray | None = None,
    prefixes: PrefixCounts | None = None,
) -> Replicates:
    """Counts of which chance has changed some, and nothing else."""
    pairs = counts.pairs
    return Replicates(
        lists=np.array([[float(counts.lists)]]),
        groups=counts.groups,
        ranks=bare_ranks(depth),
        binary=counts.binary,
        pairs=None if pairs is None or share is None else PairCounts(pairs.lists[None], share),
        prefixes=prefixes,
        catalogue=counts.catalogue,
        target=counts.target,
        unknown_counts=counts.unknown_counts,
        absent=counts.absent,
        totals=totals or {},
    )


def _floor(name: ScoreName, value: float, draws: FloatArray) -> Floor | None:
    """The floor of one score from draws of it, shape (draws,).

    An infinite draw is more unfair than any number, and left out of the mean.
    """
    defined = draws[~np.isnan(draws)]
    finite = defined[np.isfinite(defined)]
    if len(finite) < PASSED * len(draws):
        return None
    expected = float(finite.mean())
    if name.alarm is None:
        return Floor(expected, None, None)
    side = -1.0 if name.alarm == "low" else 1.0
    unfair = side * defined
    beyond = int((unfair >= side * value - ROUNDING * abs(value)).sum())
    limit = side * float(_quantile(unfair, PASSED))
    # The batch itself is one of the draws that could have been (Davison & Hinkley 1997, 4.2).
    p_value = (beyond + 1) / (len(defined) + 1)
    return Floor(expected, limit if isfinite(limit) else None, p_value)


def _quantile(draws: FloatArray, level: float) -> float:
    """The quantile of draws, shape (draws,), between order statistics; infinite next to one."""
    place = level * (len(draws) - 1)
    under = floor(place)
    over = min(under + 1, len(draws) - 1)
    low, high = np.partition(draws, (under, over))[[under, over]]
    return float(low if low == high or place == under else low + (high - low) * (place - under))


def _normal_floor(name: ScoreName, value: float, expected: float, spread: float) -> Floor:
    """The floor of a score that is normal under chance."""
    if name.alarm is None:
        return Floor(expected, None, None)
    side = -1.0 if name.alarm == "low" else 1.0
    limit = expected + side * float(normal_quantile(PASSED)) * spread
    away = side * (value - expected)
    # Sums of prefixes are stored with some 14 digits.
    rounding = 1e-9 * max(1.0, abs(expected))
    if spread <= rounding * 1e-3:
        return Floor(expected, limit, 1.0 if away <= rounding else 0.0)
    return Floor(expected, limit, float(normal_cdf(-away / spread)))


def pieces(table: pyarrow.Table, key: Sequence[str]) -> dict[tuple[str, ...], pyarrow.Table]:
    """Pieces of a table that is ordered by ``key``, one for each of its values."""
    if not len(table):
        return {}
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in key]
    starts = run_starts(*codes)
    return {
        tuple(table[name][start].as_py() for name in key): table.slice(start, length)
        for start, length in zip(
            starts.tolist(), np.diff(starts, append=len(table)).tolist(), strict=True
        )
    }
