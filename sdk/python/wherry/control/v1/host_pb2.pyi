from wherry.control.v1 import lease_pb2 as _lease_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AcquireSidecarRequest(_message.Message):
    __slots__ = ("sidecar", "holder", "holder_pid", "timeout_ms")
    SIDECAR_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    HOLDER_PID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    sidecar: _lease_pb2.SidecarSpec
    holder: str
    holder_pid: int
    timeout_ms: int
    def __init__(self, sidecar: _Optional[_Union[_lease_pb2.SidecarSpec, _Mapping]] = ..., holder: _Optional[str] = ..., holder_pid: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class AcquireSidecarResponse(_message.Message):
    __slots__ = ("endpoint", "pid", "instance_id", "message_bytes_max")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    pid: int
    instance_id: str
    message_bytes_max: int
    def __init__(self, endpoint: _Optional[str] = ..., pid: _Optional[int] = ..., instance_id: _Optional[str] = ..., message_bytes_max: _Optional[int] = ...) -> None: ...

class ReleaseSidecarRequest(_message.Message):
    __slots__ = ("instance_id", "holder")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    holder: str
    def __init__(self, instance_id: _Optional[str] = ..., holder: _Optional[str] = ...) -> None: ...

class ReleaseSidecarResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopConnectorRequest(_message.Message):
    __slots__ = ("connector", "below_generation", "deadline_ms")
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    BELOW_GENERATION_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    connector: str
    below_generation: int
    deadline_ms: int
    def __init__(self, connector: _Optional[str] = ..., below_generation: _Optional[int] = ..., deadline_ms: _Optional[int] = ...) -> None: ...

class StopConnectorResponse(_message.Message):
    __slots__ = ("stopped",)
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    stopped: int
    def __init__(self, stopped: _Optional[int] = ...) -> None: ...

class AcquirePluginRequest(_message.Message):
    __slots__ = ("plugin", "plugin_directory", "holder", "timeout_ms", "planning")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PLANNING_FIELD_NUMBER: _ClassVar[int]
    plugin: str
    plugin_directory: str
    holder: str
    timeout_ms: int
    planning: bool
    def __init__(self, plugin: _Optional[str] = ..., plugin_directory: _Optional[str] = ..., holder: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., planning: bool = ...) -> None: ...

class AcquirePluginResponse(_message.Message):
    __slots__ = ("endpoint", "instance_id")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    instance_id: str
    def __init__(self, endpoint: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class ListSidecarsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSidecarsResponse(_message.Message):
    __slots__ = ("sidecars",)
    SIDECARS_FIELD_NUMBER: _ClassVar[int]
    sidecars: _containers.RepeatedCompositeFieldContainer[SidecarStatus]
    def __init__(self, sidecars: _Optional[_Iterable[_Union[SidecarStatus, _Mapping]]] = ...) -> None: ...

class SidecarStatus(_message.Message):
    __slots__ = ("plugin", "connector", "generation", "instance_id", "pid", "endpoint", "rss_bytes", "cpu_ms", "restarts", "holders")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    plugin: str
    connector: str
    generation: int
    instance_id: str
    pid: int
    endpoint: str
    rss_bytes: int
    cpu_ms: int
    restarts: int
    holders: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, plugin: _Optional[str] = ..., connector: _Optional[str] = ..., generation: _Optional[int] = ..., instance_id: _Optional[str] = ..., pid: _Optional[int] = ..., endpoint: _Optional[str] = ..., rss_bytes: _Optional[int] = ..., cpu_ms: _Optional[int] = ..., restarts: _Optional[int] = ..., holders: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchSidecarsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchSidecarsResponse(_message.Message):
    __slots__ = ("connector", "instance_id", "pid", "log_line", "exit")
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    LOG_LINE_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    connector: str
    instance_id: str
    pid: int
    log_line: str
    exit: SidecarExit
    def __init__(self, connector: _Optional[str] = ..., instance_id: _Optional[str] = ..., pid: _Optional[int] = ..., log_line: _Optional[str] = ..., exit: _Optional[_Union[SidecarExit, _Mapping]] = ...) -> None: ...

class SidecarExit(_message.Message):
    __slots__ = ("code", "message", "expected")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    expected: bool
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., expected: bool = ...) -> None: ...
