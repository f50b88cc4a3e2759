from wherry.connector.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FrameKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRAME_KIND_UNSPECIFIED: _ClassVar[FrameKind]
    FRAME_KIND_SCHEMA: _ClassVar[FrameKind]
    FRAME_KIND_BATCH: _ClassVar[FrameKind]
    FRAME_KIND_MARK: _ClassVar[FrameKind]

class ColumnType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLUMN_TYPE_UNSPECIFIED: _ClassVar[ColumnType]
    COLUMN_TYPE_BOOLEAN: _ClassVar[ColumnType]
    COLUMN_TYPE_INT8: _ClassVar[ColumnType]
    COLUMN_TYPE_INT16: _ClassVar[ColumnType]
    COLUMN_TYPE_INT32: _ClassVar[ColumnType]
    COLUMN_TYPE_INT64: _ClassVar[ColumnType]
    COLUMN_TYPE_FLOAT32: _ClassVar[ColumnType]
    COLUMN_TYPE_FLOAT64: _ClassVar[ColumnType]
    COLUMN_TYPE_STRING: _ClassVar[ColumnType]
    COLUMN_TYPE_BYTES: _ClassVar[ColumnType]
    COLUMN_TYPE_TIMESTAMP_MS: _ClassVar[ColumnType]
    COLUMN_TYPE_DATE: _ClassVar[ColumnType]
    COLUMN_TYPE_TIME_MS: _ClassVar[ColumnType]
    COLUMN_TYPE_JSON: _ClassVar[ColumnType]
    COLUMN_TYPE_STRUCT: _ClassVar[ColumnType]
    COLUMN_TYPE_LIST: _ClassVar[ColumnType]
FRAME_KIND_UNSPECIFIED: FrameKind
FRAME_KIND_SCHEMA: FrameKind
FRAME_KIND_BATCH: FrameKind
FRAME_KIND_MARK: FrameKind
COLUMN_TYPE_UNSPECIFIED: ColumnType
COLUMN_TYPE_BOOLEAN: ColumnType
COLUMN_TYPE_INT8: ColumnType
COLUMN_TYPE_INT16: ColumnType
COLUMN_TYPE_INT32: ColumnType
COLUMN_TYPE_INT64: ColumnType
COLUMN_TYPE_FLOAT32: ColumnType
COLUMN_TYPE_FLOAT64: ColumnType
COLUMN_TYPE_STRING: ColumnType
COLUMN_TYPE_BYTES: ColumnType
COLUMN_TYPE_TIMESTAMP_MS: ColumnType
COLUMN_TYPE_DATE: ColumnType
COLUMN_TYPE_TIME_MS: ColumnType
COLUMN_TYPE_JSON: ColumnType
COLUMN_TYPE_STRUCT: ColumnType
COLUMN_TYPE_LIST: ColumnType

class Frame(_message.Message):
    __slots__ = ("seq", "kind", "schema_id", "row_count", "encoding", "chunk_index", "chunk_count", "marks", "traceparent", "row_errors", "constants", "padding", "body")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
    CHUNK_COUNT_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    ROW_ERRORS_FIELD_NUMBER: _ClassVar[int]
    CONSTANTS_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    seq: int
    kind: FrameKind
    schema_id: int
    row_count: int
    encoding: _common_pb2.Encoding
    chunk_index: int
    chunk_count: int
    marks: _containers.RepeatedCompositeFieldContainer[_common_pb2.Mark]
    traceparent: str
    row_errors: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowError]
    constants: RecordConstants
    padding: bytes
    body: bytes
    def __init__(self, seq: _Optional[int] = ..., kind: _Optional[_Union[FrameKind, str]] = ..., schema_id: _Optional[int] = ..., row_count: _Optional[int] = ..., encoding: _Optional[_Union[_common_pb2.Encoding, str]] = ..., chunk_index: _Optional[int] = ..., chunk_count: _Optional[int] = ..., marks: _Optional[_Iterable[_Union[_common_pb2.Mark, _Mapping]]] = ..., traceparent: _Optional[str] = ..., row_errors: _Optional[_Iterable[_Union[_common_pb2.RowError, _Mapping]]] = ..., constants: _Optional[_Union[RecordConstants, _Mapping]] = ..., padding: _Optional[bytes] = ..., body: _Optional[bytes] = ...) -> None: ...

class RecordConstants(_message.Message):
    __slots__ = ("topic", "partition", "first_offset", "timestamp_ms", "original_topic", "original_partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_TOPIC_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    first_offset: int
    timestamp_ms: int
    original_topic: str
    original_partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., first_offset: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., original_topic: _Optional[str] = ..., original_partition: _Optional[int] = ...) -> None: ...

class Columns(_message.Message):
    __slots__ = ("columns",)
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    def __init__(self, columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "type", "nullable", "validity", "offsets", "data", "children", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    VALIDITY_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ColumnType
    nullable: bool
    validity: bytes
    offsets: bytes
    data: bytes
    children: _containers.RepeatedCompositeFieldContainer[Column]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ColumnType, str]] = ..., nullable: bool = ..., validity: _Optional[bytes] = ..., offsets: _Optional[bytes] = ..., data: _Optional[bytes] = ..., children: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
