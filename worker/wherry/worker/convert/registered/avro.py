"""AvroConverter: Connect's values in Avro, their schemas in a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import orjson
import pyarrow as pa

from wherry.contract.data import Schema
from wherry.worker.convert.registered import avro_schema, avro_types, avro_write
from wherry.worker.convert.registered.avro_read import AvroReader
from wherry.worker.convert.registered.client import Registered, boolean
from wherry.worker.convert.registered.framing import Format, PayloadReader, PayloadWriter, RegisteredConverter


class AvroFormat:
    """See the module. Settings: enhanced.avro.schema.support, connect.meta.data."""

    kind: ClassVar[str] = "AVRO"
    word: ClassVar[str] = "Avro"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._enhanced = boolean(config, "enhanced.avro.schema.support", default=False)
        self._metadata = boolean(config, "connect.meta.data", default=True)

    def reader(self, schema: Registered) -> PayloadReader:
        """See `Format.reader`."""
        return AvroReader(_parsed(schema), version=schema.version)

    def schema_text(self, schema: Schema) -> str:
        """See `Format.schema_text`."""
        form = avro_schema.from_connect(schema, enhanced=self._enhanced, metadata=self._metadata)
        return orjson.dumps(form).decode()

    def writer(self, schema: Registered, field: pa.Field) -> PayloadWriter:
        """See `Format.writer`."""
        avro = _parsed(schema)
        return lambda column: avro_write.write(avro, column)


class AvroConverter(RegisteredConverter):
    """See the module."""

    class_name: ClassVar[str] = "io.confluent.connect.avro.AvroConverter"
    format_type: ClassVar[type[Format]] = AvroFormat


def _parsed(schema: Registered) -> avro_types.AvroType:
    return avro_types.parse(schema.text, [text for _, text in schema.references])
