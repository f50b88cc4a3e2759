"""The JSON_LINES encoding: one record per line, for quick plugins.

Keys and values are schemaless: they come as columns of JSON text. Going out, what JSON lacks is written as Kafka
Connect's JsonConverter does: bytes as base64, dates as days, times and timestamps as milliseconds; decimals as text.
"""

from __future__ import annotations

import base64
import datetime
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa

from wherry.contract.batch import (
    HEADERS,
    JSON_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    TOPIC,
    VALUE,
)
from wherry.contract.errors import ConnectorBugError

_TEXT_HEADERS: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS: Final = datetime.timedelta(milliseconds=1)


def batch_body(records: pa.RecordBatch) -> pa.Buffer:
    """Serializes the rows of a batch, one JSON object a line."""
    columns = {name: _cells(name, records.column(name)) for name in records.schema.names}
    names = [name for name in (KEY, VALUE, HEADERS, TIMESTAMP, TOPIC, PARTITION, OFFSET) if name in columns]
    lines = [
        orjson.dumps(dict(zip(names, row, strict=True)), default=_plain, option=orjson.OPT_NON_STR_KEYS)
        for row in zip(*(columns[name] for name in names), strict=True)
    ]
    return pa.py_buffer(b"\n".join([*lines, b""]) if lines else b"")


def read_batch(body: pa.Buffer, row_count: int) -> pa.RecordBatch:
    """Reads records.

    Raises:
        ConnectorBugError: A line isn't a JSON object with a record's members, or their number is not `row_count`.
    """
    lines = [line for line in body.to_pybytes().split(b"\n") if line and not line.isspace()]
    if len(lines) != row_count:
        raise _wrong(f"a frame says {row_count} rows and has {len(lines)} lines")
    rows = [_row(line, index) for index, line in enumerate(lines)]
    present = {name for row in rows for name in row}
    unknown = present - {KEY, VALUE, HEADERS, TIMESTAMP, TOPIC, PARTITION, OFFSET}
    if unknown:
        raise _wrong(f"a record has the member {min(unknown)}")
    arrays = {VALUE: _json_column([row.get(VALUE) for row in rows])}
    try:
        if KEY in present:
            arrays[KEY] = _json_column([row.get(KEY) for row in rows])
        if HEADERS in present:
            arrays[HEADERS] = pa.array([_headers(row.get(HEADERS)) for row in rows], _TEXT_HEADERS)
        if TIMESTAMP in present:
            arrays[TIMESTAMP] = pa.array([row.get(TIMESTAMP) for row in rows], pa.int64()).cast(TIMESTAMP_TYPE)
        for name, data_type in ((TOPIC, pa.string()), (PARTITION, pa.int32()), (OFFSET, pa.int64())):
            if name in present:
                arrays[name] = pa.array([row.get(name) for row in rows], data_type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _wrong(f"a record's headers, timestamp, topic or partition has the wrong type ({error})") from error
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _wrong(problem: str) -> ConnectorBugError:
    return ConnectorBugError(f"In the JSON_LINES encoding, {problem}.", reason="PROTOCOL")


def _row(line: bytes, index: int) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _wrong(f"line {index + 1} isn't JSON ({error})") from error
    if not isinstance(row, dict):
        raise _wrong(f"line {index + 1} isn't an object")
    return row


def _json_column(values: list[Any]) -> pa.Array:
    texts = [None if value is None else orjson.dumps(value).decode() for value in values]
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))


def _headers(value: Any) -> list[tuple[str, str | None]] | None:
    if value is None:
        return None
    pairs = value.items() if isinstance(value, dict) else [(item["name"], item.get("value")) for item in value]
    return [
        (name, item if item is None or isinstance(item, str) else orjson.dumps(item).decode()) for name, item in pairs
    ]


def _cells(name: str, array: pa.Array) -> list[Any]:
    if array.type == JSON_TYPE:
        return [None if text is None else orjson.Fragment(text) for text in array.storage.to_pylist()]
    if name == TIMESTAMP:
        return list(array.cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist())
    return [_plain_tree(value) for value in array.to_pylist()]


def _plain_tree(value: Any) -> Any:
    """Turns what orjson would write in its own way (dates) into what the encoding has."""
    if isinstance(value, dict):
        return {name: _plain_tree(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_tree(item) for item in value]
    return _plain(value) if isinstance(value, (bytes, datetime.date, datetime.time, Decimal)) else value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - _EPOCH) // _MS
    if isinstance(value, datetime.date):
        return value.toordinal() - _EPOCH.toordinal()
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return str(value)
