"""The gate that computed rows pass before anything is stored.

Not here: what the schemas say (``schemas.scores``).
"""

from collections.abc import Sequence

import pandas as pd
import pandera.errors
import pandera.pandas as pa
import pyarrow

from pipeline.errors import AuditError
from schemas.columns import Row, Table


def validated(table: Table, schema: pa.DataFrameSchema, rows: Sequence[Row]) -> pyarrow.Table:
    """Rows in the types of ``table``; AuditError where they break their schema."""
    found = pyarrow.Table.from_pylist(list(rows), schema=table.arrow)
    try:
        schema.validate(found.to_pandas(types_mapper=pd.ArrowDtype), lazy=True)
    except pandera.errors.SchemaErrors as errors:
        broken = sorted({str(each) for each in errors.failure_cases["check"]})
        raise AuditError(
            f"{table.name}: computed values break their schema ({', '.join(broken)}); "
            "nothing was stored. This is a fault of the program: please report it."
        ) from None
    return found
