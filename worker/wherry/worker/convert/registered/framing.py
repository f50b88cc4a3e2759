"""What the converters of a schema registry have in common: the framing, and columns cut by the id of their schema.

Rows of one id are read together, wherever they stand, and put back in their order; runs end where the Connect schema
changes. Rows that can't be framed or read are failures, and nobody else's.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import Schema
from wherry.contract.schema import from_field
from wherry.worker.convert import Converted, DataError, Failure, Run
from wherry.worker.convert.json_schema import merged_runs
from wherry.worker.convert.registered.client import Known, Registered, Registry, RegistrySettings

HEAD_SIZE: Final = 5
_MAGIC: Final = 0
_HEAD: Final = struct.Struct(">BI")
_EMPTY: Final = pa.scalar(b"", pa.binary())


class PayloadReader(Protocol):
    """Reads payloads of one schema."""

    field: pa.Field

    def read(self, payloads: pa.Array) -> Converted:
        """Reads a column without nulls into one run."""


# Writes a column without nulls; raises DataError where any of it can't be.
PayloadWriter = Callable[[pa.Array], pa.Array]


class Format(Protocol):
    """What differs between Avro, Protobuf and JSON Schema."""

    kind: ClassVar[str]
    word: ClassVar[str]

    def __init__(self, config: Mapping[str, str]) -> None:
        """Takes the settings of a converter, without its prefix."""

    def reader(self, schema: Registered) -> PayloadReader:
        """Makes the reader of a schema."""

    def schema_text(self, schema: Schema) -> str:
        """Returns the text of the schema that records of a Connect schema get."""

    def writer(self, schema: Registered, field: pa.Field) -> PayloadWriter:
        """Makes the writer of records with a schema of the registry."""


class RegisteredConverter:
    """A converter over a schema registry."""

    class_name: ClassVar[str]
    format_type: ClassVar[type[Format]]

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        self._registry = Registry(RegistrySettings.of(config, is_key=is_key))
        self._format = self.format_type(config)
        self._readers: Known[tuple[int, str], PayloadReader] = Known()
        self._writers: Known[tuple[str, bytes], tuple[bytes, PayloadWriter]] = Known()

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`.

        Raises:
            TransientError: The registry doesn't answer now.
        """
        heads = pc.binary_slice(column, 0, HEAD_SIZE).dictionary_encode()
        groups = [self._group(topic, head, number, heads, column) for number, head in enumerate(_heads(heads))]
        failures = [failure for group in groups for failure in group.failures]
        failures.sort(key=lambda failure: failure.row)
        if len(groups) == 1 and not heads.null_count and groups[0].field is not None:
            return Converted((Run(groups[0].field, groups[0].column),), tuple(failures))
        bad = {failure.row for failure in failures}
        return Converted(_in_order(groups, heads, bad), tuple(failures))

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`.

        Raises:
            TransientError: The registry doesn't answer now.
        """
        if pa.types.is_null(column.type) or column.null_count == len(column):
            return Converted((Run.of(pa.nulls(len(column), pa.binary())),))
        present = column.drop_null() if column.null_count else column
        failed: dict[int, DataError] = {}
        try:
            head, write = self._writer(topic, field)
        except DataError as error:
            return _none_written(column, self._failed("serialize", topic, error))
        try:
            data = write(present)
        except DataError:
            data, failed = _one_by_one(write, present)
        framed = pc.binary_join_element_wise(pa.scalar(head, pa.binary()), data, _EMPTY)
        if not failed and not column.null_count:
            return Converted((Run.of(framed),))
        return _placed(column, framed, {row: self._failed("serialize", topic, error) for row, error in failed.items()})

    def _group(self, topic: str, head: bytes, number: int, heads: pa.DictionaryArray, column: pa.Array) -> _Group:
        """Reads the rows of one schema."""
        mine = pc.fill_null(pc.equal(heads.indices, number), False)
        rows = pc.indices_nonzero(mine).to_pylist()
        try:
            reader = self._reader(topic, head)
        except DataError as error:
            told = self._failed("deserialize", topic, error)
            return _Group(None, None, tuple(Failure(row, told) for row in rows))
        whole = len(rows) == len(column)
        converted = reader.read(pc.binary_replace_slice(column if whole else column.filter(mine), 0, HEAD_SIZE, b""))
        failures = tuple(
            Failure(rows[failure.row], self._failed("deserialize", topic, failure.error))
            for failure in converted.failures
        )
        return _Group(converted.runs[0].field, converted.runs[0].column, failures)

    def _reader(self, topic: str, head: bytes) -> PayloadReader:
        if not head or head[0] != _MAGIC:
            begins = f"with 0x{head[0]:02x}" if head else "with nothing, for it is empty"
            raise DataError(
                "Unknown magic byte! What a schema registry's converter wrote begins with 0x00 and the four bytes of "
                f"its schema's id; this begins {begins}.",
                reason="BAD_FRAMING",
            )
        if len(head) < HEAD_SIZE:
            raise DataError(
                f"The bytes end within the schema's id, which takes four of them: there are {len(head) - 1}.",
                reason="BAD_FRAMING",
            )
        _, schema_id = _HEAD.unpack(head)
        subject = f"{topic}-{self._registry.settings.suffix}"
        return self._readers.get((schema_id, subject), lambda: self._make_reader(schema_id, subject))

    def _make_reader(self, schema_id: int, subject: str) -> PayloadReader:
        schema = self._registry.schema(schema_id, subject)
        if schema.kind != self._format.kind:
            raise DataError(
                f"Schema {schema_id} is of type {schema.kind}; this converter reads {self._format.kind}.",
                reason="WRONG_SCHEMA_TYPE",
            )
        return self._format.reader(schema)

    def _writer(self, topic: str, field: pa.Field) -> tuple[bytes, PayloadWriter]:
        key = (topic, pa.schema([field.with_name("value")]).serialize().to_pybytes())
        return self._writers.get(key, lambda: self._make_writer(topic, field))

    def _make_writer(self, topic: str, field: pa.Field) -> tuple[bytes, PayloadWriter]:
        if field.type == JSON_TYPE:
            raise DataError(
                f"A value without a schema can't be written as {self._format.word}; give the source a schema.",
                reason="NO_SCHEMA",
            )
        schema = from_field(field)
        assert schema is not None
        text = self._format.schema_text(schema)
        subject = self._registry.settings.subject(topic, schema.name)
        registered = self._registry.register(subject, self._format.kind, text)
        return _HEAD.pack(_MAGIC, registered.id), self._format.writer(registered, field)

    def _failed(self, verb: str, topic: str, error: DataError) -> DataError:
        """Tells in Kafka Connect's words what failed, and then why."""
        word = self._format.word
        what = f"data for topic {topic} to {word}" if verb == "deserialize" else f"{word} data from topic {topic}"
        return DataError(f"Failed to {verb} {what}: {error}", reason=error.reason, field_path=error.field_path)


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """The rows of one schema: those that could be read in their order, and those that couldn't, by row."""

    field: pa.Field | None
    column: pa.Array | None
    failures: tuple[Failure, ...]


def _heads(heads: pa.DictionaryArray) -> list[bytes]:
    found: list[bytes] = heads.dictionary.to_pylist()
    return found


def _in_order(groups: list[_Group], heads: pa.DictionaryArray, bad: set[int]) -> tuple[Run, ...]:
    """Puts the rows of all groups back in their order."""
    pieces: list[tuple[pa.Field | None, pa.Array]] = []
    taken = [0] * len(groups)
    numbers = [number for row, number in enumerate(heads.indices.to_pylist()) if row not in bad]
    start = 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and numbers[end] == numbers[start]:
            continue
        number, length = numbers[start], end - start
        if number is None:
            pieces.append((None, pa.nulls(length, pa.string())))
        else:
            group = groups[number]
            assert group.column is not None
            pieces.append((group.field, group.column.slice(taken[number], length)))
            taken[number] += length
        start = end
    return merged_runs(pieces)


def _none_written(column: pa.Array, error: DataError) -> Converted:
    present = column.is_valid().to_pylist()
    nulls = pa.nulls(len(column) - sum(present), pa.binary())
    return Converted((Run.of(nulls),), tuple(Failure(row, error) for row, is_set in enumerate(present) if is_set))


def _one_by_one(write: PayloadWriter, present: pa.Array) -> tuple[pa.Array, dict[int, DataError]]:
    """Writes rows by themselves; those that fail are told by their index."""
    data: list[bytes] = []
    failed: dict[int, DataError] = {}
    for row in range(len(present)):
        try:
            data.append(write(present.slice(row, 1))[0].as_py())
        except DataError as error:
            failed[row] = error
    return pa.array(data, pa.binary()), failed


def _placed(column: pa.Array, framed: pa.Array, failed: Mapping[int, DataError]) -> Converted:
    """Puts the rows written between those that are null, and tells the others by their index in the column."""
    written = iter(framed.to_pylist())
    data: list[bytes | None] = []
    failures: list[Failure] = []
    present = 0
    for row, is_set in enumerate(column.is_valid().to_pylist()):
        if not is_set:
            data.append(None)
            continue
        error = failed.get(present)
        present += 1
        if error is None:
            data.append(next(written))
        else:
            failures.append(Failure(row, error))
    return Converted((Run.of(pa.array(data, pa.binary())),), tuple(failures))
