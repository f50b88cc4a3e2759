"""What a query of the transformation Sql may be: one SELECT that looks at each record by itself.

Batches are cut as they happen to come, so an answer that depended on more than the record at hand would be another each
time. Whatever needs other records is refused here, in a sentence, before anything runs: when the connector is validated
and when it starts. DuckDB parses; it is imported when a query is looked at, never earlier.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wherry.contract.errors import ConfigError

# Name of the table that a query selects from.
TABLE: Final = "records"
# What is known of a record beside its value, by the column that a query names it by.
RECORD_COLUMNS: Final[Mapping[str, str]] = {
    "_key": "key",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
}
# The place of a record in its batch; the query is made to answer with it.
ROW: Final = "rowid"
_MISSING: Final = "The transformation Sql needs DuckDB, which is not installed here: pip install 'wherry[sql]'."
_MODIFIERS: Final = {
    "DISTINCT_MODIFIER": "DISTINCT",
    "ORDER_MODIFIER": "ORDER BY",
    "LIMIT_MODIFIER": "LIMIT",
    "LIMIT_PERCENT_MODIFIER": "LIMIT",
}
_CLASSES: Final = {"SUBQUERY": "a subquery", "WINDOW": "a window function", "PARAMETER": "a parameter"}


@dataclass(frozen=True, slots=True)
class Select:
    """A query that may be run.

    Attributes:
        sql: The query, with the place of the record as its last column.
        record_columns: Which of RECORD_COLUMNS it names.
    """

    sql: str
    record_columns: tuple[str, ...]


def problem(query: str) -> str | None:
    """Says what is wrong with a query; None when nothing is."""
    try:
        prepare(query)
    except ConfigError as error:
        return error.message
    return None


@functools.lru_cache(maxsize=64)
def prepare(query: str) -> Select:
    """Checks a query and makes it tell which record a row comes from.

    Raises:
        ConfigError: It can't be parsed, or needs more than the record at hand; or DuckDB is not there.
    """
    try:
        import duckdb
    except ImportError:
        raise ConfigError(_MISSING, key="query") from None
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        tree = json.loads(_one(connection, "SELECT json_serialize_sql(?)", query))
        if tree.get("error"):
            raise _refused(query, f"it can't be parsed: {tree.get('error_message')}")
        statements = tree["statements"]
        if len(statements) != 1:
            raise _refused(query, f"it must be one SELECT, not {len(statements)} statements")
        node = statements[0]["node"]
        _check_shape(query, node)
        named, has_star = _check_expressions(query, node)
        node["select_list"].append(
            {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "column_names": [ROW]}
        )
        sql = _one(connection, "SELECT json_deserialize_sql(?::JSON)", json.dumps(tree))
    if has_star and named:
        raise _refused(query, f"it names {named[0]} beside *: name all columns then")
    return Select(sql, named)


def _check_shape(query: str, node: Mapping[str, Any]) -> None:
    if node.get("type") != "SELECT_NODE":
        raise _refused(query, "it joins several SELECTs, and must be one")
    if node["cte_map"]["map"]:
        raise _refused(query, "it has a WITH, and must be one SELECT")
    table = node["from_table"]
    if table["type"] != "BASE_TABLE" or table["table_name"].lower() != TABLE or table.get("schema_name"):
        raise _refused(query, f"its FROM must be {TABLE}, which is the batch at hand, and nothing else")
    wants = [_MODIFIERS.get(modifier["type"], modifier["type"]) for modifier in node["modifiers"]]
    if node["group_expressions"] or node["group_sets"] or node["aggregate_handling"] != "STANDARD_HANDLING":
        wants.append("GROUP BY")
    wants += [
        word
        for member, word in (("having", "HAVING"), ("qualify", "QUALIFY"), ("sample", "a sample"))
        if node.get(member)
    ]
    if table.get("sample"):
        wants.append("a sample")
    if wants:
        raise _stateful(query, wants[0])


def _check_expressions(query: str, node: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Returns which columns of the record it names, and whether it has a star."""
    named: dict[str, None] = {}
    has_star = False
    for expression in _walk([node["select_list"], node["where_clause"]]):
        kind = expression.get("class")
        if kind in _CLASSES:
            raise _stateful(query, _CLASSES[kind])
        name = str(expression.get("function_name", "")).lower()
        if kind == "FUNCTION" and name in _aggregates():
            raise _stateful(query, f"{name}()")
        has_star = has_star or kind == "STAR"
        if kind == "COLUMN_REF":
            column = str(expression["column_names"][-1]).lower()
            if column == ROW:
                raise _refused(query, f"{ROW} is the place in a batch, which means nothing to a record")
            if column in RECORD_COLUMNS and len(expression["column_names"]) <= 2:
                named[column] = None
    return tuple(named), has_star


@functools.cache
def _aggregates() -> frozenset[str]:
    import duckdb

    query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        return frozenset(name for (name,) in connection.execute(query).fetchall())


def _walk(found: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(found, dict):
        yield found
        found = list(found.values())
    if isinstance(found, list):
        for item in found:
            yield from _walk(item)


def _one(connection: Any, sql: str, given: str) -> Any:
    return connection.execute(sql, [given]).fetchone()[0]


def _stateful(query: str, what: str) -> ConfigError:
    return _refused(query, f"{what} needs other records than the one at hand, and batches are cut anyhow")


def _refused(query: str, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {query} for configuration query: {why}.", key="query")
