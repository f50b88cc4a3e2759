"""Takes records out of a consumer's partitions by the compiled helper: straight into Arrow's buffers.

The consumer stays confluent_kafka's; only the queues of its partitions are read here. Its own queue, with errors,
logs and everything else that calls back, has to be polled by whoever owns it. See `worker/native/src/kafka.c`.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, TIMESTAMP_TYPE
from wherry.contract.errors import ConnectorBugError
from wherry.contract.kafka_clients import ClientValue
from wherry.contract.position import TopicPartition
from wherry.worker import native
from wherry.worker.endpoints.kafka_config import FETCH_BYTES, QUEUED_KBYTES

_log = logging.getLogger(__name__)

# Bounds of what waits to be read, and the least of them that a partition among very many still gets.
QUEUED: Final = "queued.max.messages.kbytes"
QUEUED_KBYTES_MIN: Final = 256
FETCHED: Final = "fetch.message.max.bytes"
FETCHED_BYTES_MIN: Final = 128 * 1024

_EVENT_TEXT_MAX: Final = 160
# Where the handle of librdkafka stands in a confluent_kafka client: right behind every Python object's head.
_HANDLE_AT: Final = object.__basicsize__
_POINTER_BYTES: Final = ctypes.sizeof(ctypes.c_void_p)


class _Event(ctypes.Structure):
    """`wherry_event_t`."""

    _fields_ = (
        ("partition", ctypes.c_int32),
        ("code", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("text", ctypes.c_char * _EVENT_TEXT_MAX),
    )


class _Taken(ctypes.Structure):
    """`wherry_taken_t`."""

    _fields_ = tuple(
        (name, ctypes.c_int32)
        for name in (
            "rows", "runs", "events", "value_nulls", "key_nulls", "timestamp_nulls", "headers", "header_value_nulls",
        )
    ) + tuple(
        (name, ctypes.c_int64) for name in ("value_bytes", "key_bytes", "header_name_bytes", "header_value_bytes")
    )  # fmt: skip


_COLUMNS: Final = (
    "value_offsets", "value_data", "value_validity", "key_offsets", "key_data", "key_validity", "timestamps",
    "timestamp_validity", "offsets", "header_counts", "header_name_offsets", "header_names", "header_value_offsets",
    "header_values", "header_validity",
)  # fmt: skip


class _Columns(ctypes.Structure):
    """`wherry_columns_t`."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in _COLUMNS)


