"""The flows: where their records come from, how one sees them arrive, and what was committed.

A flow has partitions, each with records numbered from 0. Record `n` of partition `p` reads `p-nnnnnnnnn`,
always as long as any other, so that sizes are counts.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import psycopg
from tests.support.rest import Rest
from tests.support.topics import TIMEOUT_S, create_topic

from wherry.coordinator.dev.postgres import LocalPostgres

PARTITIONS = 2
LINE_BYTES = len("0-000000000\n")
CONNECT_TIMEOUT_S = 5
LOOK_TIMEOUT_S = 2.0
LOCKED_S = 10.0
QUIET = {"log_level": 0}
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "part", "type": "int32", "optional": False},
        {"field": "number", "type": "int64", "optional": False},
    ],
}


class Flow(Protocol):
    """One connector at work."""

    name: str
    partitions: int
    exactly_once: bool

    def config(self) -> dict[str, str]:
        """Its configuration."""

    def feed(self, start: int, stop: int) -> None:
        """Hand over records `start` to `stop` of each partition."""

    def delivered(self) -> int:
        """How far the destination has come, cheaply; never falls."""

    def committed(self, rest: Rest) -> dict[int, int]:
        """The first record of each partition that is not committed."""

    def arrived(self) -> dict[int, list[int]]:
        """All record numbers at the destination, in the order of their arrival where it has one."""

    def close(self) -> None:
        """Let go of clients."""


def text(partition: int, number: int) -> str:
    """The text of a record."""
    return f"{partition}-{number:09d}"


def parse(record: bytes) -> tuple[int, int]:
    """Partition and number of a record."""
    assert len(record) == LINE_BYTES - 1, f"{record!r} is no record"
    return int(record[:1]), int(record[2:])


class FileToKafka:
    """FileStreamSource follows a file that grows."""

    partitions = 1
    exactly_once = False

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        from confluent_kafka import Consumer

        self.name = name
        self._bootstrap = bootstrap
        self._topic = create_topic(bootstrap, name, partitions=1)
        self._path = directory / f"{name}.in"
        self._path.touch()
        # An admin client's list_offsets never recovers from a restart of the broker (FENCED_LEADER_EPOCH); this does.
        self._looker = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **QUIET})
        self._delivered = 0

    def config(self) -> dict[str, str]:
        return {"connector.class": "FileStreamSource", "file": str(self._path), "topic": self._topic, "tasks.max": "1"}

    def feed(self, start: int, stop: int) -> None:
        with self._path.open("ab") as file:
            file.write("".join(f"{text(0, number)}\n" for number in range(start, stop)).encode())

    def delivered(self) -> int:
        from confluent_kafka import KafkaException, TopicPartition

        partition = TopicPartition(self._topic, 0)
        with contextlib.suppress(KafkaException):  # while the broker is away nothing arrives there
            self._delivered = self._looker.get_watermark_offsets(partition, timeout=LOOK_TIMEOUT_S, cached=False)[1]
        return self._delivered

    def committed(self, rest: Rest) -> dict[int, int]:
        positions = [offset["position"] for _, offset in rest.offsets(self.name) if offset is not None]
        assert all(position % LINE_BYTES == 0 for position in positions), f"{positions} lie within lines"
        return {0: max(positions, default=0) // LINE_BYTES}

    def arrived(self) -> dict[int, list[int]]:
        from tests.support.topics import end_offsets

        found: list[int] = []
        for value in _values(self._bootstrap, self._topic, sum(end_offsets(self._bootstrap, self._topic).values())):
            found.append(parse(value)[1])
        return {0: found}

    def close(self) -> None:
        self._looker.close()
        self._path.unlink()


class _FromKafka:
    """What the two sinks share: a topic that grows and a consumer group."""

    partitions = PARTITIONS

    def __init__(self, name: str, bootstrap: str) -> None:
        from confluent_kafka import Producer

        self.name = name
        self.topic = create_topic(bootstrap, name, partitions=PARTITIONS)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True, **QUIET}
        )

    def encoded(self, partition: int, number: int) -> bytes:
        return text(partition, number).encode()

    def feed(self, start: int, stop: int) -> None:
        for number, partition in itertools.product(range(start, stop), range(PARTITIONS)):
            while True:
                try:
                    self._producer.produce(self.topic, self.encoded(partition, number), partition=partition)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def committed(self, rest: Rest) -> dict[int, int]:
        offsets = {
            int(partition["kafka_partition"]): int(offset["kafka_offset"])
            for partition, offset in rest.offsets(self.name)
            if offset is not None
        }
        return {partition: offsets.get(partition, 0) for partition in range(PARTITIONS)}

    def close(self) -> None:
        self._producer.flush(TIMEOUT_S)


class KafkaToFile(_FromKafka):
    """FileStreamSink appends to a file."""

    exactly_once = False

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        super().__init__(name, bootstrap)
        self.path = directory / f"{name}.out"

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "FileStreamSink",
            "file": str(self.path),
            "topics": self.topic,
            "tasks.max": str(PARTITIONS),
        }

    def delivered(self) -> int:
        try:
            return self.path.stat().st_size // LINE_BYTES
        except FileNotFoundError:
            return 0

    def arrived(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            partition, number = parse(line)
            found[partition].append(number)
        return found


class KafkaToPostgres(_FromKafka):
    """The JDBC sink inserts into a table without a key, in which any duplicate would show."""

    exactly_once = True

    def __init__(self, name: str, bootstrap: str, postgres: LocalPostgres) -> None:
        super().__init__(name, bootstrap)
        self._postgres = postgres
        self.table = name.replace("-", "_")
        self._connection = psycopg.connect(postgres.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        self._connection.execute(f"CREATE TABLE {self.table} (part integer NOT NULL, number bigint NOT NULL)".encode())
        # Not unique: a duplicate must be counted here, not be refused.
        self._connection.execute(f"CREATE INDEX ON {self.table} (part, number)".encode())

    def encoded(self, partition: int, number: int) -> bytes:
        return b'{"part":%d,"number":%d}' % (partition, number)

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "topics": self.topic,
            "tasks.max": str(PARTITIONS),
            "connection.url": f"jdbc:postgresql://{self._postgres.host}:{self._postgres.port}/postgres",
            "connection.user": "postgres",
            "connection.password": "unused",
            "insert.mode": "insert",
            "pk.mode": "none",
            "auto.create": "false",
            "table.name.format": self.table,
            "key.converter": STRING,
            "value.converter": JSON,
            "value.converter.schemas.enable": "true",
            "value.converter.schema.content": json.dumps(SCHEMA),
        }

    def delivered(self) -> int:
        # Within a partition rows come in order, so the highest number is what has come, and the index knows it.
        query = f"SELECT coalesce(max(number) + 1, 0) FROM {self.table} WHERE part = %s"
        return sum(self._number(query, partition) for partition in range(PARTITIONS))

    def arrived(self) -> dict[int, list[int]]:
        query = f"SELECT number FROM {self.table} WHERE part = %s ORDER BY number"
        return {
            partition: [int(str(row[0])) for row in self._connection.execute(query.encode(), (partition,))]
            for partition in range(PARTITIONS)
        }

    def close(self) -> None:
        super().close()
        self._connection.execute(f"DROP TABLE {self.table}".encode())
        self._connection.close()

    def _number(self, query: str, partition: int) -> int:
        row = self._connection.execute(query.encode(), (partition,)).fetchone()
        assert row is not None
        return int(str(row[0]))


class KafkaToStaged(_FromKafka):
    """A sink in two phases: files that are staged, and then moved to where they count."""

    exactly_once = True

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        super().__init__(name, bootstrap)
        self._folder = directory / name
        for part in ("staged", "done"):
            (self._folder / part).mkdir(parents=True)
        self._read: set[str] = set()
        self._found: dict[int, list[int]] = {partition: [] for partition in range(self.partitions)}

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "wherry.test.StagingSink", "folder": str(self._folder), "topics": self.topic,
            "tasks.max": "2",
        }  # fmt: skip

    def delivered(self) -> int:
        for path in (self._folder / "done").iterdir():
            if path.name not in self._read:
                self._read.add(path.name)
                for line in path.read_bytes().splitlines():
                    partition, number = parse(line.partition(b":")[2])
                    self._found[partition].append(number)
        return sum(map(len, self._found.values()))

    def arrived(self) -> dict[int, list[int]]:
        self.delivered()
        # Files are moved in no order that the folder would tell; what is in them has one.
        return {partition: sorted(numbers) for partition, numbers in self._found.items()}


class KafkaToTable(_FromKafka):
    """A sink into a table of SQLite that keeps its positions beside the rows."""

    exactly_once = True

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        super().__init__(name, bootstrap)
        self._path = directory / f"{name}.sqlite"

    def encoded(self, partition: int, number: int) -> bytes:
        return b'{"part":%d,"number":%d}' % (partition, number)

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "wherry.table.TableSink", "database": str(self._path), "table.name.format": "seen",
            "topics": self.topic, "tasks.max": "2", "key.converter": STRING, "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }  # fmt: skip

    def delivered(self) -> int:
        return int(self._rows("SELECT count(*) FROM seen")[0][0]) if self._path.exists() else 0

    def arrived(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {partition: [] for partition in range(self.partitions)}
        for partition, number in self._rows("SELECT part, number FROM seen ORDER BY rowid"):
            found[partition].append(number)
        return found

    def _rows(self, query: str) -> list[Any]:
        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=LOCKED_S)
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):  # it is made with the first rows
                return [(0,)]
            raise
        finally:
            connection.close()


def _values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read the first `count` records of a topic's only partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            messages = consumer.consume(100_000, 0.5)
            found += [message.value() or b"" for message in messages if message.error() is None]
    finally:
        consumer.close()
    assert len(found) == count, f"{topic} has {count} records, and {len(found)} of them could be read"
    return found


def totals(flow: Flow, records: int) -> Mapping[int, int]:
    """How many records each partition of a flow gets."""
    return dict.fromkeys(range(flow.partitions), records // flow.partitions)
