"""JsonConverter: bare JSON, and JSON in an envelope of schema and payload.

Bare JSON is lazy: bytes become a column of JSON text, of which no more is known than that it is sound. Empty bytes and
the text `null` are null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.errors import ConfigError
from wherry.contract.schemaless import BAD_JSON
from wherry.worker.convert import Converted, DataError, Failure, Run
from wherry.worker.convert.json_read import check_json
from wherry.worker.convert.json_schema import EnvelopeReader, EnvelopeWriter
from wherry.worker.convert.json_write import WriteOptions, write_json

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_NULL_TEXT: Final = b"null"
# Longer blanks are found where somebody parses them.
_BLANK: Final = r"^[ \t\r\n]*$"


class JsonConverter:
    """See the module. Settings: schemas.enable, schema.content, decimal.format, replace.null.with.default."""

    class_name: ClassVar[str] = "org.apache.kafka.connect.json.JsonConverter"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        self._schemas = _boolean(config, "schemas.enable", default=True)
        _integer(config, "schemas.cache.size")
        self._options = WriteOptions(
            numeric_decimals=_decimal_format(config) == "NUMERIC",
            replace_null_with_default=_boolean(config, "replace.null.with.default", default=True),
        )
        content = config.get("schema.content", "")
        self._reader = EnvelopeReader(content, self._options) if self._schemas else None
        self._writer = EnvelopeWriter(self._options) if self._schemas else None

    @property
    def uses_schemas(self) -> bool:
        """Whether values travel with a schema: `schemas.enable`."""
        return self._schemas

    @property
    def writes_numeric_decimals(self) -> bool:
        """Whether decimals are written as numbers: `decimal.format`."""
        return self._options.numeric_decimals

    @property
    def replaces_nulls(self) -> bool:
        """Whether a null becomes the default of its schema: `replace.null.with.default`."""
        return self._options.replace_null_with_default

    def envelope(self, data: bytes) -> tuple[pa.Field | None, Any]:
        """Takes one text apart, into the field of its schema and its payload; only where there are schemas.

        Raises:
            DataError: It is no JSON, or no envelope.
        """
        assert self._reader is not None
        return self._reader.envelope(data)

    def check_payload(self, field: pa.Field, payload: Any) -> None:
        """Refuses a payload that is no value of the schema that came with it.

        Raises:
            DataError: Why.
        """
        assert self._reader is not None
        self._reader.rules(field, payload)

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`."""
        if self._reader is not None:
            return self._reader.read(column)
        return self._bare(column)

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        if self._writer is not None:
            return self._writer.write(field, column)
        return write_json(field, column, self._options)

    def _bare(self, column: pa.Array) -> Converted:
        lengths = pc.binary_length(column)
        bounds = pc.min_max(lengths).as_py()
        if bounds["min"] is not None and bounds["min"] <= len(_NULL_TEXT):
            short = pc.if_else(pc.less_equal(lengths, len(_NULL_TEXT)), column, pa.scalar(None, pa.binary()))
            blank = pc.fill_null(pc.match_substring_regex(short, _BLANK), False)
            empty = pc.or_(blank, pc.equal(column, pa.scalar(_NULL_TEXT, pa.binary())))
            column = pc.if_else(empty, pa.scalar(None, pa.binary()), column)
        try:
            texts = column.cast(pa.string())
        except pa.ArrowInvalid:
            return self._row_by_row(column)
        if not check_json(texts):
            return self._row_by_row(column)
        return Converted((Run.of(pa.ExtensionArray.from_storage(JSON_TYPE, texts)),))

    def _row_by_row(self, column: pa.Array) -> Converted:
        """Sorts out the rows that are no JSON, with a parser as lenient as Kafka Connect's."""
        from wherry.worker.convert.json_read import normal_text

        texts: list[str | None] = []
        failures: list[Failure] = []
        for row, data in enumerate(column.to_pylist()):
            try:
                texts.append(None if data is None else normal_text(data))
            except ValueError:
                failures.append(Failure(row, DataError(BAD_JSON, reason="BAD_JSON")))
        storage = pa.array(texts, pa.string())
        return Converted((Run.of(pa.ExtensionArray.from_storage(JSON_TYPE, storage)),), tuple(failures))


def _boolean(config: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = config.get(key, str(default)).strip().lower()
    if text not in {"true", "false"}:
        raise _invalid(config, key, "Expected value to be either true or false")
    return text == "true"


def _integer(config: Mapping[str, str], key: str) -> None:
    """Checks a number that nothing depends on here: what schemas are kept is limited anyway."""
    if _INTEGER.fullmatch(config.get(key, "0").strip()) is None:
        raise _invalid(config, key, "Not a number of type INT")


def _decimal_format(config: Mapping[str, str]) -> str:
    text = config.get("decimal.format", "BASE64").upper()
    if text not in {"BASE64", "NUMERIC"}:
        raise _invalid(config, "decimal.format", "String must be one of (case insensitive): NUMERIC, BASE64")
    return text


def _invalid(config: Mapping[str, str], key: str, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {config[key]} for configuration {key}: {why}", key=key)