@dataclass(frozen=True, slots=True)
class Event:
    """What a partition's queue held besides records: its end, or an error.

    Attributes:
        partition: The partition; None for what librdkafka tells of the consumer.
        code: librdkafka's code.
        offset: The offset; of no meaning where there is none.
        text: What librdkafka says.
    """

    partition: TopicPartition | None
    code: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of several partitions.

    Attributes:
        columns: value and timestamp, and key and headers where a record has one.
        offsets: Offset of each record.
        runs: Partition and number of rows, in their order.
    """

    columns: dict[str, pa.Array]
    offsets: Any
    runs: tuple[tuple[TopicPartition, int], ...]


class NativeQueues:
    """The queues of a consumer's partitions. Must be closed before the consumer is."""

    def __init__(self, library: Any, reader: int, partitions: Sequence[TopicPartition], consumer: Any) -> None:
        self._library = library
        self._reader: ctypes.c_void_p | None = ctypes.c_void_p(reader)
        self._partitions = tuple(partitions)
        self._consumer = consumer
        self._taken = _Taken()
        self._run_partition = ctypes.POINTER(ctypes.c_int32)()
        self._run_rows = ctypes.POINTER(ctypes.c_int32)()
        self._events = ctypes.POINTER(_Event)()

    def poll(self, timeout_s: float, rows_max: int, bytes_max: int) -> tuple[Rows | None, list[Event]]:
        """Waits for the first record or event, then takes what is there without waiting."""
        taken = self._taken
        failed = self._library.wherry_kafka_poll(
            self._reader,
            ctypes.c_int32(int(timeout_s * 1000)),
            ctypes.c_int32(rows_max),
            ctypes.c_int64(bytes_max),
            ctypes.byref(taken),
            ctypes.byref(self._run_partition),
            ctypes.byref(self._run_rows),
            ctypes.byref(self._events),
        )
        if failed:
            raise ConnectorBugError(f"{taken.rows} records hold more than a batch can: {taken.value_bytes} bytes.")
        events = [self._event(self._events[index]) for index in range(taken.events)]
        return (self._rows() if taken.rows else None), events

    def close(self) -> None:
        """Gives the queues back."""
        if self._reader is not None:
            self._library.wherry_kafka_close(self._reader)
            self._reader = None

    def _event(self, event: _Event) -> Event:
        text = bytes(event.text).decode("utf-8", "replace")
        partition = None if event.partition < 0 else self._partitions[event.partition]
        return Event(partition, int(event.code), int(event.offset), text)

    def _rows(self) -> Rows:
        taken = self._taken
        runs = tuple(
            (self._partitions[self._run_partition[index]], int(self._run_rows[index])) for index in range(taken.runs)
        )
        rows = int(taken.rows)
        buffers: dict[str, pa.Buffer] = {}
        _room_for_binary(buffers, "value", "value_offsets", "value_data", rows, taken.value_bytes, taken.value_nulls)
        if taken.key_nulls < rows:
            _room_for_binary(buffers, "key", "key_offsets", "key_data", rows, taken.key_bytes, taken.key_nulls)
        buffers["timestamps"] = pa.allocate_buffer(8 * rows)
        if taken.timestamp_nulls:
            buffers["timestamp_validity"] = _room_for_bits(rows)
        buffers["offsets"] = pa.allocate_buffer(8 * rows)
        if taken.headers:
            count = int(taken.headers)
            buffers["header_counts"] = pa.allocate_buffer(4 * (rows + 1))
            buffers["header_name_offsets"] = pa.allocate_buffer(4 * (count + 1))
            buffers["header_names"] = pa.allocate_buffer(taken.header_name_bytes)
            nulls = taken.header_value_nulls
            _room_for_binary(
                buffers, "header", "header_value_offsets", "header_values", count, taken.header_value_bytes, nulls
            )
        columns = _Columns(**{name: buffer.address for name, buffer in buffers.items()})
        self._library.wherry_kafka_fill(self._reader, ctypes.byref(columns))
        return Rows(_arrays(buffers, taken), np.frombuffer(buffers["offsets"], np.int64), runs)


