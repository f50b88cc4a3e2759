"""JSON text into typed columns: a vectorised parser where it provably gives the exact answer, else row by row.

The proof: every text is an object on a line of its own, or is wrapped as `{"v":TEXT}`, so that each line gives at least
one row or an error; as many rows as lines then means exactly one value per line. pyarrow's parser refuses what it can't
take as declared (wrong kinds, fractions for integers, overflow, members given twice, damaged text). What it alone would
let pass (NaN and Infinity, line feeds inside a text) is looked for in the bytes. A batch that fails is taken apart
around the odd rows, so that a few of them cost little. Before all that the compiled helper is asked, where it is there.

Two sets of rules for the row-wise way: Kafka Connect's, where a wrong kind becomes 0 or null (reference behaviour of
its JsonConverter), and strict ones for a typed sink, where it is an error of the row.
"""

from __future__ import annotations

import codecs
import dataclasses
import json
import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from wherry.contract.arrays import array_of, as_type, cast
from wherry.contract.schema import DEFAULT
from wherry.contract.schemaless import BAD_JSON, DECODER, SPACE, parse
from wherry.worker.convert import Converted, DataError, Failure, Run, json_limits
from wherry.worker.convert.json_native import all_sound, read_objects
from wherry.worker.convert.json_rows import MISSING, RowRules, strict_value

_OPEN: Final = pa.scalar('{"v":', pa.string())
_CLOSE: Final = pa.scalar("}\n", pa.string())
_LINE_END: Final = pa.scalar("\n", pa.string())
_EMPTY: Final = pa.scalar("", pa.string())
_NULL: Final = "null"
_LINE_FEED: Final = 0x0A
# Words and the pair of bytes in them that is rare in other text.
_FOREIGN_WORDS: Final = ((b"aN", b"NaN"), (b"nf", b"Infinity"))
# Below this many rows the row-wise way is no slower than another try.
BISECT_ROWS_MIN: Final = 32
BLOCK_SLACK: Final = 64
# Odd rows of a column that are gone around one by one; with more of them, halves are tried.
HINTS_MAX: Final = 64
_ROW_TOLD: Final = re.compile(r" in row (\d+)$")
# Read as declared by pyarrow, with nothing left to decide.
_EXACT_TYPES: Final = frozenset({
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(),
})  # fmt: skip

_DAY_MS: Final = 86_400_000


def check_json(texts: pa.Array) -> bool:
    """Whether every text is provably one JSON value."""
    if all_sound(texts):
        return True
    try:
        return _read_objects(texts, pa.schema([pa.field("none", pa.null())])) is not None
    except _OddRowError:
        return False


def parse_json(
    texts: pa.Array,
    field: pa.Field,
    rules: RowRules = strict_value,
    *,
    whole: bool = False,
    empty_is_missing: bool = False,
) -> Converted:
    """Parses JSON texts into the type of a field.

    Args:
        texts: The texts; null stays null.
        field: Type and nullability wanted.
        rules: How one parsed value becomes a value of the field; raises DataError when it can't.
        whole: Whether nothing may follow a value; otherwise it is ignored, as in Kafka Connect.
        empty_is_missing: Whether an empty text is `MISSING` to the rules; otherwise it is no JSON.

    Returns:
        One run, and the rows that failed.
    """
    storage = _storage(field.type)
    arrays: list[pa.Array] = []
    failures: list[Failure] = []
    _Parsing(field, storage, rules, whole, empty_is_missing, arrays, failures).parse(texts, 0)
    column = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays or [pa.array([], field.type)])
    return Converted((Run(field, column),), tuple(failures))


def read_exact(texts: pa.Array, wanted: pa.StructType) -> pa.StructArray | None:
    """Parses texts that are objects of no other members than these; None when it can't be proven that it is exact.

    Members that are missing become null; whether there are any is for the caller to know.
    """
    try:
        table = _read(pc.binary_join_element_wise(texts, _EMPTY, _LINE_END), pa.schema(list(wanted)), "error")
    except _OddRowError:
        return None
    if table is None:
        return None
    columns = [_one_chunk(column) for column in table.columns]
    return as_type(pa.StructArray.from_arrays(columns, fields=list(wanted)), wanted, _plain)


def normal_text(data: bytes) -> str | None:
    """Returns the text of one JSON value, of which nothing but the value is kept; None for null.

    Raises:
        ValueError: It is no JSON.
    """
    text = decoded(data)
    if not text.strip(SPACE):
        return None
    json_limits.check(text)
    try:
        DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        value = parse(text)
        return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return None if text.strip(SPACE) == _NULL else text


