"""JSON in an envelope: `{"schema":…,"payload":…}`.

Records of one producer carry the same schema text over and over. So the text up to the payload is parsed once, rows
that start with the same bytes form a run, and only their payloads are parsed, all at once. Rows of any other make go
one by one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.arrays import array_of
from wherry.contract.batch import JSON_TYPE
from wherry.contract.position import compact_json
from wherry.contract.schema import field_of, from_form, schema_of, to_form
from wherry.contract.schemaless import BAD_JSON, EXACT_DECODER, SPACE, loads, parse
from wherry.worker.convert import Converted, DataError, Failure, Run, json_limits
from wherry.worker.convert.json_forms import regular
from wherry.worker.convert.json_native import read_objects
from wherry.worker.convert.json_read import decoded, parse_json
from wherry.worker.convert.json_rows import MISSING, RowRules, connect_value, keep_null
from wherry.worker.convert.json_write import REQUIRED_NULL, WriteOptions, json_texts

# Schemas kept by their text; Kafka Connect's schemas.cache.size is 1000.
SCHEMAS_KNOWN_MAX: Final = 1_000
# Rows looked at first for the end of a run; then ever more.
WINDOW_ROWS_MIN: Final = 64
_HEAD: Final = '{"schema":'
_MIDDLE: Final = ',"payload":'
_TAIL: Final = b"}"
_NO_JSON: Final = "\0"
NOT_AN_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
# A value without a schema.
_SCHEMALESS: Final = pa.field("value", JSON_TYPE)


@dataclasses.dataclass(slots=True)
class _Reading:
    """A column under way: what it became so far, and the rows that failed."""

    column: pa.Array
    runs: list[tuple[pa.Field, pa.Array]] = dataclasses.field(default_factory=list)
    failed: dict[int, DataError] = dataclasses.field(default_factory=dict)


class EnvelopeReader:
    """Reads envelopes, or with `schema.content` bare payloads of one fixed schema."""

    def __init__(self, content: str, options: WriteOptions) -> None:
        self._fixed = self._fixed_field(content)
        self.rules = connect_value if options.replace_null_with_default else keep_null
        self._by_prefix: dict[bytes, pa.Field] = {}
        self._prefix_sizes: set[int] = set()
        self._by_schema: dict[str, pa.Field] = {}

    def read(self, column: pa.Array) -> Converted:
        """Converts a column of envelopes; null stays null and belongs to the run it stands in."""
        if self._fixed is not None:
            return _fixed(self._fixed, column, self.rules)
        reading = _Reading(column)
        start, rows = 0, len(column)
        while start < rows:
            rest = column.slice(start)
            prefix = self._prefix(rest)
            length = 0 if prefix is None else _run_length(rest, prefix)
            if prefix is None or not length:
                self._one(reading, start)
                length = 1
            else:
                self._run(reading, prefix, start, length)
            start += length
        failures = tuple(Failure(row, reading.failed[row]) for row in sorted(reading.failed))
        return Converted(merged_runs(reading.runs), failures)

    def envelope(self, data: bytes | None) -> tuple[pa.Field | None, Any]:
        """Takes one text apart, into the field of its schema and its payload.

        Raises:
            DataError: It is no JSON, or no envelope.
        """
        if self._fixed is None or data is None:
            return self._envelope(data)
        try:
            text = decoded(data)
            json_limits.check(text)
            return self._fixed, parse(text, exact=True) if text.strip(SPACE) else MISSING
        except ValueError:
            raise DataError(BAD_JSON, reason="BAD_JSON") from None

    def _run(self, reading: _Reading, prefix: bytes, start: int, length: int) -> None:
        """Converts rows that start with the same bytes, all at once but for those that are damaged."""
        converted = self._payloads(prefix, reading.column.slice(start, length))
        # What looks damaged may be an envelope with more members, or with something behind it: the row tells.
        odd = [failure.row for failure in converted.failures if failure.error.reason == "BAD_JSON"]
        if not odd:
            reading.failed.update({start + failure.row: failure.error for failure in converted.failures})
            reading.runs.append((converted.runs[0].field, converted.runs[0].column))
            return
        begin = 0
        for row in odd:
            if row > begin:
                self._run(reading, prefix, start + begin, row - begin)
            self._one(reading, start + row)
            begin = row + 1
        if begin < length:
            self._run(reading, prefix, start + begin, length - begin)

    def _payloads(self, prefix: bytes, rows: pa.Array) -> Converted:
        field = self._by_prefix[prefix]
        column = _read_natively(rows, field, len(prefix))
        if column is not None:
            return Converted((Run(field, column),))
        payloads = pc.binary_slice(rows, len(prefix), -1)
        try:
            texts = payloads.cast(pa.string())
        except pa.ArrowInvalid:
            # A row that is no UTF-8 becomes text that is no JSON.
            texts = pa.array([_text_of(payload) for payload in payloads.to_pylist()], pa.string())
        return parse_json(texts, field, self.rules, whole=True)

    def _one(self, reading: _Reading, row: int) -> None:
        """Converts one row by itself."""
        try:
            field, value = self._envelope(reading.column[row].as_py())
            if field is None:
                text = None if value is None else compact_json(value)
                array = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array([text], pa.string()))
                reading.runs.append((_SCHEMALESS, array))
            else:
                reading.runs.append((field, array_of([self.rules(field, value)], field.type)))
        except DataError as error:
            reading.failed[row] = error

    def _envelope(self, data: bytes | None) -> tuple[pa.Field | None, Any]:
        if data is None:
            return None, None
        try:
            text = decoded(data)
            json_limits.check(text)
            envelope = parse(text, exact=True) if text.strip(SPACE) else None
        except ValueError:
            raise DataError(BAD_JSON, reason="BAD_JSON") from None
        if not isinstance(envelope, dict) or set(envelope) != {"schema", "payload"}:
            raise DataError(NOT_AN_ENVELOPE, reason="BAD_ENVELOPE")
        schema = envelope["schema"]
        if schema is None:
            return None, loads(text, keep_halves=True)["payload"]
        return self._field(schema), envelope["payload"]

    def _field(self, schema: Any) -> pa.Field:
        key = json.dumps(schema, default=repr)
        field = self._by_schema.get(key)
        if field is None:
            field = field_of(regular(schema))
            if len(self._by_schema) >= SCHEMAS_KNOWN_MAX:
                self._by_schema.clear()
            self._by_schema[key] = field
        return field

    def _prefix(self, column: pa.Array) -> bytes | None:
        """Returns the bytes up to the payload of the first row that isn't null; None where it is of another make."""
        first: bytes | None = column[0].as_py()
        for size in self._prefix_sizes:
            if first is not None and first[:size] in self._by_prefix:
                return first[:size]
        data = next((value for value in (item.as_py() for item in column.slice(0, 100)) if value is not None), None)
        if data is None or not data.startswith(_HEAD.encode()):
            return None
        try:
            text = data.decode()
            schema, end = EXACT_DECODER.raw_decode(text, len(_HEAD))
            json_limits.check(text[len(_HEAD) : end], within=1)
        except (ValueError, RecursionError):
            return None
        if schema is None or not text.startswith(_MIDDLE, end):
            return None
        prefix: bytes = text[: end + len(_MIDDLE)].encode()
        try:
            field = self._field(schema)
        except DataError:
            return None
        if len(self._by_prefix) >= SCHEMAS_KNOWN_MAX:
            self._by_prefix.clear()
            self._prefix_sizes.clear()
        self._by_prefix[prefix] = field
        self._prefix_sizes.add(len(prefix))
        return prefix

    @staticmethod
    def _fixed_field(content: str) -> pa.Field | None:
        from wherry.contract.errors import ConfigError

        if not content.strip():
            return None
        try:
            schema = parse(content, exact=True)
            return None if schema is None else field_of(regular(schema))
        except (ValueError, DataError) as error:
            why = str(error) if isinstance(error, DataError) else f"it is no JSON: {error}"
            raise ConfigError(f"schema.content is no schema: {why}", key="schema.content") from None


