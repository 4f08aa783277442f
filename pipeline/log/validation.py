"""Validation of what is let in, by the pandera schemas: they decide whether it stays.

Every id and name is validated once, where it is stored once.  Of the numbers of rows the extremes
are: every check of theirs is an interval (``schemas.extremes``), so what both ends pass, all rows
pass; and relevance that is said to be 0 or 1 is, where nothing else was met.  That no item and no
rank stands in a list twice is proven list by list, on whole numbers.

Not here: why a delivered row is rejected (``rejected_rows``), and whether a batch is like those
before it (``monitoring.gates``).
"""

import numpy as np
import pandas as pd
import pandera.errors
import pandera.pandas as pa
import pyarrow

from pipeline.errors import AuditError
from pipeline.log.accepted_rows import Accepted
from pipeline.log.arrow_columns import decoded
from pipeline.log.checked_lists import Extremes
from pipeline.log.reading import Reading
from schemas.rules import BINARY_RELEVANCE, POSITION, RELEVANCE
from schemas.stored_log import LOG_ITEMS, log_cells, log_lists

_FAULT = "nothing was stored. This is a fault of the program: please report it."
_TEXTS = 100_000
"""Ids and names that are validated at a time, so that memory does not grow with their number."""


def gate(reading: Reading, accepted: Accepted, *, binary: bool) -> None:
    """Validate what was stored.

    ``binary``: relevance is said to be 0 or 1 throughout.  AuditError where a schema refuses what
    the rules let through, or a list that is let in breaks a rule.
    """
    settings = reading.settings
    for table in (log_lists(settings.slices), LOG_ITEMS, log_cells(settings.attribute_columns)):
        stored = reading.connection.sql(f"FROM {reading.database}.{table.name}")
        for batch in stored.to_arrow_reader(_TEXTS):
            _validate(table.schema_of(table.names), pyarrow.Table.from_batches([batch]))
    broken = accepted.checked.survey()["broken"].to_numpy()
    if (broken & (accepted.numbers >= 0)).any():
        raise AuditError(f"lists that were let in break a rule; {_FAULT}")
    if not any(True for _ in accepted.pieces()):
        return
    entries = reading.entries
    extremes = accepted.checked.extremes
    for column in entries.columns:
        if column.checks:
            own = extremes["rank" if column.name == POSITION.name else column.name]
            values = _proof(own, column.arrow)
            _validate(entries.schema_of([column.name]), pyarrow.table({column.name: values}))
    if binary and RELEVANCE.name in extremes:
        proof = pyarrow.array(_distinct_relevance(accepted), pyarrow.float64())
        _validate(BINARY_RELEVANCE, pyarrow.table({RELEVANCE.name: proof}))


def _proof(extremes: Extremes, kind: pyarrow.DataType) -> pyarrow.Array:
    """Values that pass exactly where all that are held do."""
    values = [extremes.low, extremes.high] if extremes.low <= extremes.high else []
    none = [None] if extremes.missing else []
    return pyarrow.array([*values, *none], pyarrow.float64()).cast(kind)


def _distinct_relevance(accepted: Accepted) -> list[float]:
    """All relevances that are let in, each once."""
    if accepted.checked.extremes[RELEVANCE.name].binary:
        return [0.0, 1.0]
    found = set()
    for piece, _ in accepted.pieces():
        values = decoded(piece.columns[RELEVANCE.name])
        found |= set(np.unique(values[~np.isnan(values)]).tolist())
    return sorted(found)


def _validate(schema: pa.DataFrameSchema, rows: pyarrow.Table) -> None:
    described_columns = [name for name in rows.column_names if name in schema.columns]
    try:
        schema.validate(
            rows.select(described_columns).to_pandas(types_mapper=pd.ArrowDtype), lazy=True
        )
    except pandera.errors.SchemaErrors as errors:
        broken = sorted({str(each) for each in errors.failure_cases["check"]})
        raise AuditError(
            f"rows that the checks let through do not pass the schema ({', '.join(broken)} on "
            f"{', '.join(described_columns)}); {_FAULT}"
        ) from None
