"""Columns that tables of several topics share, and the tables of rejected rows.

Not here: other tables, which stand with their topic, and columns of one topic alone.
"""

from schemas.columns import Column, Table

BATCH = Column("batch", "VARCHAR", "the partition, a day by default")
SLICE = Column("slice", "VARCHAR", "slice column, or 'all' for the whole batch")
SLICE_VALUE = Column("slice_value", "VARCHAR", "value of the slice column, or 'all'")
ATTRIBUTE = Column(
    "attribute", "VARCHAR", "attribute of the items; intersections are joined by '*'"
)
GROUP_VALUE = Column("group_value", "VARCHAR", "value of the attribute: the group")
LISTS = Column("lists", "BIGINT", "lists in the slice")
ROWS = Column("rows", "BIGINT", "rows counted here")
QUERIES = Column("queries", "BIGINT", "queries in the slice: what intervals resample")
LOWER = Column("lower", "DOUBLE", "lower end of the interval; null where there is none", True)
UPPER = Column("upper", "DOUBLE", "upper end of the interval; null where there is none", True)
CONFIDENCE = Column("confidence", "DOUBLE", "share of intervals that should hold the truth", True)
SEED = Column("seed", "BIGINT", "seed of the resampling and of the noise floor", True)

REJECTED_ROWS = Table(
    "rejected_rows",
    "Rows that broke a rule, one per row and rule; long batches of offenders are cut.",
    (
        Column("file", "VARCHAR", "file the row came from"),
        Column("row", "BIGINT", "row in the file, 1 = first row of data"),
        Column("line", "BIGINT", "line of a text file on which the row starts", nullable=True),
        Column("list_id", "VARCHAR", "list of the row", nullable=True),
        Column("item_id", "VARCHAR", "item of the row", nullable=True),
        Column("rule", "VARCHAR", "rule that is broken"),
        Column("column", "VARCHAR", "column that breaks it"),
        Column("value", "VARCHAR", "value as delivered, cut at 100 characters", nullable=True),
        Column("problem", "VARCHAR", "what is wrong, as a sentence goes on after the value"),
    ),
)
RULE_COUNTS = Table(
    "rule_counts",
    "How many rows and lists broke each rule, uncut.",
    (
        Column("rule", "VARCHAR", "rule that is broken"),
        Column("rows", "BIGINT", "offending rows"),
        Column("lists", "BIGINT", "lists with an offending row"),
    ),
    key=("rule",),
)
