"""The keys of the three JDBC sinks, with their own names and defaults.

Keys that steer Java alone are accepted and ignored.
"""

from __future__ import annotations

from typing import Any

from wherry.sdk import Config, Secret, key
from wherry_jdbc.settings import POSITIONS_TABLE_DEFAULT

_POSITIONS_DOC = (
    "Table in which the positions are stored in the same transaction as the rows, which makes delivery exactly once. "
    "Empty: positions are not stored there, and rows may repeat after a failure."
)
_URL_DOC = "JDBC URL of the database: jdbc:postgresql://host:port/database."
_INSERT_DOC = "What to do with a row: insert it, upsert it by its key, or update the row of its key."
_KEY_DOC = "Where the primary key comes from: none, kafka (topic, partition, offset), record_key or record_value."
_ROWS_DOC = "Most rows of one COPY; a larger batch goes in several, within one transaction."
_IGNORED = "Has no meaning here: batches are sized by bytes and failures are retried by the engine."
COPY_ROWS_DEFAULT = 50_000


class ConfluentConfig(Config):
    """Keys of io.confluent.connect.jdbc.JdbcSinkConnector and of io.aiven.connect.jdbc.JdbcSinkConnector."""

    connection_url: str = key(doc=_URL_DOC, importance="high", group="Connection", non_empty=True)
    connection_user: str | None = key(default=None, doc="User name.", importance="high", group="Connection")
    connection_password: Secret | None = key(default=None, doc="Password.", importance="high", group="Connection")
    connection_attempts: int = key(default=3, doc=_IGNORED, importance="low", group="Connection")
    connection_backoff_ms: int = key(default=10_000, type="long", doc=_IGNORED, importance="low", group="Connection")
    dialect_name: str = key(default="", doc="Only PostgreSQL is supported.", importance="low", group="Connection")
    insert_mode: str = key(
        default="insert",
        doc=_INSERT_DOC,
        importance="high",
        one_of=("insert", "multi", "upsert", "update"),
        ignore_case=True,
        group="Writes",
    )
    batch_size: int = key(default=3_000, doc=_IGNORED, min=0, group="Writes")
    delete_enabled: bool = key(default=False, doc="Whether a null value deletes the row of its key.", group="Writes")
    wherry_copy_rows_max: int = key(default=COPY_ROWS_DEFAULT, doc=_ROWS_DOC, min=1, importance="low", group="Writes")
    wherry_positions_table: str = key(default=POSITIONS_TABLE_DEFAULT, doc=_POSITIONS_DOC, group="Writes")
    table_name_format: str = key(
        default="${topic}",
        doc="Name of the table; ${topic} stands for the topic.",
        group="Data Mapping",
        non_empty=True,
    )
    topics_to_tables_mapping: list[str] = key(
        default=None, doc="Tables of single topics, as topic:table.", importance="low", group="Data Mapping"
    )
    pk_mode: str = key(default="none", doc=_KEY_DOC, importance="high", group="Data Mapping")
    pk_fields: list[str] = key(default="", doc="Fields, or columns, of the primary key.", group="Data Mapping")
    fields_whitelist: list[str] = key(default="", doc="Fields of the value to write; empty: all.", group="Data Mapping")
    auto_create: bool = key(default=False, doc="Whether to create missing tables.", group="DDL Support")
    auto_evolve: bool = key(default=False, doc="Whether to add missing columns.", group="DDL Support")
    quote_sql_identifiers: str = key(
        default="always",
        doc="always: names keep their case; never: PostgreSQL folds them to lower case. Both are quoted safely.",
        one_of=("always", "never"),
        ignore_case=True,
        group="DDL Support",
    )
    max_retries: int = key(default=10, doc=_IGNORED, min=0, group="Retries")
    retry_backoff_ms: int = key(default=3_000, doc=_IGNORED, min=0, group="Retries")


class DebeziumConfig(Config):
    """Keys of io.debezium.connector.jdbc.JdbcSinkConnector."""

    connection_url: str = key(doc=_URL_DOC, importance="high", group="Connection", non_empty=True)
    connection_username: str | None = key(default=None, doc="User name.", importance="high", group="Connection")
    connection_password: Secret | None = key(default=None, doc="Password.", importance="high", group="Connection")
    insert_mode: str = key(
        default="insert",
        doc=_INSERT_DOC,
        importance="high",
        one_of=("insert", "upsert", "update"),
        ignore_case=True,
        group="Writes",
    )
    batch_size: int = key(default=500, doc=_IGNORED, group="Writes")
    delete_enabled: bool = key(default=False, doc="Whether a null value deletes the row of its key.", group="Writes")
    wherry_copy_rows_max: int = key(default=COPY_ROWS_DEFAULT, doc=_ROWS_DOC, min=1, importance="low", group="Writes")
    wherry_positions_table: str = key(default=POSITIONS_TABLE_DEFAULT, doc=_POSITIONS_DOC, group="Writes")
    collection_name_format: str = key(
        default="${topic}",
        doc="Name of the table; ${topic} stands for the topic with underscores for its dots.",
        group="Data Mapping",
    )
    table_name_format: str | None = key(
        default=None, doc="Older name of collection.name.format.", importance="low", group="Data Mapping"
    )
    primary_key_mode: str = key(default="none", doc=_KEY_DOC, importance="high", group="Data Mapping")
    primary_key_fields: list[str] = key(default="", doc="Fields, or columns, of the primary key.", group="Data Mapping")
    field_include_list: list[str] = key(default="", doc="Fields to write; empty: all.", group="Data Mapping")
    field_exclude_list: list[str] = key(default="", doc="Fields not to write.", group="Data Mapping")
    schema_evolution: str = key(
        default="none",
        doc="basic: create missing tables and add missing columns; none: neither.",
        one_of=("none", "basic"),
        ignore_case=True,
        group="DDL Support",
    )
    quote_identifiers: bool = key(
        default=False,
        doc="true: names keep their case; false: PostgreSQL folds them to lower case. They are quoted safely in both.",
        group="DDL Support",
    )


def plain(config: Config) -> dict[str, Any]:
    """The values by the names of their keys, secrets in the clear."""
    values: dict[str, Any] = {}
    for known in type(config).definition.keys:
        value = getattr(config, known.name.replace(".", "_"))
        values[known.name] = value.reveal() if isinstance(value, Secret) else value
    return values
