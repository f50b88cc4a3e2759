"""Hands Arrow columns to a producer by the compiled helper, without a Python object for each record.

The producer stays confluent_kafka's, which flushes it, ends its transactions and serves what calls back. Of records
that are produced here it tells nobody that they failed: the helper notices it, and whoever writes asks for it after
each flush. See `worker/native/src/produce.c`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from wherry.contract.kafka_clients import ClientValue
from wherry.worker import native
from wherry.worker.endpoints.kafka_native import handle_of, librdkafka

PLUGINS: Final = "plugin.library.paths"
# What librdkafka parts paths with.
_SEPARATOR: Final = ";"
# An idempotent producer has five requests under way for each partition, of batches of so many bytes and rows. With one
# batch less nothing waits for its turn to be sent.
WINDOW_BATCHES: Final = 4
BATCH_BYTES: Final = 1_000_000
BATCH_ROWS: Final = 10_000
_NANOSECONDS: Final = 1_000_000_000
_Pointer = ctypes.c_void_p


class _Binary(ctypes.Structure):
    """`wherry_binary_t`."""

    _fields_ = (("offsets", _Pointer), ("data", _Pointer), ("validity", _Pointer), ("offset", ctypes.c_int64))


class _Produced(ctypes.Structure):
    """`wherry_produced_t`."""

    _fields_ = (
        ("topic", ctypes.c_char_p), ("values", ctypes.POINTER(_Binary)), ("keys", ctypes.POINTER(_Binary)),
        ("timestamps", _Pointer), ("timestamp", ctypes.c_int64), ("partitions", _Pointer), ("rows", ctypes.c_int32),
    )  # fmt: skip


class _Failure(ctypes.Structure):
    """The head of `failure_t`; topic, value and key follow."""

    _fields_ = (
        ("next", _Pointer), ("code", ctypes.c_int32), ("topic_size", ctypes.c_int32), ("value_size", ctypes.c_int64),
        ("key_size", ctypes.c_int64),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that the brokers did not take, and librdkafka's code of the reason."""

    code: int
    topic: str
    value: bytes | None
    key: bytes | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one topic.

    Attributes:
        topic: Where they go.
        values: Their values, of type binary.
        keys: Their keys, of type binary; None where no row has one.
        timestamp: Time of all of them in ms; 0 is now.
    """

    topic: str
    values: pa.Array
    keys: pa.Array | None
    timestamp: int


def plugin(values: Mapping[str, ClientValue]) -> dict[str, ClientValue]:
    """Returns the setting by which a producer that is about to be made can be used here; empty where it can't be."""
    library, path = native.library(), librdkafka()
    if library is None or path is None or PLUGINS in values or _SEPARATOR in library._name:
        return {}
    return {PLUGINS: library._name} if library.wherry_producer_bind(path.encode()) else {}


def open_producer(producer: Any) -> NativeProducer | None:
    """Opens a producer that was made with `plugin`; None for any other."""
    library, handle = native.library(), handle_of(producer)
    if library is None or not handle:
        return None
    library.wherry_producer_find.restype = _Pointer
    found = library.wherry_producer_find(_Pointer(handle))
    return NativeProducer(library, found, producer) if found else None


class NativeProducer:
    """A way into a producer, which lives as long as this does."""

    def __init__(self, library: Any, found: int, producer: Any) -> None:
        self._library = library
        self._found = _Pointer(found)
        self._producer = producer
        library.wherry_producer_failures.restype = ctypes.c_int64
        library.wherry_producer_failure.restype = ctypes.POINTER(_Failure)

    def bound(self, values: Mapping[str, ClientValue]) -> None:
        """Has rows wait outside of the producer's queue while all that it may have under way is.

        Args:
            values: The producer's settings.
        """
        if str(values.get("enable.idempotence", "")).lower() != "true":
            return
        size, rows = _number(values, "batch.size", BATCH_BYTES), _number(values, "batch.num.messages", BATCH_ROWS)
        self._library.wherry_producer_window(
            self._found, ctypes.c_int64(WINDOW_BATCHES * size), ctypes.c_int64(WINDOW_BATCHES * rows)
        )

    def room(self, wait_s: float) -> bool:
        """Waits until there is room for more rows; False when there was none in time."""
        return bool(self._library.wherry_producer_room(self._found, _nanoseconds(wait_s)))

    def produce(self, rows: Rows, start: int, wait_s: float, *, bounded: bool = True) -> tuple[int, int]:
        """Hands over rows from `start` on, until one is refused, or until there was no room for one for so long.

        Args:
            rows: The rows.
            start: Index of the first.
            wait_s: How long to wait for room at a time.
            bounded: Whether to go by what may be under way; otherwise the queue takes what it can.

        Returns:
            The row it has stopped at, and librdkafka's code of the reason; the number of rows and 0 when all are
            handed over.
        """
        values = _binary(rows.values)
        keys = None if rows.keys is None else _binary(rows.keys)
        produced = _Produced(
            topic=rows.topic.encode(),
            values=ctypes.pointer(values),
            keys=None if keys is None else ctypes.pointer(keys),
            timestamp=rows.timestamp,
            rows=len(rows.values),
        )
        stopped = ctypes.c_int32()
        code = self._library.wherry_produce(
            self._found,
            ctypes.byref(produced),
            ctypes.c_int32(start),
            _nanoseconds(wait_s),
            ctypes.c_int32(bounded),
            ctypes.byref(stopped),
        )
        return stopped.value, int(code)

    def failed(self) -> int:
        """Tells how many records have failed since this was asked last."""
        return int(self._library.wherry_producer_failures(self._found))

    def failures(self) -> Iterator[Failure]:
        """Takes the records that were kept of those that failed."""
        while taken := self._library.wherry_producer_failure(self._found):
            try:
                yield _failure(taken)
            finally:
                self._library.wherry_failure_free(taken)


def takes(rows: Rows) -> bool:
    """Whether rows are laid out so that they can be handed over, and their topic's name is one that C can read."""
    columns = [rows.values] if rows.keys is None else [rows.values, rows.keys]
    return "\0" not in rows.topic and all(column.type == pa.binary() for column in columns)


def _number(values: Mapping[str, ClientValue], key: str, default: int) -> int:
    try:
        return max(1, int(values.get(key, default)))
    except ValueError:
        return default


def _nanoseconds(seconds: float) -> ctypes.c_int64:
    return ctypes.c_int64(int(seconds * _NANOSECONDS))


def _binary(column: pa.Array) -> _Binary:
    validity, offsets, data = column.buffers()
    first = 0 if offsets is None else offsets.address + 4 * column.offset
    return _Binary(
        offsets=first,
        data=None if data is None else data.address,
        validity=None if validity is None or not column.null_count else validity.address,
        offset=column.offset,
    )


def _failure(taken: Any) -> Failure:
    head = taken.contents
    place = ctypes.addressof(head) + ctypes.sizeof(_Failure)
    parts: list[bytes | None] = []
    for size in (head.topic_size, head.value_size, head.key_size):
        parts.append(ctypes.string_at(place, size) if size >= 0 else None)
        place += max(0, size)
    topic, value, key = parts
    return Failure(int(head.code), (topic or b"").decode("utf-8", "replace"), value, key)