class EnvelopeWriter:
    """Writes envelopes, also where a fixed schema reads bare payloads."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._field: pa.Field | None = None
        self._prefix = ""

    def write(self, field: pa.Field, column: pa.Array) -> Converted:
        """Converts a column; null stays null, a tombstone."""
        if pa.types.is_null(column.type):
            return Converted((Run.of(pa.nulls(len(column), pa.binary())),))
        if self._field is None or not self._field.equals(field, check_metadata=True):
            self._field, self._prefix = field, self._prefix_of(field)
        failed: list[int] = []
        if column.type == JSON_TYPE:
            texts = pc.fill_null(column.storage, "null")
        else:
            texts, failed = json_texts(field, column, self._options)
        closing = pa.scalar("}", pa.string())
        texts = pc.binary_join_element_wise(pa.scalar(self._prefix, pa.string()), texts, closing, "")
        if column.null_count:
            texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))
        data = texts.cast(pa.binary())
        if not failed:
            return Converted((Run.of(data),))
        bad = set(failed)
        kept = data.take(pa.array([row for row in range(len(data)) if row not in bad], pa.int64()))
        error = DataError(REQUIRED_NULL, reason="NOT_NULL")
        return Converted((Run.of(kept),), tuple(Failure(row, error) for row in failed))

    def _prefix_of(self, field: pa.Field) -> str:
        schema = None if field.type == JSON_TYPE else schema_of(field)
        if schema is not None and self._options.numeric_decimals:
            schema = to_form(from_form(schema), numeric_decimals=True)
        return f"{_HEAD}{compact_json(schema)}{_MIDDLE}"


def _run_length(column: pa.Array, prefix: bytes) -> int:
    """Returns how many rows from the first on have the prefix and end like an object, or are null."""
    start, rows = 0, WINDOW_ROWS_MIN
    while start < len(column):
        window = column.slice(start, rows)
        same = pc.and_(pc.starts_with(window, prefix), pc.ends_with(window, _TAIL))
        index = pc.index(pc.fill_null(same, True), False).as_py()
        if index >= 0:
            return start + int(index)
        # Where every row has a schema of its own, looking at all the rest each time would be quadratic.
        start, rows = start + len(window), rows * 4
    return len(column)


def _read_natively(rows: pa.Array, field: pa.Field, head: int) -> pa.Array | None:
    """Reads payloads where they stand between head and closing brace; None when that isn't for the compiled helper."""
    if not pa.types.is_struct(field.type):
        return None
    try:
        texts = rows.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    return read_objects(texts, field.type, head=head, tail=len(_TAIL))


