"""The COLUMNS encoding: Arrow arrays as plain little-endian buffers, for languages without Arrow.

Nothing that a peer sends is trusted: every buffer's length and every offset is checked before Arrow may follow it.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from wherry.connector.v1 import frame_pb2
from wherry.contract.batch import JSON_TYPE, TIMESTAMP_TYPE
from wherry.contract.errors import ConnectorBugError, SchemaError

_NESTING_MAX: Final = 32

# Type, and bits of a value for those of fixed width.
_FIXED: Final[dict[int, tuple[pa.DataType, int]]] = {
    frame_pb2.COLUMN_TYPE_BOOLEAN: (pa.bool_(), 1),
    frame_pb2.COLUMN_TYPE_INT8: (pa.int8(), 8),
    frame_pb2.COLUMN_TYPE_INT16: (pa.int16(), 16),
    frame_pb2.COLUMN_TYPE_INT32: (pa.int32(), 32),
    frame_pb2.COLUMN_TYPE_INT64: (pa.int64(), 64),
    frame_pb2.COLUMN_TYPE_FLOAT32: (pa.float32(), 32),
    frame_pb2.COLUMN_TYPE_FLOAT64: (pa.float64(), 64),
    frame_pb2.COLUMN_TYPE_TIMESTAMP_MS: (TIMESTAMP_TYPE, 64),
    frame_pb2.COLUMN_TYPE_DATE: (pa.date32(), 32),
    frame_pb2.COLUMN_TYPE_TIME_MS: (pa.time32("ms"), 32),
}
_VARIABLE: Final[dict[int, pa.DataType]] = {
    frame_pb2.COLUMN_TYPE_STRING: pa.string(),
    frame_pb2.COLUMN_TYPE_BYTES: pa.binary(),
    frame_pb2.COLUMN_TYPE_JSON: JSON_TYPE,
}
_NUMBERS: Final[dict[pa.DataType, int]] = {
    **{data_type: number for number, (data_type, _) in _FIXED.items()},
    **{data_type: number for number, data_type in _VARIABLE.items()},
    pa.null(): frame_pb2.COLUMN_TYPE_JSON,
}


def schema_body(schema: pa.Schema) -> pa.Buffer:
    """Serializes a schema as a Columns message with empty buffers.

    Raises:
        SchemaError: A column has a type that this encoding doesn't have.
    """
    columns = frame_pb2.Columns(columns=[_describe(field, field.name) for field in schema])
    return pa.py_buffer(columns.SerializeToString())


def batch_body(records: pa.RecordBatch) -> pa.Buffer:
    """Serializes the columns of a batch.

    Raises:
        SchemaError: A column has a type that this encoding doesn't have.
    """
    columns = [_write(field, array) for field, array in zip(records.schema, records.columns, strict=True)]
    return pa.py_buffer(frame_pb2.Columns(columns=columns).SerializeToString())


def read_schema(body: pa.Buffer) -> pa.Schema:
    """Reads the body of a SCHEMA frame.

    Raises:
        ConnectorBugError: It isn't one.
    """
    return pa.schema([_field(column, 0) for column in _parse(body)])


def read_batch(body: pa.Buffer, schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    """Reads the body of a BATCH frame.

    Raises:
        ConnectorBugError: It doesn't fit the schema or its own row count, or it points outside itself.
    """
    columns = _parse(body)
    if len(columns) != len(schema):
        raise _wrong(f"a batch has {len(columns)} columns, its schema {len(schema)}")
    arrays = [_read(column, field, row_count) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wrong(problem: str) -> ConnectorBugError:
    return ConnectorBugError(f"In the COLUMNS encoding, {problem}.", reason="PROTOCOL")


def _parse(body: pa.Buffer) -> list[Any]:
    try:
        message: frame_pb2.Columns = frame_pb2.Columns.FromString(body.to_pybytes())
    except Exception as error:
        raise _wrong(f"a body isn't a Columns message ({error})") from error
    return list(message.columns)


def _describe(field: pa.Field, path: str) -> frame_pb2.Column:
    metadata = {
        name.decode(errors="replace"): value.decode(errors="replace") for name, value in (field.metadata or {}).items()
    }
    kind, children = _kind(field.type, path), []
    if kind == frame_pb2.COLUMN_TYPE_STRUCT:
        children = [_describe(child, f"{path}.{child.name}") for child in field.type.fields]
    elif kind == frame_pb2.COLUMN_TYPE_LIST:
        children = [_describe(field.type.value_field, f"{path}[]")]
    return frame_pb2.Column(name=field.name, type=kind, nullable=field.nullable, metadata=metadata, children=children)


def _kind(data_type: pa.DataType, path: str) -> Any:
    if pa.types.is_struct(data_type):
        return frame_pb2.COLUMN_TYPE_STRUCT
    if pa.types.is_list(data_type):
        return frame_pb2.COLUMN_TYPE_LIST
    number = _NUMBERS.get(data_type)
    if number is None:
        raise SchemaError(
            f"{path} has the type {data_type}, which the COLUMNS encoding doesn't have; use ARROW_IPC.",
            reason="TYPE_NOT_IN_ENCODING",
        )
    return number


def _write(field: pa.Field, array: pa.Array) -> frame_pb2.Column:
    column = _describe(field, field.name)
    _fill(column, array)
    return column


def _fill(column: frame_pb2.Column, array: pa.Array) -> None:
    """Puts the buffers of an array into its description."""
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if len(array) and (array.offset or column.children or column.type in _VARIABLE):
        # Joining makes an array that starts at its buffers' start, with offsets from 0.
        array = pa.concat_arrays([array, array.slice(0, 0)]) if array.offset or _starts_late(array) else array
    rows = len(array)
    buffers = array.buffers()
    if array.null_count:
        column.validity = _bytes(buffers[0], (rows + 7) // 8)
    if column.type == frame_pb2.COLUMN_TYPE_STRUCT:
        for index, child in enumerate(column.children):
            _fill(child, array.field(index).slice(0, rows))
        return
    if column.type == frame_pb2.COLUMN_TYPE_LIST:
        column.offsets = _bytes(buffers[1], (rows + 1) * 4)
        _fill(column.children[0], array.values.slice(0, _last_offset(column.offsets)))
        return
    if column.type in _VARIABLE:
        column.offsets = _bytes(buffers[1], (rows + 1) * 4)
        column.data = _bytes(buffers[2], _last_offset(column.offsets))
        return
    column.data = _bytes(buffers[1], (rows * _FIXED[column.type][1] + 7) // 8)


def _starts_late(array: pa.Array) -> bool:
    if not (pa.types.is_list(array.type) or pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return False
    offsets = array.buffers()[1]
    return offsets is not None and int.from_bytes(offsets.slice(0, 4).to_pybytes(), "little") != 0


def _bytes(buffer: pa.Buffer | None, size: int) -> bytes:
    # Arrow leaves out the offsets of an empty array; the encoding has row count + 1 of them.
    return bytes(size) if buffer is None or buffer.size < size else buffer.slice(0, size).to_pybytes()


def _last_offset(offsets: bytes) -> int:
    return int.from_bytes(offsets[-4:], "little")


def _field(column: Any, depth: int) -> pa.Field:
    return pa.field(column.name, _type(column, depth), column.nullable, dict(column.metadata) or None)


def _type(column: Any, depth: int) -> pa.DataType:
    if depth > _NESTING_MAX:
        raise _wrong(f"a schema is nested deeper than {_NESTING_MAX}")
    if column.type in _FIXED:
        return _FIXED[column.type][0]
    if column.type in _VARIABLE:
        return _VARIABLE[column.type]
    if column.type == frame_pb2.COLUMN_TYPE_STRUCT:
        return pa.struct([_field(child, depth + 1) for child in column.children])
    if column.type == frame_pb2.COLUMN_TYPE_LIST and len(column.children) == 1:
        return pa.list_(_field(column.children[0], depth + 1))
    raise _wrong(f"the column {column.name} has the type {column.type} with {len(column.children)} children")


def _read(column: Any, field: pa.Field, rows: int) -> pa.Array:
    data_type, name = field.type, field.name
    if column.type and column.type != _kind(data_type, name):
        raise _wrong(f"the column {name} has another type than in its schema")
    validity = _buffer(column.validity, (rows + 7) // 8, f"validity of {name}") if column.validity else None
    if pa.types.is_struct(data_type):
        if len(column.children) != data_type.num_fields:
            raise _wrong(f"the column {name} has another number of children than in its schema")
        children = [_read(child, data_type.field(i), rows) for i, child in enumerate(column.children)]
        return pa.Array.from_buffers(data_type, rows, [validity], children=children)
    if pa.types.is_list(data_type):
        if len(column.children) != 1:
            raise _wrong(f"the list {name} must have one child")
        offsets = _offsets(column.offsets, rows, name)
        items = _read(column.children[0], data_type.value_field, _last_offset(column.offsets) if rows else 0)
        return _checked(pa.Array.from_buffers(data_type, rows, [validity, offsets], children=[items]), name)
    if column.type in _VARIABLE or data_type in (pa.string(), pa.binary(), JSON_TYPE):
        offsets = _offsets(column.offsets, rows, name)
        data = _buffer(column.data, _last_offset(column.offsets) if rows else 0, f"data of {name}")
        storage = pa.string() if data_type == JSON_TYPE else data_type
        array = _checked(pa.Array.from_buffers(storage, rows, [validity, offsets, data]), name)
        return pa.ExtensionArray.from_storage(JSON_TYPE, array) if data_type == JSON_TYPE else array
    bits = _FIXED[_kind(data_type, name)][1]
    data = _buffer(column.data, (rows * bits + 7) // 8, f"data of {name}")
    return pa.Array.from_buffers(data_type, rows, [validity, data])


def _offsets(data: bytes, rows: int, name: str) -> pa.Buffer:
    if not rows and not data:
        return pa.py_buffer(bytes(4))
    return _buffer(data, (rows + 1) * 4, f"offsets of {name}")


def _buffer(data: bytes, size: int, what: str) -> pa.Buffer:
    if size < 0 or len(data) < size:
        raise _wrong(f"the {what} has {len(data)} bytes; it needs {size}")
    return pa.py_buffer(data)


def _checked(array: pa.Array, name: str) -> pa.Array:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _wrong(f"the column {name} is damaged ({error})") from error
    return array