_DAMAGED: Final = "\0"


def decoded(data: bytes) -> str:
    """Returns the text of bytes that hold JSON; UTF-16 and UTF-32 are told as Jackson tells them.

    Raises:
        ValueError: They are no text. Damage behind the first value is never looked at, so bytes of UTF-8 end where they
            are damaged, with what no JSON can hold.
    """
    if data == codecs.BOM_UTF8:
        raise ValueError("a mark, and nothing behind it")
    try:
        return data.decode(_encoding_of(data))
    except UnicodeDecodeError as error:
        if error.encoding != "utf-8":
            raise
        return error.object[: error.start].decode() + _DAMAGED


def _encoding_of(data: bytes) -> str:
    """UTF-16 and UTF-32 are told by their zero bytes, as Jackson does."""
    return json.detect_encoding(data) if b"\0" in data[:4] else "utf-8-sig"


class _OddRowError(Exception):
    """The vectorised parser stumbled over a row and says which."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@dataclasses.dataclass(slots=True)
class _Parsing:
    """One column under way: what is wanted, and what came of it so far."""

    field: pa.Field
    storage: pa.DataType | None
    rules: RowRules
    whole: bool
    empty_is_missing: bool
    arrays: list[pa.Array]
    failures: list[Failure]
    hints_left: int = HINTS_MAX

    def parse(self, texts: pa.Array, start: int) -> None:
        """Parses a run of rows at once, around odd rows, or in halves.

        Args:
            texts: The rows.
            start: Index of the first of them in the whole column.
        """
        while self.storage is not None and len(texts):
            try:
                column = _fast(texts, self.field, self.storage)
            except _OddRowError as odd:
                if self.hints_left and odd.row < len(texts):
                    self.hints_left -= 1
                    self.parse(texts.slice(0, odd.row), start)
                    self._row_by_row(texts.slice(odd.row, 1), start + odd.row)
                    start += odd.row + 1
                    texts = texts.slice(odd.row + 1)
                    continue
                column = None
            if column is not None:
                self.arrays.append(column)
                return
            if len(texts) <= BISECT_ROWS_MIN:
                break
            middle = len(texts) // 2
            self.parse(texts.slice(0, middle), start)
            start += middle
            texts = texts.slice(middle)
        self._row_by_row(texts, start)

    def _row_by_row(self, texts: pa.Array, start: int) -> None:
        values = []
        for row, text in enumerate(texts.to_pylist(), start):
            try:
                values.append(None if text is None else self.rules(self.field, self._value(text)))
            except DataError as error:
                self.failures.append(Failure(row, error))
        self.arrays.append(array_of(values, self.field.type))

    def _value(self, text: str) -> Any:
        if self.empty_is_missing and not text:
            return MISSING
        try:
            # Only of an envelope's payload nothing may follow, and it lies within the envelope.
            json_limits.check(text, within=int(self.whole))
            return parse(text, whole=self.whole, exact=True)
        except ValueError:
            raise DataError(BAD_JSON, reason="BAD_JSON") from None


def _fast(texts: pa.Array, field: pa.Field, storage: pa.DataType) -> pa.Array | None:
    """Parses all rows at once; None when it can't be proven that this gives the exact answer.

    Raises:
        _OddRowError: It can't, because of this row.
    """
    if pa.types.is_struct(field.type):
        column = read_objects(texts, field.type)
        if column is not None:
            return column
    column = _objects(texts, storage) if pa.types.is_struct(storage) else _values(texts, storage)
    if column is None or not _sound(field, column):
        return None
    if column.null_count > texts.null_count and _null_matters(field):
        return None
    return as_type(column, field.type, _plain)


def _objects(texts: pa.Array, storage: pa.DataType) -> pa.Array | None:
    """Parses texts that are objects as they are."""
    table = _read_objects(texts, pa.schema(list(storage)))
    if table is None:
        return None
    columns = [_one_chunk(column) for column in table.columns]
    mask = texts.is_null() if texts.null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(storage), mask=mask)


def _values(texts: pa.Array, storage: pa.DataType) -> pa.Array | None:
    """Parses other texts inside an object of one member; a second member is an error."""
    filled = pc.fill_null(texts, _NULL) if texts.null_count else texts
    lines = pc.binary_join_element_wise(_OPEN, filled, _CLOSE, _EMPTY)
    table = _read(lines, pa.schema([pa.field("v", storage)]), "error")
    return None if table is None else _one_chunk(table.column("v"))


def _read_objects(texts: pa.Array, schema: pa.Schema) -> pa.Table | None:
    filled = pc.fill_null(texts, "{}") if texts.null_count else texts
    # A text that starts an object gives at least one row, or an error; so as many rows as texts is one for each.
    if not pc.all(pc.starts_with(filled, "{")).as_py():
        filled = pc.utf8_ltrim(filled, SPACE)
        if not pc.all(pc.starts_with(filled, "{")).as_py():
            return None
    return _read(pc.binary_join_element_wise(filled, _EMPTY, _LINE_END), schema, "ignore")


def _read(lines: pa.Array, schema: pa.Schema, unexpected: str) -> pa.Table | None:
    rows = len(lines)
    if not rows:
        return schema.empty_table()
    data = _data_of(lines)
    octets = np.frombuffer(data, np.uint8)
    if _suspicious(data, octets, rows) or json_limits.may_exceed(lines, octets):
        return None
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=data.size + BLOCK_SLACK),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
    except pa.ArrowInvalid as error:
        odd = _ROW_TOLD.search(str(error))
        if odd is not None:
            raise _OddRowError(int(odd[1])) from None
        return None
    except (pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return table if table.num_rows == rows else None


def _suspicious(data: pa.Buffer, octets: npt.NDArray[np.uint8], rows: int) -> bool:
    """Whether the bytes hold what pyarrow's parser takes and JSON doesn't: NaN, Infinity, a line feed inside a text."""
    if np.count_nonzero(octets == _LINE_FEED) != rows:
        return True
    before, after = octets[:-1], octets[1:]
    # Two bytes are looked for at the speed of memory; only where they are is it worth to look closely.
    return any(
        ((before == pair[0]) & (after == pair[1])).any() and word in data.to_pybytes() for pair, word in _FOREIGN_WORDS
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _data_of(lines: pa.Array) -> pa.Buffer:
    """Returns the buffer of the characters of a column, which is known not to be a slice."""
    buffer = lines.buffers()[2]
    end = int(pc.sum(pc.binary_length(lines)).as_py())
    return buffer.slice(0, end)


def _storage(data_type: pa.DataType) -> pa.DataType | None:
    """Returns the type that pyarrow parses into and `as_type` turns into the type wanted; None without a fast way."""
    if data_type in _EXACT_TYPES:
        return data_type
    if pa.types.is_date32(data_type) or data_type == pa.time32("ms"):
        return pa.int32()
    if pa.types.is_timestamp(data_type) and data_type.unit == "ms":
        return pa.int64()
    if pa.types.is_struct(data_type):
        children = [(child.name, _storage(child.type)) for child in data_type]
        names = [name for name, _ in children]
        # Arrow makes no rows of a struct without fields from its (no) columns.
        if not children or any(child is None for _, child in children) or len(set(names)) != len(names):
            return None
        return pa.struct([pa.field(name, child) for name, child in children])
    if pa.types.is_list(data_type):
        item = _storage(data_type.value_type)
        return None if item is None else pa.list_(item)
    return None


def _sound(field: pa.Field, column: pa.Array) -> bool:
    """Whether nothing below is null that must not be or has a default to take its place, and every time is of a day."""
    data_type = field.type
    if pa.types.is_struct(data_type):
        for index, child in enumerate(data_type):
            values = column.field(index)
            if values.null_count:
                inherited = column.null_count and pc.sum(pc.and_(values.is_null(), column.is_valid())).as_py() == 0
                if _null_matters(child) and not inherited:
                    return False
            if not _sound(child, values):
                return False
    elif pa.types.is_list(data_type):
        items = column.flatten()
        if items.null_count and _null_matters(data_type.value_field):
            return False
        return _sound(data_type.value_field, items)
    elif data_type == pa.time32("ms"):
        bounds = pc.min_max(column).as_py()
        return bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] < _DAY_MS)
    return True


def _null_matters(field: pa.Field) -> bool:
    return not field.nullable or bool(field.metadata and DEFAULT in field.metadata)


def _plain(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Parsed storage as the type wanted."""
    # Connect reads -0.0 as 0.0; adding zero changes nothing else.
    return pc.add(column, pa.scalar(0.0, data_type)) if pa.types.is_floating(data_type) else cast(column, data_type)