def shares(values: Mapping[str, ClientValue], partitions: int) -> dict[str, ClientValue]:
    """Returns the settings that keep a consumer's memory the same when each partition has a queue of its own.

    librdkafka takes its bounds for the one queue of the consumer otherwise, and for each of many then.

    Args:
        values: The consumer's settings.
        partitions: How many partitions it reads.
    """
    shared: dict[str, ClientValue] = {}
    count = max(1, partitions)
    # A value that is no number is for librdkafka to refuse.
    with contextlib.suppress(ValueError):
        queued = int(values.get(QUEUED, QUEUED_KBYTES))
        shared[QUEUED] = min(queued, max(QUEUED_KBYTES_MIN, queued // count))
    with contextlib.suppress(ValueError):
        # A partition's queue may be exceeded by what is fetched at once.
        fetched = int(values.get(FETCHED, FETCH_BYTES))
        shared[FETCHED] = min(fetched, max(FETCHED_BYTES_MIN, QUEUED_KBYTES * 1024 // count))
    return shared


def open_queues(consumer: Any, client_id: str, partitions: Sequence[TopicPartition]) -> NativeQueues | None:
    """Takes the queues of partitions off a consumer that has no assignment yet; None where that can't be done."""
    library = native.library()
    if library is None or not partitions:
        return None
    path = librdkafka()
    handle = handle_of(consumer)
    if path is None or not handle:
        return None
    topics = (ctypes.c_char_p * len(partitions))(*(partition.topic.encode() for partition in partitions))
    numbers = (ctypes.c_int32 * len(partitions))(*(partition.partition for partition in partitions))
    library.wherry_kafka_open.restype = ctypes.c_void_p
    reader = library.wherry_kafka_open(
        path.encode(),
        ctypes.c_void_p(handle),
        f"{client_id}#consumer-".encode(),
        topics,
        numbers,
        ctypes.c_int32(len(partitions)),
    )
    if not reader:
        _log.warning("wherry-native can't read by this confluent_kafka's consumer; records are read by Python.")
        return None
    return NativeQueues(library, reader, partitions, consumer)


def handle_of(client: Any) -> int:
    """Returns a client's handle of librdkafka, or 0 where it doesn't look like one; the library looks closer."""
    if type(client).__basicsize__ < _HANDLE_AT + _POINTER_BYTES:
        return 0
    handle = ctypes.c_void_p.from_address(id(client) + _HANDLE_AT).value or 0
    return handle if handle % _POINTER_BYTES == 0 and _is_mapped(handle) else 0


def _mappings() -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/proc/self/maps").read_text().splitlines()
    return []


def _is_mapped(address: int) -> bool:
    for line in _mappings():
        begin, _, end = line.split(" ", 1)[0].partition("-")
        if int(begin, 16) <= address < int(end, 16):
            return True
    return False


def librdkafka() -> str | None:
    """Returns the path of the librdkafka that is loaded."""
    for line in _mappings():
        _, slash, path = line.partition("/")
        if "librdkafka" in path.rsplit("/", 1)[-1]:
            return slash + path
    return None


def _room_for_bits(rows: int) -> pa.Buffer:
    return pa.allocate_buffer((rows + 7) // 8)


def _room_for_binary(
    buffers: dict[str, pa.Buffer], name: str, offsets: str, data: str, rows: int, size: int, nulls: int
) -> None:
    buffers[offsets] = pa.allocate_buffer(4 * (rows + 1))
    buffers[data] = pa.allocate_buffer(size)
    if nulls:
        buffers[f"{name}_validity"] = _room_for_bits(rows)


def _arrays(buffers: dict[str, pa.Buffer], taken: Any) -> dict[str, pa.Array]:
    rows = int(taken.rows)
    columns = {
        "value": pa.Array.from_buffers(
            pa.binary(),
            rows,
            [buffers.get("value_validity"), buffers["value_offsets"], buffers["value_data"]],
            null_count=taken.value_nulls,
        )
    }
    if "key_offsets" in buffers:
        columns["key"] = pa.Array.from_buffers(
            pa.binary(),
            rows,
            [buffers.get("key_validity"), buffers["key_offsets"], buffers["key_data"]],
            null_count=taken.key_nulls,
        )
    if "header_counts" in buffers:
        columns["headers"] = _headers(buffers, taken)
    columns["timestamp"] = pa.Array.from_buffers(
        TIMESTAMP_TYPE,
        rows,
        [buffers.get("timestamp_validity"), buffers["timestamps"]],
        null_count=taken.timestamp_nulls,
    )
    return columns


def _headers(buffers: dict[str, pa.Buffer], taken: Any) -> pa.Array:
    count = int(taken.headers)
    names = pa.Array.from_buffers(
        pa.string(), count, [None, buffers["header_name_offsets"], buffers["header_names"]], null_count=0
    )
    values = pa.Array.from_buffers(
        pa.binary(),
        count,
        [buffers.get("header_validity"), buffers["header_value_offsets"], buffers["header_values"]],
        null_count=taken.header_value_nulls,
    )
    pairs = pa.Array.from_buffers(HEADERS_TYPE.value_type, count, [None], null_count=0, children=[names, values])
    return pa.Array.from_buffers(
        HEADERS_TYPE, int(taken.rows), [None, buffers["header_counts"]], null_count=0, children=[pairs]
    )
