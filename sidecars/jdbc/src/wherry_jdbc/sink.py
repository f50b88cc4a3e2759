"""The JDBC sinks: one table for each topic, rows and positions in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from wherry.contract.batch import RowError
from wherry.contract.errors import ConfigError, WherryError
from wherry.contract.position import Position, compact_json, parse_kafka_position
from wherry.sdk import Batch, Config, Sink, SinkClass, SinkTask, Target
from wherry_jdbc.config import ConfluentConfig, DebeziumConfig, plain
from wherry_jdbc.database import Database
from wherry_jdbc.positions import PositionTable
from wherry_jdbc.settings import Settings, from_confluent, from_debezium
from wherry_jdbc.tables import Column, TableName, column_name, column_type, table_name
from wherry_jdbc.url import to_libpq
from wherry_jdbc.writer import TableWriter


class _JdbcSink(Sink[Any]):
    """What the three have in common; they differ in the names of their keys."""

    sink_class = SinkClass.TRANSACTIONAL
    deletes = True
    _database: Database | None = None

    @classmethod
    def settings_of(cls, config: Config) -> Settings:
        """The settings, whatever the dialect of the keys.

        Raises:
            ConfigError: Values contradict each other.
        """
        return from_debezium(plain(config)) if isinstance(config, DebeziumConfig) else from_confluent(plain(config))

    @classmethod
    def validate(cls, config: Any, connect: bool) -> Mapping[str, str]:
        """Looks at values together and, if it may, logs in."""
        try:
            settings = cls.settings_of(config)
            uri, _ = to_libpq(settings.url, settings.user, settings.password)
            if connect:
                with Database(uri) as database:
                    database.version()
        except ConfigError as error:
            return {error.key or "connection.url": str(error)}
        except WherryError as error:
            return {"connection.url": str(error)}
        return {}

    @classmethod
    def sink_class_of(cls, config: Any) -> SinkClass:
        """Without stored positions rows repeat, or overwrite themselves by key."""
        settings = cls.settings_of(config)
        if settings.positions_table:
            return SinkClass.TRANSACTIONAL
        return SinkClass.APPEND if settings.insert_mode.value == "insert" else SinkClass.IDEMPOTENT

    def probe(self) -> str:
        """Logs in and tells the server's version."""
        with self._connect() as database:
            return f"PostgreSQL {database.version()}"

    def open(self, task: SinkTask) -> Iterable[Position]:
        """Connects, claims the task's partitions, and tells where they stand."""
        self._settings = self.settings_of(self.config)
        self._database = self._connect()
        self._task = task
        self._positions: PositionTable | None = None
        stored: list[Position] = []
        if self._settings.positions_table:
            self._positions = _positions(self._database, self._settings, task.pipeline, task.generation)
            self._positions.create()
            stored = self._positions.claim([compact_json(partition) for partition in task.partitions])
        self._writer = TableWriter(self._database, self._settings, self._positions)
        self._written = {position.partition: position for position in stored}
        self._reached: dict[str, Position] = {}
        self._is_begun = False
        return stored

    def partitions_changed(self, partitions: Sequence[Mapping[str, Any]]) -> None:
        """Claims partitions that have come; the engine learns their positions by the rows it may leave out."""
        if self._positions is not None:
            new = [text for partition in partitions if (text := compact_json(partition)) not in self._written]
            self._written |= {position.partition: position for position in self._positions.claim(new)}

    def write_batch(self, batch: Batch) -> list[RowError]:
        """Writes a batch in one transaction; rows that are in the database already are left out.

        A batch without a mark is a piece of one that was cut: were its rows visible before those that bring the
        position, they would come again after a crash. So the transaction stays open until a mark or a flush.
        """
        if self._positions is not None:
            new = self._positions.unclaimed(mark.position.partition for mark in batch.marks)
            if new:
                claimed = self._positions.claim(new, commit=not self._is_begun)
                self._written |= {position.partition: position for position in claimed}
        fresh, start = self._unwritten(batch)
        if start:
            self.filtered(start)
        self._reached |= {mark.position.partition: mark.position for mark in batch.marks}
        whole = bool(batch.marks) or self._positions is None
        errors = self._store(fresh, whole=whole) if fresh.num_rows else []
        return [replace(error, row=error.row + start) for error in errors]

    def flush(self, final: bool) -> None:
        """Stores the positions that moved without rows: a transaction for each of them would take longer than rows."""
        if self._reached or self._is_begun:
            self._store(None)

    def close(self) -> None:
        """Closes the connection."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def ensure_target(self, topic: str, schema: pa.Schema | None, dry_run: bool) -> Target:
        """Creates or widens the table for a schema of values; tells what it would do when asked only that."""
        settings = self.settings_of(self.config)
        wanted = _columns(schema, settings)
        if not wanted:
            return Target(table_name(topic, settings).sql)  # the records will tell
        with self._connect() as database:
            writer = TableWriter(database, settings, None)
            name, actions = writer.ensure(topic, wanted, [])
            if dry_run:
                database.rollback()
            else:
                database.commit()
        return Target(name.sql, tuple(actions))

    @classmethod
    def alter_offsets(
        cls,
        config: Any,
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
        validate_only: bool,
    ) -> bool:
        """Positions in the database win over the engine's, so an operator's change has to reach them."""
        settings = cls.settings_of(config)
        if not settings.positions_table or validate_only:
            return not settings.positions_table
        uri, _ = to_libpq(settings.url, settings.user, settings.password)
        with Database(uri) as database:
            table = _positions(database, settings, config.originals.get("name", ""), 0)
            table.create()
            table.alter(Position.of(partition, offset) for partition, offset in offsets)
        return True

    def _store(self, rows: Batch | None, *, whole: bool = True) -> list[RowError]:
        """Writes rows, and all positions reached up to their end; in one transaction with those before them."""
        if not whole:
            self._is_begun = True
            return self._writer.write(rows, commit=False)
        errors = self._writer.write(rows, self._reached.values())
        self._is_begun = False
        self._written |= self._reached
        self._reached = {}
        return errors

    def _connect(self) -> Database:
        settings = self.settings_of(self.config)
        uri, dropped = to_libpq(settings.url, settings.user, settings.password)
        if dropped:
            self.log.debug(f"properties of the Java driver without a meaning here: {', '.join(dropped)}")
        return Database(uri)

    def _unwritten(self, batch: Batch) -> tuple[Batch, int]:
        """Leaves out the rows at the front that a former stream wrote and the engine sends again.

        Only a batch of one Kafka partition can be cut so; in others the engine has gone back to the stored positions.
        """
        if self._positions is None or len(batch.marks) != 1 or batch.constants.first_offset is None:
            return batch, 0
        stored = self._written.get(batch.marks[0].position.partition)
        if stored is None:
            return batch, 0
        _, offset = parse_kafka_position(stored)
        start = min(max(0, (offset or 0) - batch.constants.first_offset), batch.num_rows)
        return (Batch.of(batch.slice(start, batch.num_rows - start)), start) if start else (batch, 0)


class ConfluentJdbcSink(_JdbcSink):
    """Writes records into tables of a database, exactly once: Confluent's JDBC sink."""

    class_name = "io.confluent.connect.jdbc.JdbcSinkConnector"
    aliases = ("JdbcSink", "JdbcSinkConnector")
    config_type = ConfluentConfig


class AivenJdbcSink(_JdbcSink):
    """Writes records into tables of a database, exactly once: Aiven's JDBC sink."""

    class_name = "io.aiven.connect.jdbc.JdbcSinkConnector"
    config_type = ConfluentConfig


class DebeziumJdbcSink(_JdbcSink):
    """Writes records, or change events, into tables of a database, exactly once: Debezium's JDBC sink."""

    class_name = "io.debezium.connector.jdbc.JdbcSinkConnector"
    config_type = DebeziumConfig


def _positions(database: Database, settings: Settings, pipeline: str, generation: int) -> PositionTable:
    schema, dot, table = settings.positions_table.rpartition(".")
    return PositionTable(database, TableName(schema if dot else None, table), pipeline, generation)


def _columns(schema: pa.Schema | None, settings: Settings) -> list[Column]:
    value = schema.field("value").type if schema is not None and "value" in schema.names else None
    fields = value if value is not None and pa.types.is_struct(value) else []
    return [
        Column(column_name(f.name, settings), column_type(f.type), f.nullable) for f in fields if settings.wants(f.name)
    ]
