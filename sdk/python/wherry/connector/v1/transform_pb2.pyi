from wherry.connector.v1 import common_pb2 as _common_pb2
from wherry.connector.v1 import frame_pb2 as _frame_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApplyRequest(_message.Message):
    __slots__ = ("open", "frame", "heartbeat")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    open: ApplyOpen
    frame: _frame_pb2.Frame
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, open: _Optional[_Union[ApplyOpen, _Mapping]] = ..., frame: _Optional[_Union[_frame_pb2.Frame, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class ApplyOpen(_message.Message):
    __slots__ = ("generation", "task", "encodings")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    task: int
    encodings: _containers.RepeatedScalarFieldContainer[_common_pb2.Encoding]
    def __init__(self, generation: _Optional[int] = ..., task: _Optional[int] = ..., encodings: _Optional[_Iterable[_Union[_common_pb2.Encoding, str]]] = ...) -> None: ...

class ApplyResponse(_message.Message):
    __slots__ = ("opened", "frame", "heartbeat")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    opened: ApplyOpened
    frame: TransformedFrame
    heartbeat: _common_pb2.Heartbeat
    def __init__(self, opened: _Optional[_Union[ApplyOpened, _Mapping]] = ..., frame: _Optional[_Union[TransformedFrame, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ...) -> None: ...

class ApplyOpened(_message.Message):
    __slots__ = ("encoding", "credit")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    encoding: _common_pb2.Encoding
    credit: _common_pb2.Credit
    def __init__(self, encoding: _Optional[_Union[_common_pb2.Encoding, str]] = ..., credit: _Optional[_Union[_common_pb2.Credit, _Mapping]] = ...) -> None: ...

class TransformedFrame(_message.Message):
    __slots__ = ("frame", "lineage", "row_errors", "answers_seq")
    FRAME_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    ROW_ERRORS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_SEQ_FIELD_NUMBER: _ClassVar[int]
    frame: _frame_pb2.Frame
    lineage: _containers.RepeatedScalarFieldContainer[int]
    row_errors: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowError]
    answers_seq: int
    def __init__(self, frame: _Optional[_Union[_frame_pb2.Frame, _Mapping]] = ..., lineage: _Optional[_Iterable[int]] = ..., row_errors: _Optional[_Iterable[_Union[_common_pb2.RowError, _Mapping]]] = ..., answers_seq: _Optional[int] = ...) -> None: ...
