"""Header converters: between the bytes of headers and typed values, for whole columns of them.

Reading is lazy: the engine itself never looks into a header's value, so what a sink gets is the bytes again, as the
converter would write the value that it reads. For the SimpleHeaderConverter that isn't the same as the bytes that were
there (`1,000` is read as 1), so they are compared; the proof that they are the same is cheap for most texts. The other
converters are asked only whether they can read the bytes.

Writing turns typed headers into bytes. Plain ones, given by a source's sidecar, stay as they are under the converters
of text and bytes; for any other they count as STRING, or as BYTES where they are no UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract import headers, values
from wherry.contract.batch import HEADERS_TYPE
from wherry.contract.data import BYTES_SCHEMA, STRING_SCHEMA, Typed
from wherry.contract.java_text import java_text
from wherry.contract.payload import schemaless_payload, to_payload
from wherry.contract.position import compact_json
from wherry.contract.schema import to_field, to_form
from wherry.worker.convert import Converted, Converter, DataError, Failure, Run
from wherry.worker.convert.json_rows import connect_value

# Texts that are read and written as they are: numbers as Java writes them, and words no rule applies to.
_SAME: Final = r"^(-?[1-9][0-9]{0,17}|0|[A-Za-z_/.][!-~]*)$"
_NULL: Final = b"null"
# Header values that are kept with what they are written as.
TEXTS_KNOWN_MAX: Final = 4_096
_LONG: Final = 256


class HeaderWriter(Protocol):
    """Writes single header values, and says which bytes can't be read."""

    @property
    def class_name(self) -> str:
        """Class of the converter, for reports of failures."""

    @property
    def keeps_plain(self) -> bool:
        """Whether plain headers of a source go into Kafka as they are."""

    def check(self, topic: str, data: pa.Array) -> pa.Array | Mapping[int, DataError]:
        """Returns the bytes as a sink shall have them, or why some can't be read, by their index."""

    def write(self, topic: str, value: Typed) -> bytes | None:
        """Writes a value."""


class SimpleHeaderConverter:
    """Headers in the text form of `Values`."""

    class_name: ClassVar[str] = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    keeps_plain: ClassVar[bool] = True

    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Takes no setting."""

    def check(self, topic: str, data: pa.Array) -> pa.Array:
        """See `HeaderWriter.check`; anything can be read."""
        found = data.unique()
        if _provably_same(found):
            return data
        rewritten = [
            _rewritten(value) if len(value or b"") <= _LONG else _rewrite(value) for value in found.to_pylist()
        ]
        if rewritten == found.to_pylist():
            return data
        return pa.array(rewritten, pa.binary()).take(pc.index_in(data, found))

    def write(self, topic: str, value: Typed) -> bytes | None:
        """See `HeaderWriter.write`."""
        text = values.format(value.value, value.schema)
        return None if text is None else text.encode("utf-8", "replace")


class ColumnHeaders:
    """Makes a header converter of a converter for keys and values."""

    def __init__(self, converter: Converter, write: Callable[[Typed], bytes | None], *, keeps_plain: bool) -> None:
        self.class_name = converter.class_name
        self.keeps_plain = keeps_plain
        self._converter = converter
        self._write = write

    def check(self, topic: str, data: pa.Array) -> pa.Array | Mapping[int, DataError]:
        """See `HeaderWriter.check`."""
        failures = self._converter.to_connect(topic, data).failures
        return {failure.row: failure.error for failure in failures} if failures else data

    def write(self, topic: str, value: Typed) -> bytes | None:
        """See `HeaderWriter.write`."""
        return self._write(value)


class HeaderSide:
    """The header converter of a pipeline, as a `Converter` of header columns."""

    class_name: ClassVar[str]

    def __init__(self, writer: HeaderWriter) -> None:
        self.class_name = writer.class_name  # type: ignore[misc]  # one class stands for several
        self._writer = writer

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`."""
        data = pc.list_flatten(column).field("value")
        checked = self._writer.check(topic, data) if len(data) else data
        if checked is data:
            return Converted((Run.of(column),))
        if isinstance(checked, Mapping):
            return _without(column, checked)
        return Converted((Run.of(headers.plain(column, checked.to_pylist())),))

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        return self._written(topic, column, keep_plain=self._writer.keeps_plain)

    def written(self, topic: str, column: pa.Array) -> Converted:
        """Turns typed headers into bytes and keeps the plain ones: what a sink gets after its transforms.

        Kafka Connect hands a sink the values themselves, so none may fail here: what the converter can't write is text.
        """
        return self._written(topic, column, keep_plain=True, instead=_text_of)

    def _written(
        self,
        topic: str,
        column: pa.Array,
        *,
        keep_plain: bool,
        instead: Callable[[Typed], bytes | None] | None = None,
    ) -> Converted:
        if keep_plain and not headers.is_typed(column):
            return Converted((Run.of(column.cast(HEADERS_TYPE)),))
        flat = pc.list_flatten(column)
        schemas = flat.field("schema").to_pylist() if headers.is_typed(column) else [None] * len(flat)
        data: list[bytes | None] = []
        failed: dict[int, DataError] = {}
        for index, (value, schema) in enumerate(zip(flat.field("value").to_pylist(), schemas, strict=True)):
            plain = value.encode() if isinstance(value, str) else value
            found: Typed | None = None
            try:
                if schema is None and keep_plain:
                    data.append(plain)
                else:
                    found = headers.typed(plain, schema) if schema else _guess(plain)
                    data.append(self._writer.write(topic, found))
            except DataError as error:
                if instead is not None and found is not None:
                    data.append(instead(found))
                    continue
                failed[index] = error
                data.append(None)
        if failed:
            return _without(column, failed)
        return Converted((Run.of(headers.plain(column, data)),))


