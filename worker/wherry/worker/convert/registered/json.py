"""JsonSchemaConverter: Connect's values in JSON, their schemas in a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import orjson
import pyarrow as pa

from wherry.contract.data import Schema
from wherry.contract.schema import to_field
from wherry.worker.convert import Converted, DataError, Failure
from wherry.worker.convert.json_read import parse_json
from wherry.worker.convert.json_rows import connect_value
from wherry.worker.convert.json_write import WriteOptions, write_json
from wherry.worker.convert.registered.client import Registered, boolean
from wherry.worker.convert.registered.framing import Format, PayloadReader, PayloadWriter, RegisteredConverter
from wherry.worker.convert.registered.json_types import Reading, from_connect

_DRAFT = "http://json-schema.org/draft-07/schema#"
# A text that no parser takes for JSON.
_DAMAGED = "\0"


class _Reader:
    def __init__(self, schema: Schema) -> None:
        self.field = to_field(schema)

    def read(self, payloads: pa.Array) -> Converted:
        """See `PayloadReader.read`."""
        try:
            texts = payloads.cast(pa.string())
        except pa.ArrowInvalid:
            texts = pa.array([_text(data) for data in payloads.to_pylist()], pa.string())
        converted = parse_json(texts, self.field, connect_value)
        failures = tuple(
            Failure(failure.row, DataError("The bytes are no JSON.", reason="BAD_JSON"))
            if failure.error.reason == "BAD_JSON"
            else failure
            for failure in converted.failures
        )
        return Converted(converted.runs, failures)


class JsonSchemaFormat:
    """See the module. Settings: decimal.format, use.optional.for.nonrequired, replace.null.with.default."""

    kind: ClassVar[str] = "JSON"
    word: ClassVar[str] = "JSON Schema"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._nonrequired_optional = boolean(config, "use.optional.for.nonrequired", default=False)
        self._options = WriteOptions(
            numeric_decimals=config.get("decimal.format", "BASE64").strip().upper() == "NUMERIC",
            replace_null_with_default=boolean(config, "replace.null.with.default", default=True),
        )

    def reader(self, schema: Registered) -> PayloadReader:
        """See `Format.reader`."""
        try:
            root = json.loads(schema.text)
            references = {name: json.loads(text) for name, text in schema.references}
        except ValueError as error:
            raise DataError(f"The JSON Schema is no JSON: {error}", reason="BAD_SCHEMA") from None
        return _Reader(Reading(root, references, nonrequired_optional=self._nonrequired_optional).schema())

    def schema_text(self, schema: Schema) -> str:
        """See `Format.schema_text`."""
        form = from_connect(
            schema,
            numeric_decimals=self._options.numeric_decimals,
            nonrequired_optional=self._nonrequired_optional,
        )
        if "type" not in form:
            # Some registries tell by one of these that it is a JSON Schema.
            form = {"$schema": _DRAFT, **form}
        return orjson.dumps(form).decode()

    def writer(self, schema: Registered, field: pa.Field) -> PayloadWriter:
        """See `Format.writer`. What is written doesn't depend on the schema of the registry."""

        def write(column: pa.Array) -> pa.Array:
            converted = write_json(field, column, self._options)
            if converted.failures:
                raise converted.failures[0].error
            return converted.runs[0].column

        return write


class JsonSchemaConverter(RegisteredConverter):
    """See the module."""

    class_name: ClassVar[str] = "io.confluent.connect.json.JsonSchemaConverter"
    format_type: ClassVar[type[Format]] = JsonSchemaFormat


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _DAMAGED
