from wherry.connector.v1 import common_pb2 as _common_pb2
from wherry.connector.v1 import frame_pb2 as _frame_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanRequest(_message.Message):
    __slots__ = ("positions", "tasks_max", "splits_active", "splits_max")
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    TASKS_MAX_FIELD_NUMBER: _ClassVar[int]
    SPLITS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SPLITS_MAX_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    tasks_max: int
    splits_active: _containers.RepeatedScalarFieldContainer[str]
    splits_max: int
    def __init__(self, positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., tasks_max: _Optional[int] = ..., splits_active: _Optional[_Iterable[str]] = ..., splits_max: _Optional[int] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("tasks", "splits", "replan_after_ms", "retired", "reached", "complete")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SPLITS_FIELD_NUMBER: _ClassVar[int]
    REPLAN_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Work]
    splits: _containers.RepeatedCompositeFieldContainer[Work]
    replan_after_ms: int
    retired: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    reached: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    complete: bool
    def __init__(self, tasks: _Optional[_Iterable[_Union[Work, _Mapping]]] = ..., splits: _Optional[_Iterable[_Union[Work, _Mapping]]] = ..., replan_after_ms: _Optional[int] = ..., retired: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., reached: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., complete: bool = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("id", "descriptor", "config", "order_group", "partitions_json", "rows_estimate", "bytes_estimate")
    class ConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ORDER_GROUP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    ROWS_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    BYTES_ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    id: str
    descriptor: bytes
    config: _containers.ScalarMap[str, str]
    order_group: str
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    rows_estimate: int
    bytes_estimate: int
    def __init__(self, id: _Optional[str] = ..., descriptor: _Optional[bytes] = ..., config: _Optional[_Mapping[str, str]] = ..., order_group: _Optional[str] = ..., partitions_json: _Optional[_Iterable[str]] = ..., rows_estimate: _Optional[int] = ..., bytes_estimate: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("open", "credit", "committed", "drain", "offset_answer", "heartbeat")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    OFFSET_ANSWER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    open: ReadOpen
    credit: _common_pb2.Credit
    committed: Committed
    drain: _common_pb2.Drain
    offset_answer: OffsetAnswer
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, open: _Optional[_Union[ReadOpen, _Mapping]] = ..., credit: _Optional[_Union[_common_pb2.Credit, _Mapping]] = ..., committed: _Optional[_Union[Committed, _Mapping]] = ..., drain: _Optional[_Union[_common_pb2.Drain, _Mapping]] = ..., offset_answer: _Optional[_Union[OffsetAnswer, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class ReadOpen(_message.Message):
    __slots__ = ("generation", "task", "work", "split", "positions", "encodings", "credit", "frame_bytes_target", "traceparent")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    FRAME_BYTES_TARGET_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    generation: int
    task: int
    work: Work
    split: bool
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    encodings: _containers.RepeatedScalarFieldContainer[_common_pb2.Encoding]
    credit: _common_pb2.Credit
    frame_bytes_target: int
    traceparent: str
    def __init__(self, generation: _Optional[int] = ..., task: _Optional[int] = ..., work: _Optional[_Union[Work, _Mapping]] = ..., split: bool = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., encodings: _Optional[_Iterable[_Union[_common_pb2.Encoding, str]]] = ..., credit: _Optional[_Union[_common_pb2.Credit, _Mapping]] = ..., frame_bytes_target: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class Committed(_message.Message):
    __slots__ = ("positions",)
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class OffsetAnswer(_message.Message):
    __slots__ = ("id", "positions")
    ID_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    id: int
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, id: _Optional[int] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("opened", "frame", "caught_up", "offset_query", "end", "heartbeat")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    OFFSET_QUERY_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    opened: ReadOpened
    frame: _frame_pb2.Frame
    caught_up: CaughtUp
    offset_query: OffsetQuery
    end: ReadEnd
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, opened: _Optional[_Union[ReadOpened, _Mapping]] = ..., frame: _Optional[_Union[_frame_pb2.Frame, _Mapping]] = ..., caught_up: _Optional[_Union[CaughtUp, _Mapping]] = ..., offset_query: _Optional[_Union[OffsetQuery, _Mapping]] = ..., end: _Optional[_Union[ReadEnd, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class ReadOpened(_message.Message):
    __slots__ = ("encoding",)
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    encoding: _common_pb2.Encoding
    def __init__(self, encoding: _Optional[_Union[_common_pb2.Encoding, str]] = ...) -> None: ...

class CaughtUp(_message.Message):
    __slots__ = ("retry_after_ms",)
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    retry_after_ms: int
    def __init__(self, retry_after_ms: _Optional[int] = ...) -> None: ...

class OffsetQuery(_message.Message):
    __slots__ = ("id", "partitions_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    id: int
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., partitions_json: _Optional[_Iterable[str]] = ...) -> None: ...

class ReadEnd(_message.Message):
    __slots__ = ("complete",)
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    complete: bool
    def __init__(self, complete: bool = ...) -> None: ...

class AlterOffsetsRequest(_message.Message):
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

class AlterOffsetsResponse(_message.Message):
    __slots__ = ("handled",)
    HANDLED_FIELD_NUMBER: _ClassVar[int]
    handled: bool
    def __init__(self, handled: bool = ...) -> None: ...
