"""One view of the three spellings of the configuration: Confluent's, Aiven's and Debezium's JDBC sinks."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wherry.contract.errors import ConfigError

KAFKA_KEY_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")
POSITIONS_TABLE_DEFAULT = "wherry_positions"


class InsertMode(enum.Enum):
    """What happens to a row whose key is in the table already."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class KeyMode(enum.Enum):
    """Where the primary key comes from."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the writer needs to know, whichever dialect of keys it was said in."""

    url: str
    user: str | None
    password: str | None
    insert_mode: InsertMode
    key_mode: KeyMode
    key_fields: tuple[str, ...]
    table_format: str
    table_by_topic: Mapping[str, str]
    create: bool
    evolve: bool
    deletes: bool
    fold_case: bool
    """Unquoted identifiers: PostgreSQL folds them to lower case."""
    dots_to_underscores: bool
    """Debezium turns the dots of a topic into underscores; the others read them as schema.table."""
    unwrap_change_events: bool
    """Rows of a Debezium change event are its `after`."""
    fields_include: frozenset[str]
    fields_exclude: frozenset[str]
    positions_table: str
    """Empty: positions are not stored with the data."""
    rows_per_copy_max: int

    def wants(self, field: str) -> bool:
        """Whether a field of the value becomes a column."""
        if self.fields_include and field not in self.fields_include:
            return False
        return field not in self.fields_exclude


def from_confluent(config: Mapping[str, Any]) -> Settings:
    """Reads the keys of io.confluent.connect.jdbc and io.aiven.connect.jdbc.

    Raises:
        ConfigError: Two values contradict each other.
    """
    quote = str(config.get("quote.sql.identifiers") or "always").lower()
    return _checked(
        Settings(
            url=config["connection.url"],
            user=config.get("connection.user"),
            password=config.get("connection.password"),
            insert_mode=_insert_mode("insert" if config["insert.mode"] == "multi" else config["insert.mode"]),
            key_mode=_key_mode("pk.mode", config["pk.mode"]),
            key_fields=tuple(config["pk.fields"]),
            table_format=config["table.name.format"],
            table_by_topic=_mapping(config.get("topics.to.tables.mapping") or ()),
            create=config["auto.create"],
            evolve=config["auto.evolve"],
            deletes=config["delete.enabled"],
            fold_case=quote == "never",
            dots_to_underscores=False,
            unwrap_change_events=False,
            fields_include=frozenset(config["fields.whitelist"]),
            fields_exclude=frozenset(),
            positions_table=config["wherry.positions.table"] or "",
            rows_per_copy_max=config["wherry.copy.rows.max"],
        ),
        "pk.mode",
        "pk.fields",
    )


def from_debezium(config: Mapping[str, Any]) -> Settings:
    """Reads the keys of io.debezium.connector.jdbc.

    Raises:
        ConfigError: Two values contradict each other.
    """
    evolution = config["schema.evolution"].lower()
    return _checked(
        Settings(
            url=config["connection.url"],
            user=config.get("connection.username"),
            password=config.get("connection.password"),
            insert_mode=_insert_mode(config["insert.mode"]),
            key_mode=_key_mode("primary.key.mode", config["primary.key.mode"]),
            key_fields=tuple(config["primary.key.fields"]),
            table_format=config.get("table.name.format") or config["collection.name.format"],
            table_by_topic={},
            create=evolution == "basic",
            evolve=evolution == "basic",
            deletes=config["delete.enabled"],
            fold_case=not config["quote.identifiers"],
            dots_to_underscores=True,
            unwrap_change_events=True,
            fields_include=frozenset(config["field.include.list"]),
            fields_exclude=frozenset(config["field.exclude.list"]),
            positions_table=config["wherry.positions.table"] or "",
            rows_per_copy_max=config["wherry.copy.rows.max"],
        ),
        "primary.key.mode",
        "primary.key.fields",
    )


def _checked(settings: Settings, mode_key: str, fields_key: str) -> Settings:
    mode, fields = settings.key_mode, settings.key_fields
    if settings.insert_mode is not InsertMode.INSERT and mode is KeyMode.NONE:
        raise ConfigError(
            f"Invalid value none for configuration {mode_key}: insert.mode={settings.insert_mode.value} needs a key; "
            "use record_key, record_value or kafka",
            key=mode_key,
        )
    if settings.deletes and mode is not KeyMode.RECORD_KEY:
        raise ConfigError(
            f"Invalid value {mode.value} for configuration {mode_key}: delete.enabled=true needs record_key",
            key=mode_key,
        )
    if mode is KeyMode.KAFKA and len(fields) not in (0, 3):
        raise ConfigError(
            f"Invalid value {','.join(fields)} for configuration {fields_key}: {mode_key}=kafka takes no names, or "
            "three for topic, partition and offset",
            key=fields_key,
        )
    return settings


def _insert_mode(text: str) -> InsertMode:
    return InsertMode(text.lower())


def _key_mode(key: str, text: str) -> KeyMode:
    try:
        return KeyMode(text.lower())
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: not supported; use none, kafka, record_key or record_value",
            key=key,
        ) from None


def _mapping(entries: Any) -> dict[str, str]:
    mapping = {}
    for entry in entries:
        topic, colon, table = entry.partition(":")
        if not colon:
            raise ConfigError(
                f"Invalid value {entry} for configuration topics.to.tables.mapping: expected topic:table",
                key="topics.to.tables.mapping",
            )
        mapping[topic.strip()] = table.strip()
    return mapping
