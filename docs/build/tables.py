"""Tables, views and rules of rows, from the schemas.

Not here: queries on them, which are prose.
"""

from collections.abc import Iterable

from docs.build.markdown import code, codes, grid
from schemas.columns import Column, Table
from schemas.copy import COPY_TABLES
from schemas.counts import bucket_counts
from schemas.history import BATCH_TABLES, HISTORY_TABLES
from schemas.offenders import row_rules
from schemas.rules import LOGGED, QUERY_ID, list_rules, ranking_log
from schemas.stored_log import log_entries, stored_log
from schemas.views import VIEWS


def _columns(columns: Iterable[Column]) -> str:
    rows = ((code(c.name), c.type + (", null" if c.nullable else ""), c.text) for c in columns)
    return grid(("column", "type", "meaning"), rows)


def _more(table: Table, other: Table) -> list[Column] | None:
    """What ``table`` has besides all columns of ``other``; None if it lacks one."""
    if not {*other.columns} <= {*table.columns}:
        return None
    return [column for column in table.columns if column not in other.columns]


def _described(table: Table, others: Iterable[Table] = ()) -> str:
    """A section on a table; one that adds at most a column to another says so."""
    key = f" One row per {codes(table.key)}." if table.key else ""
    head = f"### {table.name}\n\n{table.text}{key}\n\n"
    likes = ((other, _more(table, other)) for other in others)
    near = [(other, more) for other, more in likes if more is not None and len(more) <= 1]
    if not near:
        return head + _columns(table.columns)
    other, more = min(near, key=lambda each: len(each[1]))
    return f"{head}The columns of `{other.name}`" + (f", and:\n\n{_columns(more)}" if more else ".")


def history_tables() -> str:
    """Every table of the history, and of the copy that dashboards read."""
    return "\n\n".join(
        _described(table, HISTORY_TABLES[:at]) for at, table in enumerate(HISTORY_TABLES)
    )


def batch_tables() -> str:
    """Every table of a batch file; those that the history has too are only named."""
    log = ranking_log((), ())
    sections = [
        _described(log)
        + "\n\nOne more column per slice and per attribute, all text. A view of the tables that "
        "follow, which hold every text once."
    ]
    entries = log_entries((column.name for column in LOGGED), placed=True)
    sections += [_described(table) for table in stored_log((), (), entries)]
    sections.append(
        "`log_entries` has the columns that the log has; `log_rows` is a view of it with all.\n"
        "`log_lists` has one more column per slice and `log_cells` one per attribute, named with\n"
        "'=' in front."
    )
    sections.append(
        _described(bucket_counts((), ()))
        + "\n\nOne more column per slice and per attribute, named with '=' in front."
    )
    known = []
    for table in BATCH_TABLES:
        likes = ((other, _more(other, table)) for other in HISTORY_TABLES)
        like = next(((other, more) for other, more in likes if more and len(more) == 1), None)
        if like is None:
            sections.append(_described(table))
        else:
            other, (more,) = like
            name = f" `{other.name}`" if other.name != table.name else ""
            known.append(f"- `{table.name}`:{name} without `{more.name}`")
    same = "\n".join(["These are as in the history:", "", *known])
    return "\n\n".join([*sections, same])


def copy_tables() -> str:
    """Every table that the published copy has beside those of the history."""
    return "\n\n".join(_described(table) for table in COPY_TABLES)


def views() -> str:
    """Every view of the published copy."""
    return "\n\n".join(_described(view, VIEWS[:at]) for at, view in enumerate(VIEWS))


def rules() -> str:
    """One line per rule that a delivered row can break."""
    rows = [
        (code(rule.name), code(rule.column), rule.error)
        for column in LOGGED
        if column is not QUERY_ID
        for rule in row_rules(column, raw="raw", value="value")
    ]
    rows += [
        (code(rule.name), code(rule.column) if rule.column != "slice" else "a slice", rule.error)
        for rule in list_rules(("slice",), gaps_allowed=False)
    ]
    return grid(("rule", "column", "the value ..."), rows)
