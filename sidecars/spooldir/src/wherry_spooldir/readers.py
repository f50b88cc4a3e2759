"""Reads one split as Arrow record batches, format by format. Every batch is a run of whole records in file order."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import orjson
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry_spooldir.formats import BadFileError, Format, open_range
from wherry_spooldir.splits import Range

BLOCK_BYTES = 2 << 20
SAMPLE_BYTES = 4 << 20
RECORDS_PER_BATCH = 10_000

TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "int32": pa.int32(),
    "long": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "bytes": pa.binary(),
}
# What a column is taken for when nobody says: dates stay text, because guessing them wrong loses data.
GUESSED = (pa.int64(), pa.float64(), pa.bool_())


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How a CSV file is written."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    header: bool = True
    encoding: str = "utf8"
    null_texts: tuple[str, ...] = ("",)
    skip_lines: int = 0

    @property
    def splittable(self) -> bool:
        """Whether counting quotes finds record ends."""
        return self.escape is None and self.encoding.lower() in ("utf8", "utf-8", "ascii", "latin1", "iso-8859-1")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names and types of a CSV file, found once and used by all its splits."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    data_start: int
    """Where the first record begins; 0 in a compressed file, whose header is skipped by reading it."""


def csv_columns(path: Path, dialect: CsvDialect, declared: Mapping[str, str]) -> Columns:
    """Finds names and types of a CSV file from its first bytes.

    Args:
        path: The file.
        dialect: How it is written.
        declared: Types by column name that aren't to be guessed.

    Raises:
        BadFileError: The start of the file isn't CSV.
    """
    from pyarrow import csv

    with open_range(path) as file:
        sample = file.read(SAMPLE_BYTES)
    if not sample.strip():
        return Columns((), (), len(sample))
    whole = len(sample) < SAMPLE_BYTES
    cut = sample if whole else sample[: sample.rfind(b"\n") + 1]
    try:
        table = csv.read_csv(
            io.BytesIO(cut),
            csv.ReadOptions(
                autogenerate_column_names=not dialect.header, skip_rows=dialect.skip_lines, encoding=dialect.encoding
            ),
            _parse_options(dialect),
            csv.ConvertOptions(null_values=list(dialect.null_texts), strings_can_be_null=True, timestamp_parsers=[]),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise BadFileError(f"this is not CSV with delimiter {dialect.delimiter!r}: {_first_line(error)}") from None
    if len(set(table.schema.names)) < len(table.schema.names):
        raise BadFileError(f"two columns have the same name: {', '.join(table.schema.names)}")
    types = [
        declared.get(field.name) or _name_of(field.type if field.type in GUESSED else pa.string())
        for field in table.schema
    ]
    return Columns(tuple(table.schema.names), tuple(types), _header_bytes(sample, dialect))


def read_csv(
    path: Path, part: Range, dialect: CsvDialect, columns: Columns, *, first: bool, compressed: bool
) -> Iterator[pa.RecordBatch]:
    """Reads the records of a range.

    Raises:
        BadFileError: A record has too few or too many fields, or a value isn't of its column's type.
    """
    from pyarrow import csv

    if not columns.names:
        return
    skip = _header_lines(dialect) if compressed else 0
    start = max(part.start, columns.data_start) if first and not compressed else part.start
    with open_range(path, start, part.end) as file:
        try:
            if not compressed and start >= part.end:
                return
            reader = csv.open_csv(
                file,
                csv.ReadOptions(
                    column_names=list(columns.names), block_size=BLOCK_BYTES, skip_rows=skip, encoding=dialect.encoding
                ),
                _parse_options(dialect),
                csv.ConvertOptions(
                    column_types={n: TYPES[t] for n, t in zip(columns.names, columns.types, strict=True)},
                    null_values=list(dialect.null_texts),
                    strings_can_be_null=True,
                ),
            )
            yield from (batch for batch in reader if batch.num_rows)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "Empty CSV" in str(error):
                return
            raise BadFileError(f"{_first_line(error)} (counted from byte {start} of the file)") from None


def read_json_lines(path: Path, part: Range) -> Iterator[pa.Array]:
    """Reads JSON lines as they are: each is checked to be JSON and passed on unparsed.

    Raises:
        BadFileError: A line is not JSON.
    """
    with open_range(path, part.start, part.end) as file:
        texts: list[bytes] = []
        size = 0
        for number, line in enumerate(file, 1):
            if not (text := line.strip()):
                continue
            try:
                orjson.loads(text)
            except orjson.JSONDecodeError as error:
                raise BadFileError(f"line {number} after byte {part.start} is not JSON: {error}") from None
            texts.append(text)
            size += len(text)
            if size >= BLOCK_BYTES:
                yield _json_array(texts)
                texts, size = [], 0
        if texts:
            yield _json_array(texts)


def read_parquet(path: Path, part: Range) -> Iterator[pa.RecordBatch]:
    """Reads row groups of a Parquet file.

    Raises:
        BadFileError: The file is damaged.
    """
    import pyarrow.parquet as pq

    if part.start == part.end:
        return
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=RECORDS_PER_BATCH, row_groups=list(range(part.start, part.end)))
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFileError(f"the Parquet file is damaged: {_first_line(error)}") from None


def read_avro(path: Path, part: Range) -> Iterator[pa.RecordBatch]:
    """Reads the blocks of an Avro container whose sync marker comes after the start and not after the end.

    Raises:
        BadFileError: The file is no Avro container, or damaged.
    """
    import fastavro

    try:
        with path.open("rb") as file:
            header = fastavro.reader(file)
            header_bytes, marker = _avro_header(path, file.tell())
            start = len(header_bytes) if part.start == 0 else _after_marker(file, part.start, marker)
            if start is None:
                return
            schema = header.writer_schema
            file.seek(start)
            stream = _Joined(header_bytes, file)
            for block in fastavro.block_reader(cast(IO[bytes], stream)):
                if start + block.offset - len(header_bytes) >= part.end + len(marker):
                    return
                records = list(block)
                yield pa.RecordBatch.from_pylist(records, _arrow_schema(schema)) if records else pa.record_batch([], [])
    except (ValueError, EOFError, struct.error, pa.ArrowInvalid) as error:
        raise BadFileError(f"this is not an Avro container, or it is damaged: {_first_line(error)}") from None


def read(path: Path, kind: Format, part: Range) -> Iterator[pa.RecordBatch]:
    """Reads a split of a format that needs no more than the range."""
    return {Format.PARQUET: read_parquet, Format.AVRO: read_avro}[kind](path, part)


def _parse_options(dialect: CsvDialect) -> Any:
    from pyarrow import csv

    return csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote or False,
        escape_char=dialect.escape or False,
        newlines_in_values=True,
    )


def _header_lines(dialect: CsvDialect) -> int:
    return dialect.skip_lines + (1 if dialect.header else 0)


def _header_bytes(sample: bytes, dialect: CsvDialect) -> int:
    at = 0
    quote = (dialect.quote or "").encode()
    for _ in range(_header_lines(dialect)):
        end = at
        while True:
            end = sample.find(b"\n", end) + 1
            if end == 0:
                return len(sample)
            if not quote or sample.count(quote, at, end) % 2 == 0:
                break
        at = end
    return at


def _name_of(arrow: pa.DataType) -> str:
    return next(name for name, known in TYPES.items() if known == arrow)


def _json_array(texts: list[bytes]) -> pa.Array:
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.binary()).cast(pa.string()))


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _Joined(io.RawIOBase):
    """The header of a container, then the file from where it stands."""

    def __init__(self, header: bytes, file: IO[bytes]) -> None:
        self._header = io.BytesIO(header)
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._header.read(size)
        if len(data) < size:
            data += self._file.read(size - len(data))
        self._at += len(data)
        return data

    def tell(self) -> int:
        return self._at


def _avro_header(path: Path, after_header: int) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        data = file.read(after_header)
    return data, data[-16:]


def _after_marker(file: IO[bytes], start: int, marker: bytes) -> int | None:
    """Where the first block begins whose leading marker starts at or after a byte."""
    file.seek(start)
    at, tail = start, b""
    while block := file.read(BLOCK_BYTES):
        data = tail + block
        found = data.find(marker)
        if found >= 0:
            return at - len(tail) + found + len(marker)
        at += len(block)
        tail = data[-(len(marker) - 1) :]
    return None


def _arrow_schema(schema: Any) -> pa.Schema | None:
    """Arrow types where Avro's say more than the values do; None lets them be inferred."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadFileError("the Avro container holds values that are no records")
    fields = [pa.field(field["name"], _arrow_type(field["type"])) for field in schema["fields"]]
    return pa.schema(fields)


