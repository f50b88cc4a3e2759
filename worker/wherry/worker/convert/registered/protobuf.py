"""ProtobufConverter: Connect's structs as Protobuf messages, their schemas in a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import DataError, Schema
from wherry.worker.convert.registered.client import Registered, boolean
from wherry.worker.convert.registered.framing import Format, PayloadReader, PayloadWriter, RegisteredConverter
from wherry.worker.convert.registered.proto_data import ProtobufReader, write
from wherry.worker.convert.registered.proto_types import from_connect, messages_of

# Says that the first message of the schema follows.
_FIRST = b"\0"


class ProtobufFormat:
    """See the module. Setting: optional.for.nullables."""

    kind: ClassVar[str] = "PROTOBUF"
    word: ClassVar[str] = "Protobuf"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._labels = boolean(config, "optional.for.nullables", default=False)

    def reader(self, schema: Registered) -> PayloadReader:
        """See `Format.reader`."""
        messages = messages_of(schema.text, schema.references)
        if not messages:
            raise DataError("The Protobuf schema has no message.", reason="BAD_SCHEMA")
        return ProtobufReader(messages[0])

    def schema_text(self, schema: Schema) -> str:
        """See `Format.schema_text`."""
        return from_connect(schema, optional_labels=self._labels)

    def writer(self, schema: Registered, field: pa.Field) -> PayloadWriter:
        """See `Format.writer`."""
        message = messages_of(schema.text, schema.references)[0]
        head = pa.scalar(_FIRST, pa.binary())
        return lambda column: pc.binary_join_element_wise(head, write(message, column), pa.scalar(b"", pa.binary()))


class ProtobufConverter(RegisteredConverter):
    """See the module."""

    class_name: ClassVar[str] = "io.confluent.connect.protobuf.ProtobufConverter"
    format_type: ClassVar[type[Format]] = ProtobufFormat