def _text_of(value: Typed) -> bytes | None:
    """The text that the default converter gives, or failing that Java's."""
    try:
        return SimpleHeaderConverter({}).write("", value)
    except DataError:
        return write_simply(value)


def write_simply(value: Typed) -> bytes | None:
    """Writes text as it is, and what is no text in Java's form."""
    return None if value.value is None else java_text(value.value).encode("utf-8", "replace")


def json_writer(*, schemas: bool, numeric_decimals: bool) -> Callable[[Typed], bytes | None]:
    """Returns what writes header values as the JsonConverter does."""

    def write(value: Typed) -> bytes | None:
        schema, found = value
        if schema is None and found is None:
            return None
        payload = (
            schemaless_payload(found)
            if schema is None
            else to_payload(schema, found, numeric_decimals=numeric_decimals)
        )
        form = None if schema is None else to_form(schema)
        return compact_json({"schema": form, "payload": payload} if schemas else payload).encode("utf-8", "replace")

    return write


def column_writer(converter: Converter) -> Callable[[Typed], bytes | None]:
    """Returns what writes header values with a converter of columns, one by one."""

    def write(value: Typed) -> bytes | None:
        schema, found = value
        if schema is None:
            field = pa.field("value", pa.infer_type([found]) if found is not None else pa.null())
            column = pa.array([found], field.type)
        else:
            field = to_field(schema)
            held = None if found is None else connect_value(field, to_payload(schema, found))
            column = pa.array([held], field.type)
        converted = converter.from_connect("", field, column)
        if converted.failures:
            raise converted.failures[0].error
        written: bytes | None = converted.runs[0].column[0].as_py()
        return written

    return write


def _provably_same(found: pa.Array) -> bool:
    """Whether each of the values is a text that is read and written as it is; null is too."""
    try:
        same = pc.match_substring_regex(found.cast(pa.string()), _SAME)
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(same, min_count=0).as_py()) and _NULL not in found.to_pylist()


def _rewrite(data: bytes | None) -> bytes | None:
    value = values.read(data)
    text = values.format(value.value, value.schema)
    return None if text is None else text.encode("utf-8", "replace")


_rewritten: Final = lru_cache(TEXTS_KNOWN_MAX)(_rewrite)


def _guess(data: bytes | None) -> Typed:
    """Returns what plain bytes stand for where the converter wants to know."""
    if data is None:
        return Typed(None, None)
    try:
        return Typed(STRING_SCHEMA, data.decode())
    except UnicodeDecodeError:
        return Typed(BYTES_SCHEMA, data)


def _without(column: pa.Array, failed: Mapping[int, DataError]) -> Converted:
    """Fails the rows of headers that failed; each is told once."""
    parents: Sequence[int] = headers.rows_of_headers(column).to_pylist()
    errors: dict[int, DataError] = {}
    for index in sorted(failed):
        errors.setdefault(parents[index], failed[index])
    kept = pa.array([row not in errors for row in range(len(column))], pa.bool_())
    return Converted((Run.of(column.filter(kept)),), tuple(Failure(row, errors[row]) for row in sorted(errors)))