def _arrow_type(avro: Any) -> pa.DataType:
    if isinstance(avro, list):
        others = [kind for kind in avro if kind != "null"]
        if len(others) != 1:
            raise BadFileError(f"an Avro union of {others} has no column type")
        return _arrow_type(others[0])
    if isinstance(avro, str):
        return _primitive(avro)
    match avro.get("logicalType"), avro["type"]:
        case "date", _:
            return pa.date32()
        case ("timestamp-millis" | "timestamp-micros") as name, _:
            return pa.timestamp("ms" if name.endswith("millis") else "us", "UTC")
        case ("time-millis" | "time-micros") as name, _:
            return pa.time32("ms") if name.endswith("millis") else pa.time64("us")
        case "decimal", _:
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        case _, "record":
            return pa.struct([pa.field(field["name"], _arrow_type(field["type"])) for field in avro["fields"]])
        case _, "array":
            return pa.list_(_arrow_type(avro["items"]))
        case _, "map":
            return pa.map_(pa.string(), _arrow_type(avro["values"]))
        case _, "enum":
            return pa.string()
        case _, "fixed":
            return pa.binary()
        case _, kind:
            return _arrow_type(kind)


def _primitive(name: str) -> pa.DataType:
    types = {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
    }
    if name.rpartition(".")[2] not in types:
        raise BadFileError(f"Avro type {name} is not supported here")
    return types[name]
