from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CLASS_UNSPECIFIED: _ClassVar[ErrorClass]
    ERROR_CLASS_TRANSIENT: _ClassVar[ErrorClass]
    ERROR_CLASS_THROTTLED: _ClassVar[ErrorClass]
    ERROR_CLASS_CONFIG: _ClassVar[ErrorClass]
    ERROR_CLASS_AUTH: _ClassVar[ErrorClass]
    ERROR_CLASS_OFFSET_LOST: _ClassVar[ErrorClass]
    ERROR_CLASS_SCHEMA: _ClassVar[ErrorClass]
    ERROR_CLASS_FENCED: _ClassVar[ErrorClass]
    ERROR_CLASS_BUG: _ClassVar[ErrorClass]

class Encoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENCODING_UNSPECIFIED: _ClassVar[Encoding]
    ENCODING_ARROW_IPC: _ClassVar[Encoding]
    ENCODING_COLUMNS: _ClassVar[Encoding]
    ENCODING_JSON_LINES: _ClassVar[Encoding]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_SOURCE: _ClassVar[Role]
    ROLE_SINK: _ClassVar[Role]
    ROLE_TRANSFORM: _ClassVar[Role]
ERROR_CLASS_UNSPECIFIED: ErrorClass
ERROR_CLASS_TRANSIENT: ErrorClass
ERROR_CLASS_THROTTLED: ErrorClass
ERROR_CLASS_CONFIG: ErrorClass
ERROR_CLASS_AUTH: ErrorClass
ERROR_CLASS_OFFSET_LOST: ErrorClass
ERROR_CLASS_SCHEMA: ErrorClass
ERROR_CLASS_FENCED: ErrorClass
ERROR_CLASS_BUG: ErrorClass
ENCODING_UNSPECIFIED: Encoding
ENCODING_ARROW_IPC: Encoding
ENCODING_COLUMNS: Encoding
ENCODING_JSON_LINES: Encoding
ROLE_UNSPECIFIED: Role
ROLE_SOURCE: Role
ROLE_SINK: Role
ROLE_TRANSFORM: Role

class Position(_message.Message):
    __slots__ = ("partition_json", "offset_json")
    PARTITION_JSON_FIELD_NUMBER: _ClassVar[int]
    OFFSET_JSON_FIELD_NUMBER: _ClassVar[int]
    partition_json: str
    offset_json: str
    def __init__(self, partition_json: _Optional[str] = ..., offset_json: _Optional[str] = ...) -> None: ...

class Mark(_message.Message):
    __slots__ = ("row_count", "position")
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    row_count: int
    position: Position
    def __init__(self, row_count: _Optional[int] = ..., position: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class RowError(_message.Message):
    __slots__ = ("row", "error_class", "reason", "field_path", "message", "raw")
    ROW_FIELD_NUMBER: _ClassVar[int]
    ERROR_CLASS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_PATH_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    row: int
    error_class: ErrorClass
    reason: str
    field_path: str
    message: str
    raw: bytes
    def __init__(self, row: _Optional[int] = ..., error_class: _Optional[_Union[ErrorClass, str]] = ..., reason: _Optional[str] = ..., field_path: _Optional[str] = ..., message: _Optional[str] = ..., raw: _Optional[bytes] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("message_bytes_max", "frame_bytes_target", "row_bytes_max", "frames_unacked_max", "bytes_unacked_max")
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    FRAME_BYTES_TARGET_FIELD_NUMBER: _ClassVar[int]
    ROW_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    FRAMES_UNACKED_MAX_FIELD_NUMBER: _ClassVar[int]
    BYTES_UNACKED_MAX_FIELD_NUMBER: _ClassVar[int]
    message_bytes_max: int
    frame_bytes_target: int
    row_bytes_max: int
    frames_unacked_max: int
    bytes_unacked_max: int
    def __init__(self, message_bytes_max: _Optional[int] = ..., frame_bytes_target: _Optional[int] = ..., row_bytes_max: _Optional[int] = ..., frames_unacked_max: _Optional[int] = ..., bytes_unacked_max: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("frames", "bytes")
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    frames: int
    bytes: int
    def __init__(self, frames: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("time_ms",)
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    def __init__(self, time_ms: _Optional[int] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("deadline_ms",)
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    deadline_ms: int
    def __init__(self, deadline_ms: _Optional[int] = ...) -> None: ...
