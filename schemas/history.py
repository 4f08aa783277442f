"""Tables of the history and of batch files as wholes: manifest, replaced scores, ledger head.

Not here: tables of one topic, such as ``counts``, ``scores`` and ``monitoring``.
"""

import pandera.pandas as pa

from metrics.reasons import Coded
from schemas.columns import Column, Table
from schemas.counts import COUNT_TABLES, KEPT_COUNTS
from schemas.monitoring import ASSESSED
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY
from schemas.tables import BATCH, REJECTED_ROWS, RULE_COUNTS

REVISION = Column("revision", "INTEGER", "which of the batch's results this is, 1 for the first")
REPLACED_AT = Column("replaced_at", "TIMESTAMP", "when newer scores took its place (UTC)")

VERDICT = (
    Column(
        "verdict", "VARCHAR", "what the batch says by itself, gates and missing groups aside", True
    ),
    Column("verdict_reason", "VARCHAR", "why that is insufficient", nullable=True),
)
"""The batch file's status and its reason; the history's own become gated where a gate
fails, and ok becomes insufficient where a group is missing."""

HISTORY = (FAIRNESS_HISTORY.having(REVISION, *VERDICT), GROUP_HISTORY.having(REVISION))
SUPERSEDED = tuple(
    table.having(
        REPLACED_AT,
        name=name,
        text=f"What {table.name} held before a batch was computed again.",
        key=(*table.key, "revision"),
    )
    for table, name in zip(HISTORY, ("superseded", "superseded_groups"), strict=True)
)


class IdsDiffer(Coded):
    """What ids of a log and of its item table differ in, where they mean the same items."""

    DECIMALS = "decimals", "zero decimals (3.0 for 3)"
    ZEROS = "zeros", "leading zeros (007 for 7)"
    SPACES = "spaces", "spaces around them"
    CASE = "case", "upper and lower case"
    SEVERAL = "several", "several of decimals, leading zeros, spaces and case"


BATCH_STATUSES = ("done", "no_data", "refused", "failed")
BATCHES = Table(
    "batches",
    "The manifest: the last attempt at each batch.",
    (
        BATCH,
        Column(
            "status",
            "VARCHAR",
            "done; no_data: no rows; refused: the data broke its contract; failed: an error",
            checks=(pa.Check.isin(BATCH_STATUSES),),
        ),
        Column("message", "VARCHAR", "what happened, for statuses other than done", nullable=True),
        Column("lists", "BIGINT", "lists accepted"),
        Column("rows_read", "BIGINT", "rows read"),
        Column("rows_accepted", "BIGINT", "rows accepted"),
        Column("rows_rejected", "BIGINT", "rows rejected, whole lists included"),
        Column("lists_rejected", "BIGINT", "lists rejected"),
        Column("graded_rows", "BIGINT", "rows whose relevance is neither 0 nor 1"),
        Column("revision", "INTEGER", "revision of the scores in the history, 0 for none"),
        Column("run_id", "VARCHAR", "run of the attempt"),
        Column("code_version", "VARCHAR", "version of the code, and a digest of what computes"),
        Column("config_hash", "VARCHAR", "digest of the settings that numbers depend on"),
        Column("input_hash", "VARCHAR", "digest of the delivered files"),
        Column("rows_hash", "VARCHAR", "digest of the settings that counts depend on"),
        Column("started_at", "TIMESTAMP", "start of the attempt (UTC)"),
        Column("finished_at", "TIMESTAMP", "end of the attempt (UTC)"),
        Column(
            "peak_memory",
            "BIGINT",
            "most resident memory of the process while it computed the batch, in bytes",
            nullable=True,
        ),
        Column(
            "result_hash",
            "VARCHAR",
            "digest of every published number: equal for equal numbers, however computed",
            nullable=True,
        ),
        Column(
            "settings",
            "VARCHAR",
            "the settings that numbers depend on, as JSON",
            nullable=True,
        ),
        Column(
            "rows_joined",
            "BIGINT",
            "rows of the current scores whose item the item table holds; null where no attribute "
            "comes from one",
            nullable=True,
        ),
        Column(
            "ids_differ_in",
            "VARCHAR",
            f"what keeps ids from joining, where that is plain: {', '.join(IdsDiffer)}",
            nullable=True,
        ),
    ),
    key=("batch",),
)
BATCH_INFO = BATCHES.without("revision").having(name="batch_info", text="How the file came to be.")

COUNTS_OF_HISTORY = tuple(
    table.having(BATCH, first=True, key=("batch", *table.key)) for table in KEPT_COUNTS
)
LEDGER_HEAD = Table(
    "ledger_head",
    "The last entry of the ledger that the history holds: one row.",
    (
        Column("line", "BIGINT", "line of the ledger"),
        Column("hash", "VARCHAR", "its digest"),
    ),
    key=("line",),
)
HISTORY_TABLES = (*HISTORY, *SUPERSEDED, *COUNTS_OF_HISTORY, BATCHES, *ASSESSED, LEDGER_HEAD)
"""Everything that history.duckdb holds."""
BATCH_TABLES = (
    REJECTED_ROWS,
    RULE_COUNTS,
    *COUNT_TABLES,
    FAIRNESS_HISTORY,
    GROUP_HISTORY,
    BATCH_INFO,
)
"""What a batch file holds besides its rows."""
