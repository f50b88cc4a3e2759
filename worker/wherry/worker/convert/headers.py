"""Header converters: between the bytes of headers and typed values, for whole columns of them.

Reading is lazy: the engine itself never looks into a header's value, so what a sink gets is bytes again, as the
converter writes the value that it reads from those in the topic. They need not be the same (`1,000` is read as 1 by the
SimpleHeaderConverter, and a number's text may have zeros in front of it in JSON), so each converter proves cheaply, for
a whole column, that they are; where it can't, every value is read and written.

Writing turns typed headers into bytes. Plain ones, given by a source's sidecar, stay as they are under the converters
of text and bytes; for any other they count as STRING, or as BYTES where they are no UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract import headers, values
from wherry.contract.batch import HEADERS_TYPE
from wherry.contract.data import BYTES_SCHEMA, STRING_SCHEMA, Typed
from wherry.contract.java_text import typed_text
from wherry.worker.convert import Converted, DataError, Failure, Run

# Texts that are read and written as they are: numbers as Java writes them, and words no rule applies to.
_SAME: Final = r"^(-?[1-9][0-9]{0,17}|0|[A-Za-z_/.][!-~]*)$"
# What begins like a number but has a letter that is in none, such as the identifiers of traces; longer than any moment,
# of which trailing letters would be cut off.
_IDENTIFIER: Final = r"^[0-9][0-9A-Za-z_./+-]*[A-DF-Za-df-z_/][0-9A-Za-z_./+-]*$"
_MOMENT_LENGTH_MAX: Final = 24
_NULL: Final = b"null"
# Header values that are kept with what they are written as.
TEXTS_KNOWN_MAX: Final = 4_096
_LONG: Final = 256


class HeaderConverter(Protocol):
    """Reads and writes single header values, and says of whole columns whether that would change them."""

    @property
    def class_name(self) -> str:
        """Class of the converter, for reports of failures."""

    @property
    def keeps_plain(self) -> bool:
        """Whether plain headers of a source go into Kafka as they are."""

    def keeps(self, data: pa.Array) -> bool:
        """Whether each of the values surely can be read, and is written as the bytes that it was; cheap."""

    def read(self, data: bytes | None) -> Typed:
        """Reads a value.

        Raises:
            DataError: The bytes are none.
        """

    def write(self, value: Typed) -> bytes | None:
        """Writes a value.

        Raises:
            DataError: It can't be written.
        """


class SimpleHeaderConverter:
    """Headers in the text form of `Values`."""

    class_name: ClassVar[str] = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    keeps_plain: ClassVar[bool] = True

    def keeps(self, data: pa.Array) -> bool:
        """See `HeaderConverter.keeps`: numbers as Java writes them, and words no rule applies to; null is too."""
        found = data.unique()
        try:
            texts = found.cast(pa.string())
        except pa.ArrowInvalid:
            return False
        others = texts.filter(pc.invert(pc.match_substring_regex(texts, _SAME)))
        if len(others):
            if pc.min(pc.binary_length(others)).as_py() <= _MOMENT_LENGTH_MAX:
                return False
            if not pc.all(pc.match_substring_regex(others, _IDENTIFIER)).as_py():
                return False
        return _NULL not in found.to_pylist()

    def read(self, data: bytes | None) -> Typed:
        """See `HeaderConverter.read`; anything can be read."""
        return values.read(data)

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        text = values.format(value.value, value.schema)
        return None if text is None else text.encode("utf-8", "replace")


class HeaderSide:
    """The header converter of a pipeline, as a `Converter` of header columns."""

    class_name: ClassVar[str]

    def __init__(self, converter: HeaderConverter) -> None:
        self.class_name = converter.class_name  # type: ignore[misc]  # one class stands for several
        self.converter = converter
        self._known = lru_cache(TEXTS_KNOWN_MAX)(self._rewritten)

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`: the bytes become those of the values that are read from them."""
        data = pc.list_flatten(column).field("value")
        if not len(data) or self.converter.keeps(data):
            return Converted((Run.of(column),))
        found = data.unique()
        old = found.to_pylist()
        new = [self._known(value) if len(value or b"") <= _LONG else self._rewritten(value) for value in old]
        errors = {place: value for place, value in enumerate(new) if isinstance(value, DataError)}
        if errors:
            places = enumerate(pc.index_in(data, found).to_pylist())
            return _without(column, {index: errors[place] for index, place in places if place in errors})
        if new == old:
            return Converted((Run.of(column),))
        rewritten = pa.array(new, pa.binary()).take(pc.index_in(data, found))
        return Converted((Run.of(headers.plain(column, rewritten)),))

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        return self._written(column, keep_plain=self.converter.keeps_plain, for_sink=False)

    def written(self, column: pa.Array, *, for_sink: bool) -> Converted:
        """Turns typed headers into bytes and keeps the plain ones: what comes of both after transforms.

        Kafka Connect hands a sink the values themselves, so none may fail there: what can't be written is text.
        """
        return self._written(column, keep_plain=True, for_sink=for_sink)

    def _rewritten(self, data: bytes | None) -> bytes | DataError | None:
        """Returns what a sink gets for bytes, or why they can't be read."""
        try:
            return self._shown(self.converter.read(data))
        except DataError as error:
            return error

    def _shown(self, value: Typed) -> bytes | None:
        """Writes a value for a sink: what the converter can't write is text."""
        try:
            return self.converter.write(value)
        except DataError:
            return _text_of(value)

    def _written(self, column: pa.Array, *, keep_plain: bool, for_sink: bool) -> Converted:
        if keep_plain and not headers.is_typed(column):
            return Converted((Run.of(column.cast(HEADERS_TYPE)),))
        write = self._shown if for_sink else self.converter.write
        flat = pc.list_flatten(column)
        schemas = flat.field("schema").to_pylist() if headers.is_typed(column) else [None] * len(flat)
        data: list[bytes | None] = []
        failed: dict[int, DataError] = {}
        for index, (value, schema) in enumerate(zip(flat.field("value").to_pylist(), schemas, strict=True)):
            plain = value.encode() if isinstance(value, str) else value
            try:
                if schema is None and keep_plain:
                    data.append(plain)
                else:
                    data.append(write(headers.typed(plain, schema) if schema else _guess(plain)))
            except DataError as error:
                failed[index] = error
                data.append(None)
        if failed:
            return _without(column, failed)
        return Converted((Run.of(headers.plain(column, pa.array(data, pa.binary()))),))


def _text_of(value: Typed) -> bytes | None:
    """The text that the default converter gives, or failing that Java's."""
    try:
        return SimpleHeaderConverter().write(value)
    except DataError:
        return typed_text(value).encode("utf-8", "replace")


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
