"""Converters without a schema of their own: text and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import KINDS_BY_JSON_NAME
from wherry.contract.errors import ConfigError
from wherry.contract.java_charsets import Charset
from wherry.contract.java_text import java_texts
from wherry.contract.schema import PRIMITIVES
from wherry.worker.convert import Converted, DataError, Failure, Run

_KINDS: Final = {data_type: KINDS_BY_JSON_NAME[name].value for name, data_type in PRIMITIVES.items()}
_BINARY_TYPES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


class StringConverter:
    """Text: bytes are decoded, and whatever is written becomes its text form; null stays null."""

    class_name: ClassVar[str] = "org.apache.kafka.connect.storage.StringConverter"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        encoding = config.get("converter.encoding", "UTF-8").strip()
        if "converter.encoding" not in config:
            encoding = config.get("key.deserializer.encoding" if is_key else "value.deserializer.encoding", encoding)
        try:
            self.charset = Charset(encoding)
        except LookupError:
            raise ConfigError(
                f"Invalid value {encoding} for configuration converter.encoding: no such encoding; UTF-8 would be one.",
                key="converter.encoding",
            ) from None
        self._utf8 = self.charset.is_utf8

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`. Damaged input becomes U+FFFD, as in Kafka Connect."""
        if self._utf8:
            try:
                return Converted((Run.of(column.cast(pa.string())),))
            except pa.ArrowInvalid:
                pass
        texts = [None if value is None else self.charset.decode(value) for value in column.to_pylist()]
        return Converted((Run.of(pa.array(texts, pa.string())),))

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        if pa.types.is_null(column.type):
            return Converted((Run.of(pa.nulls(len(column), pa.binary())),))
        if pa.types.is_string(column.type) and self._utf8:
            return Converted((Run.of(column.cast(pa.binary())),))
        texts = column.to_pylist() if pa.types.is_string(column.type) else java_texts(column)
        data = [None if text is None else self.charset.encode(text) for text in texts]
        return Converted((Run.of(pa.array(data, pa.binary())),))


class ByteArrayConverter:
    """Bytes as they are."""

    class_name: ClassVar[str] = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Takes no setting."""

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`."""
        return Converted((Run.of(column),))

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`; anything but bytes fails."""
        if pa.types.is_null(column.type) or any(is_type(column.type) for is_type in _BINARY_TYPES):
            return Converted((Run.of(column.cast(pa.binary())),))
        error = DataError(
            f"Invalid schema type for ByteArrayConverter: {connect_name(column.type)}", reason="WRONG_TYPE"
        )
        present = pc.is_valid(column).to_pylist()
        nulls = pa.nulls(len(column) - sum(present), pa.binary())
        return Converted((Run.of(nulls),), tuple(Failure(row, error) for row, is_set in enumerate(present) if is_set))


def connect_name(data_type: pa.DataType) -> str:
    """Returns the name Kafka Connect's messages give to a type."""
    if data_type == JSON_TYPE:
        return "MAP"
    found = _KINDS.get(data_type)
    if found is not None:
        return found
    if pa.types.is_struct(data_type):
        return "STRUCT"
    if pa.types.is_map(data_type):
        return "MAP"
    if pa.types.is_decimal(data_type) or any(is_type(data_type) for is_type in _BINARY_TYPES):
        return "BYTES"
    if pa.types.is_temporal(data_type):
        return "INT64" if pa.types.is_timestamp(data_type) else "INT32"
    return "ARRAY" if pa.types.is_nested(data_type) else str(data_type).upper()
