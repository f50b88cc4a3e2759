from wherry.connector.v1 import common_pb2 as _common_pb2
from wherry.connector.v1 import frame_pb2 as _frame_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnsureTargetRequest(_message.Message):
    __slots__ = ("topic", "schema", "dry_run")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    topic: str
    schema: bytes
    dry_run: bool
    def __init__(self, topic: _Optional[str] = ..., schema: _Optional[bytes] = ..., dry_run: bool = ...) -> None: ...

class EnsureTargetResponse(_message.Message):
    __slots__ = ("target", "actions", "schema")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    target: str
    actions: _containers.RepeatedScalarFieldContainer[str]
    schema: bytes
    def __init__(self, target: _Optional[str] = ..., actions: _Optional[_Iterable[str]] = ..., schema: _Optional[bytes] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("open", "frame", "flush", "partitions", "heartbeat")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    FLUSH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    open: WriteOpen
    frame: _frame_pb2.Frame
    flush: Flush
    partitions: PartitionsChanged
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, open: _Optional[_Union[WriteOpen, _Mapping]] = ..., frame: _Optional[_Union[_frame_pb2.Frame, _Mapping]] = ..., flush: _Optional[_Union[Flush, _Mapping]] = ..., partitions: _Optional[_Union[PartitionsChanged, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class WriteOpen(_message.Message):
    __slots__ = ("pipeline", "generation", "task", "partitions_json", "encodings", "traceparent")
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    pipeline: str
    generation: int
    task: int
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    encodings: _containers.RepeatedScalarFieldContainer[_common_pb2.Encoding]
    traceparent: str
    def __init__(self, pipeline: _Optional[str] = ..., generation: _Optional[int] = ..., task: _Optional[int] = ..., partitions_json: _Optional[_Iterable[str]] = ..., encodings: _Optional[_Iterable[_Union[_common_pb2.Encoding, str]]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class Flush(_message.Message):
    __slots__ = ("id", "final")
    ID_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    id: int
    final: bool
    def __init__(self, id: _Optional[int] = ..., final: bool = ...) -> None: ...

class PartitionsChanged(_message.Message):
    __slots__ = ("partitions_json",)
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, partitions_json: _Optional[_Iterable[str]] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("opened", "ack", "flushed", "credit", "backoff", "rewind", "pause", "heartbeat")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    REWIND_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    opened: WriteOpened
    ack: FrameAck
    flushed: Flushed
    credit: _common_pb2.Credit
    backoff: Backoff
    rewind: Rewind
    pause: PausePartitions
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, opened: _Optional[_Union[WriteOpened, _Mapping]] = ..., ack: _Optional[_Union[FrameAck, _Mapping]] = ..., flushed: _Optional[_Union[Flushed, _Mapping]] = ..., credit: _Optional[_Union[_common_pb2.Credit, _Mapping]] = ..., backoff: _Optional[_Union[Backoff, _Mapping]] = ..., rewind: _Optional[_Union[Rewind, _Mapping]] = ..., pause: _Optional[_Union[PausePartitions, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class WriteOpened(_message.Message):
    __slots__ = ("encoding", "credit", "positions")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    encoding: _common_pb2.Encoding
    credit: _common_pb2.Credit
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, encoding: _Optional[_Union[_common_pb2.Encoding, str]] = ..., credit: _Optional[_Union[_common_pb2.Credit, _Mapping]] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class FrameAck(_message.Message):
    __slots__ = ("seq", "row_errors")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ROW_ERRORS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    row_errors: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowError]
    def __init__(self, seq: _Optional[int] = ..., row_errors: _Optional[_Iterable[_Union[_common_pb2.RowError, _Mapping]]] = ...) -> None: ...

class Flushed(_message.Message):
    __slots__ = ("id", "positions", "token", "rows_written", "rows_filtered", "failed", "rows_failed")
    ID_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ROWS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    ROWS_FILTERED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FAILED_FIELD_NUMBER: _ClassVar[int]
    id: int
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    token: bytes
    rows_written: int
    rows_filtered: int
    failed: _containers.RepeatedCompositeFieldContainer[FrameErrors]
    rows_failed: int
    def __init__(self, id: _Optional[int] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., token: _Optional[bytes] = ..., rows_written: _Optional[int] = ..., rows_filtered: _Optional[int] = ..., failed: _Optional[_Iterable[_Union[FrameErrors, _Mapping]]] = ..., rows_failed: _Optional[int] = ...) -> None: ...

class FrameErrors(_message.Message):
    __slots__ = ("seq", "row_errors")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ROW_ERRORS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    row_errors: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowError]
    def __init__(self, seq: _Optional[int] = ..., row_errors: _Optional[_Iterable[_Union[_common_pb2.RowError, _Mapping]]] = ...) -> None: ...

class Backoff(_message.Message):
    __slots__ = ("delay_ms", "reason")
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    delay_ms: int
    reason: str
    def __init__(self, delay_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Rewind(_message.Message):
    __slots__ = ("positions",)
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class PausePartitions(_message.Message):
    __slots__ = ("partitions_json",)
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, partitions_json: _Optional[_Iterable[str]] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("generation", "tokens", "positions")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    tokens: _containers.RepeatedScalarFieldContainer[bytes]
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, generation: _Optional[int] = ..., tokens: _Optional[_Iterable[bytes]] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ("repeated_commit",)
    REPEATED_COMMIT_FIELD_NUMBER: _ClassVar[int]
    repeated_commit: bool
    def __init__(self, repeated_commit: bool = ...) -> None: ...

class SinkServiceAlterOffsetsRequest(_message.Message):
    __slots__ = ("connector", "class_name", "config", "secrets", "positions", "validate_only")
    class ConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class SecretsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    connector: str
    class_name: str
    config: _containers.ScalarMap[str, str]
    secrets: _containers.ScalarMap[str, str]
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    validate_only: bool
    def __init__(self, connector: _Optional[str] = ..., class_name: _Optional[str] = ..., config: _Optional[_Mapping[str, str]] = ..., secrets: _Optional[_Mapping[str, str]] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., validate_only: bool = ...) -> None: ...

class SinkServiceAlterOffsetsResponse(_message.Message):
    __slots__ = ("handled",)
    HANDLED_FIELD_NUMBER: _ClassVar[int]
    handled: bool
    def __init__(self, handled: bool = ...) -> None: ...