def _text_of(data: bytes | None) -> str | None:
    """Returns the text of bytes, or a text that is no JSON where they are no UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def _decoded(data: bytes | None) -> str | None:
    """Returns the text of bytes, up to where they are damaged."""
    try:
        return None if data is None else decoded(data)
    except ValueError:
        return _NO_JSON


def _fixed(field: pa.Field, column: pa.Array, rules: RowRules) -> Converted:
    """Converts bare payloads of a fixed schema."""
    try:
        texts = column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([_decoded(data) for data in column.to_pylist()], pa.string())
    return parse_json(pc.utf8_trim(texts, SPACE), field, rules, empty_is_missing=True)


def merged_runs(runs: Sequence[tuple[pa.Field | None, pa.Array]]) -> tuple[Run, ...]:
    """Joins neighbours of one schema; rows that are null without a schema join what stands beside them."""
    merged: list[tuple[pa.Field, list[pa.Array]]] = []
    for field, array in runs:
        if field is None:
            field, array = _SCHEMALESS, pa.ExtensionArray.from_storage(JSON_TYPE, array)
        if merged and merged[-1][0].equals(field, check_metadata=True):
            merged[-1][1].append(array)
        elif merged and field is _SCHEMALESS and array.null_count == len(array):
            merged[-1][1].append(pa.nulls(len(array), merged[-1][0].type))
        elif (
            len(merged) == 1
            and merged[0][0] is _SCHEMALESS
            and all(part.null_count == len(part) for part in merged[0][1])
        ):
            nulls = [pa.nulls(len(part), field.type) for part in merged[0][1]]
            merged[0] = (field, [*nulls, array])
        else:
            merged.append((field, [array]))
    if not merged:
        return (Run(_SCHEMALESS, pa.ExtensionArray.from_storage(JSON_TYPE, pa.array([], pa.string()))),)
    return tuple(Run(field, parts[0] if len(parts) == 1 else pa.concat_arrays(parts)) for field, parts in merged)
