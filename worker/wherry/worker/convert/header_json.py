"""The JsonConverter for single headers: every value is read as what it is and written as that.

Values of records stay in columns, whose nulls and decimals are those of their type. A header stands alone, so here a
null keeps its schema, and a number in the place of a decimal its own scale. Keys of maps can't be null here either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract import headers
from wherry.contract.data import Kind, Schema, Typed
from wherry.contract.java import (
    boolean_hash,
    double_hash,
    float_hash,
    in_map_order,
    in_order_of,
    integer_hash,
    long_hash,
)
from wherry.contract.payload import from_payload, schemaless_payload, to_payload
from wherry.contract.position import compact_json
from wherry.contract.schema import from_field, to_form
from wherry.contract.schemaless import BAD_JSON, loads
from wherry.worker.convert import DataError, json_limits
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.json_read import decoded

# Texts without a schema that are read and written as they are: numbers as Java writes them, and plain texts.
_SAME: Final = r'^(-?[1-9][0-9]{0,17}|0|true|false|"[ !#-\[\]-~]*")$'
_HASHES: Final[dict[Kind, Callable[[Any], int]]] = {
    Kind.BOOLEAN: boolean_hash,
    Kind.INT8: integer_hash,
    Kind.INT16: integer_hash,
    Kind.INT32: integer_hash,
    Kind.INT64: long_hash,
    Kind.FLOAT32: float_hash,
    Kind.FLOAT64: double_hash,
}


class JsonHeaders:
    """Headers as JSON, with their schemas or without."""

    class_name: ClassVar[str] = JsonConverter.class_name
    keeps_plain: ClassVar[bool] = False

    def __init__(self, converter: JsonConverter) -> None:
        self._converter = converter
        self._payload = partial(
            to_payload, numeric_decimals=converter.writes_numeric_decimals, defaults=converter.replaces_nulls
        )

    def keeps(self, data: pa.Array) -> bool:
        """See `HeaderConverter.keeps`."""
        if self._converter.uses_schemas:
            return bool(data.null_count == len(data))
        try:
            same = pc.match_substring_regex(data.cast(pa.string()), _SAME)
        except pa.ArrowInvalid:
            return False
        return bool(pc.all(same, min_count=0).as_py())

    def read(self, data: bytes | None) -> Typed:
        """See `HeaderConverter.read`."""
        if data is None:
            return Typed(None, None)
        if not self._converter.uses_schemas:
            return Typed(None, ordered(None, _bare(data)))
        field, payload = self._converter.envelope(data)
        if field is None:
            return Typed(None, ordered(None, payload))
        schema = from_field(field)
        assert schema is not None
        return headers.require(Typed(schema, ordered(schema, self._value(field, schema, payload))))

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        schema, found = value
        if schema is None and found is None:
            return None
        payload = schemaless_payload(found) if schema is None else self._payload(schema, found)
        written = {
            "schema": None
            if schema is None
            else to_form(schema, numeric_decimals=self._converter.writes_numeric_decimals),
            "payload": payload,
        }
        return compact_json(written if self._converter.uses_schemas else payload).encode("utf-8", "replace")

    def _value(self, field: pa.Field, schema: Schema, payload: Any) -> Any:
        try:
            self._converter.check_payload(field, payload)
        except DataError as error:
            # A decimal is free to have more digits than its schema says as long as it is in no column.
            if error.reason != "OUT_OF_RANGE":
                raise
        return from_payload(schema, payload, defaults=self._converter.replaces_nulls)


def _bare(data: bytes) -> Any:
    if not data:
        return None
    try:
        text = decoded(data)
        json_limits.check(text)
        return loads(text, keep_halves=True)
    except ValueError:
        raise DataError(BAD_JSON, reason="BAD_JSON") from None


def ordered(schema: Schema | None, value: Any) -> Any:
    """Puts maps in the order in which Java walks over them, which is that of hash tables."""
    if isinstance(value, dict):
        if schema is not None and schema.kind is Kind.STRUCT:
            return {field.name: ordered(field.schema, value.get(field.name)) for field in schema.fields}
        item = schema.value if schema is not None else None
        return {key: ordered(item, value[key]) for key in _in_order(schema, value)}
    if isinstance(value, list):
        item = schema.value if schema is not None else None
        return [ordered(item, each) for each in value]
    return value


def _in_order(schema: Schema | None, value: dict[Any, Any]) -> list[Any]:
    key = schema.key if schema is not None else None
    if key is None or key.kind is Kind.STRING:
        return in_map_order(value)
    known = _HASHES.get(key.kind)
    return list(value) if known is None or key.logical is not None or None in value else in_order_of(value, known)
