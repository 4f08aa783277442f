"""Which list of one log answers the same query as which list of another.

Not here: how two lists differ (``compare``).
"""

from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class Matching:
    """How lists were paired.

    ``queries`` are in both logs.  A query with one list on either side needs no choice
    (``one_to_one``); of the others, lists are paired that share their list_id, and what is left of
    both sides in order of list_id.  ``left_a`` and ``left_b`` found no partner.
    """

    queries: int
    only_a: int
    only_b: int
    one_to_one: int
    by_list_id: int
    in_order: int
    left_a: int
    left_b: int

    @property
    def lists(self) -> int:
        """Pairs of lists that are compared."""
        return self.one_to_one + self.by_list_id + self.in_order


def match(connection: duckdb.DuckDBPyConnection) -> Matching:
    """Pair the lists of ``rows_a`` and ``rows_b``: list_id, item_id, rank, query_id.

    Fills the table ``pairs``: ``list``, a number per pair in order of query and A's list_id,
    query_id, ``list_a`` and ``list_b``, how many items each shows, and the depth of B's.  A list
    whose rows name several queries answers the first of them by name.
    """
    for side in ("a", "b"):
        connection.execute(
            f"CREATE TEMP TABLE lists_{side} AS SELECT list_id, min(query_id) AS query_id, "
            f"max(rank) AS depth, count(*) AS items FROM rows_{side} GROUP BY list_id"
        )
        connection.execute(
            f"CREATE TEMP TABLE queries_{side} AS "
            f"SELECT query_id, count(*) AS lists FROM lists_{side} GROUP BY query_id"
        )
    connection.execute(
        "CREATE TEMP TABLE same AS SELECT query_id, list_id FROM lists_a "
        "JOIN lists_b USING (query_id, list_id)"
    )
    for side in ("a", "b"):
        connection.execute(
            f"CREATE TEMP TABLE rest_{side} AS SELECT query_id, list_id, "
            "row_number() OVER (PARTITION BY query_id ORDER BY list_id) AS turn "
            f"FROM lists_{side} ANTI JOIN same USING (query_id, list_id)"
        )
    connection.execute(
        "CREATE TEMP TABLE pairs AS "
        "SELECT row_number() OVER (ORDER BY query_id, list_a) AS list, query_id, list_a, list_b, "
        "ordered, lists_a.items AS items_a, lists_b.items AS items_b, lists_b.depth AS depth_b, "
        "queries_a.lists = 1 AND queries_b.lists = 1 AS alone FROM ("
        "SELECT query_id, list_id AS list_a, list_id AS list_b, false AS ordered FROM same "
        "UNION ALL SELECT query_id, rest_a.list_id, rest_b.list_id, true "
        "FROM rest_a JOIN rest_b USING (query_id, turn)) AS paired "
        "JOIN queries_a USING (query_id) JOIN queries_b USING (query_id) "
        "JOIN lists_a ON lists_a.list_id = list_a JOIN lists_b ON lists_b.list_id = list_b"
    )
    ((queries, only_a, only_b, left_a, left_b),) = connection.execute(
        "SELECT count(*) FILTER (a AND b), count(*) FILTER (NOT b), count(*) FILTER (NOT a), "
        "coalesce(sum(greatest(lists_a - lists_b, 0)) FILTER (a AND b), 0)::BIGINT, "
        "coalesce(sum(greatest(lists_b - lists_a, 0)) FILTER (a AND b), 0)::BIGINT FROM ("
        "SELECT a.lists IS NOT NULL AS a, b.lists IS NOT NULL AS b, "
        "a.lists AS lists_a, b.lists AS lists_b "
        "FROM queries_a AS a FULL JOIN queries_b AS b USING (query_id))"
    ).fetchall()
    ((alone, by_id, in_order),) = connection.execute(
        "SELECT count(*) FILTER (alone), count(*) FILTER (NOT alone AND NOT ordered), "
        "count(*) FILTER (NOT alone AND ordered) FROM pairs"
    ).fetchall()
    return Matching(queries, only_a, only_b, alone, by_id, in_order, left_a, left_b)
