from wherry.connector.v1 import common_pb2 as _common_pb2
from wherry.connector.v1 import source_pb2 as _source_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PipelineKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PIPELINE_KIND_UNSPECIFIED: _ClassVar[PipelineKind]
    PIPELINE_KIND_SOURCE: _ClassVar[PipelineKind]
    PIPELINE_KIND_SINK: _ClassVar[PipelineKind]
    PIPELINE_KIND_DIRECT: _ClassVar[PipelineKind]
    PIPELINE_KIND_MIRROR: _ClassVar[PipelineKind]

class TransactionBoundary(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSACTION_BOUNDARY_UNSPECIFIED: _ClassVar[TransactionBoundary]
    TRANSACTION_BOUNDARY_POLL: _ClassVar[TransactionBoundary]
    TRANSACTION_BOUNDARY_INTERVAL: _ClassVar[TransactionBoundary]
    TRANSACTION_BOUNDARY_CONNECTOR: _ClassVar[TransactionBoundary]

class LeasePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEASE_PHASE_UNSPECIFIED: _ClassVar[LeasePhase]
    LEASE_PHASE_STARTING: _ClassVar[LeasePhase]
    LEASE_PHASE_RUNNING: _ClassVar[LeasePhase]
    LEASE_PHASE_PAUSED: _ClassVar[LeasePhase]
    LEASE_PHASE_DRAINING: _ClassVar[LeasePhase]
    LEASE_PHASE_RETRYING: _ClassVar[LeasePhase]

class EndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_REASON_UNSPECIFIED: _ClassVar[EndReason]
    END_REASON_DRAINED: _ClassVar[EndReason]
    END_REASON_SPLITS_DONE: _ClassVar[EndReason]
    END_REASON_IDLE: _ClassVar[EndReason]
    END_REASON_FAILED: _ClassVar[EndReason]
    END_REASON_FENCED: _ClassVar[EndReason]
PIPELINE_KIND_UNSPECIFIED: PipelineKind
PIPELINE_KIND_SOURCE: PipelineKind
PIPELINE_KIND_SINK: PipelineKind
PIPELINE_KIND_DIRECT: PipelineKind
PIPELINE_KIND_MIRROR: PipelineKind
TRANSACTION_BOUNDARY_UNSPECIFIED: TransactionBoundary
TRANSACTION_BOUNDARY_POLL: TransactionBoundary
TRANSACTION_BOUNDARY_INTERVAL: TransactionBoundary
TRANSACTION_BOUNDARY_CONNECTOR: TransactionBoundary
LEASE_PHASE_UNSPECIFIED: LeasePhase
LEASE_PHASE_STARTING: LeasePhase
LEASE_PHASE_RUNNING: LeasePhase
LEASE_PHASE_PAUSED: LeasePhase
LEASE_PHASE_DRAINING: LeasePhase
LEASE_PHASE_RETRYING: LeasePhase
END_REASON_UNSPECIFIED: EndReason
END_REASON_DRAINED: EndReason
END_REASON_SPLITS_DONE: EndReason
END_REASON_IDLE: EndReason
END_REASON_FAILED: EndReason
END_REASON_FENCED: EndReason

class LeaseSpec(_message.Message):
    __slots__ = ("lease_id", "connector", "generation", "coordinator_endpoints", "token", "traceparent", "coordinator_certificate")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    connector: str
    generation: int
    coordinator_endpoints: _containers.RepeatedScalarFieldContainer[str]
    token: str
    traceparent: str
    coordinator_certificate: bytes
    def __init__(self, lease_id: _Optional[str] = ..., connector: _Optional[str] = ..., generation: _Optional[int] = ..., coordinator_endpoints: _Optional[_Iterable[str]] = ..., token: _Optional[str] = ..., traceparent: _Optional[str] = ..., coordinator_certificate: _Optional[bytes] = ...) -> None: ...

class OpenLeaseRequest(_message.Message):
    __slots__ = ("lease_id", "generation", "attempt", "worker", "token")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    generation: int
    attempt: int
    worker: WorkerIdentity
    token: str
    def __init__(self, lease_id: _Optional[str] = ..., generation: _Optional[int] = ..., attempt: _Optional[int] = ..., worker: _Optional[_Union[WorkerIdentity, _Mapping]] = ..., token: _Optional[str] = ...) -> None: ...

class WorkerIdentity(_message.Message):
    __slots__ = ("host", "pid", "executor")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    host: str
    pid: int
    executor: str
    def __init__(self, host: _Optional[str] = ..., pid: _Optional[int] = ..., executor: _Optional[str] = ...) -> None: ...

class OpenLeaseResponse(_message.Message):
    __slots__ = ("kind", "task", "config", "worker_config", "work", "split", "positions", "partitions_json", "host_endpoint", "sidecars", "policy", "paused", "exactly_once")
    class ConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class WorkerConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    WORKER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    HOST_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    SIDECARS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    EXACTLY_ONCE_FIELD_NUMBER: _ClassVar[int]
    kind: PipelineKind
    task: int
    config: _containers.ScalarMap[str, str]
    worker_config: _containers.ScalarMap[str, str]
    work: _source_pb2.Work
    split: bool
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    host_endpoint: str
    sidecars: _containers.RepeatedCompositeFieldContainer[SidecarSpec]
    policy: LeasePolicy
    paused: bool
    exactly_once: ExactlyOnce
    def __init__(self, kind: _Optional[_Union[PipelineKind, str]] = ..., task: _Optional[int] = ..., config: _Optional[_Mapping[str, str]] = ..., worker_config: _Optional[_Mapping[str, str]] = ..., work: _Optional[_Union[_source_pb2.Work, _Mapping]] = ..., split: bool = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., partitions_json: _Optional[_Iterable[str]] = ..., host_endpoint: _Optional[str] = ..., sidecars: _Optional[_Iterable[_Union[SidecarSpec, _Mapping]]] = ..., policy: _Optional[_Union[LeasePolicy, _Mapping]] = ..., paused: bool = ..., exactly_once: _Optional[_Union[ExactlyOnce, _Mapping]] = ...) -> None: ...

class ExactlyOnce(_message.Message):
    __slots__ = ("transactional_id", "offsets_topic", "boundary", "interval_ms")
    TRANSACTIONAL_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_TOPIC_FIELD_NUMBER: _ClassVar[int]
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    transactional_id: str
    offsets_topic: str
    boundary: TransactionBoundary
    interval_ms: int
    def __init__(self, transactional_id: _Optional[str] = ..., offsets_topic: _Optional[str] = ..., boundary: _Optional[_Union[TransactionBoundary, str]] = ..., interval_ms: _Optional[int] = ...) -> None: ...

class SidecarSpec(_message.Message):
    __slots__ = ("plugin", "plugin_directory", "class_name", "role", "connector", "generation", "config", "secrets", "typed", "parkable", "alias", "raw")
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
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    TYPED_FIELD_NUMBER: _ClassVar[int]
    PARKABLE_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    plugin: str
    plugin_directory: str
    class_name: str
    role: _common_pb2.Role
    connector: str
    generation: int
    config: _containers.ScalarMap[str, str]
    secrets: _containers.ScalarMap[str, str]
    typed: bool
    parkable: bool
    alias: str
    raw: bool
    def __init__(self, plugin: _Optional[str] = ..., plugin_directory: _Optional[str] = ..., class_name: _Optional[str] = ..., role: _Optional[_Union[_common_pb2.Role, str]] = ..., connector: _Optional[str] = ..., generation: _Optional[int] = ..., config: _Optional[_Mapping[str, str]] = ..., secrets: _Optional[_Mapping[str, str]] = ..., typed: bool = ..., parkable: bool = ..., alias: _Optional[str] = ..., raw: bool = ...) -> None: ...

class LeasePolicy(_message.Message):
    __slots__ = ("report_interval_ms", "commit_interval_ms", "idle_park_ms", "coordinator_timeout_ms", "drain_timeout_ms")
    REPORT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    IDLE_PARK_MS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    report_interval_ms: int
    commit_interval_ms: int
    idle_park_ms: int
    coordinator_timeout_ms: int
    drain_timeout_ms: int
    def __init__(self, report_interval_ms: _Optional[int] = ..., commit_interval_ms: _Optional[int] = ..., idle_park_ms: _Optional[int] = ..., coordinator_timeout_ms: _Optional[int] = ..., drain_timeout_ms: _Optional[int] = ...) -> None: ...

class ProgressRequest(_message.Message):
    __slots__ = ("open", "report", "ended", "query")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    open: ProgressOpen
    report: LeaseReport
    ended: LeaseEnded
    query: PositionQuery
    def __init__(self, open: _Optional[_Union[ProgressOpen, _Mapping]] = ..., report: _Optional[_Union[LeaseReport, _Mapping]] = ..., ended: _Optional[_Union[LeaseEnded, _Mapping]] = ..., query: _Optional[_Union[PositionQuery, _Mapping]] = ...) -> None: ...

class ProgressOpen(_message.Message):
    __slots__ = ("lease_id", "generation", "attempt", "token")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    generation: int
    attempt: int
    token: str
    def __init__(self, lease_id: _Optional[str] = ..., generation: _Optional[int] = ..., attempt: _Optional[int] = ..., token: _Optional[str] = ...) -> None: ...

class LeaseReport(_message.Message):
    __slots__ = ("seq", "phase", "positions", "splits_done", "want_split", "counts", "tokens", "lag", "trouble", "topics", "sidecar_pids")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    SPLITS_DONE_FIELD_NUMBER: _ClassVar[int]
    WANT_SPLIT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    SIDECAR_PIDS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    phase: LeasePhase
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    splits_done: _containers.RepeatedScalarFieldContainer[str]
    want_split: bool
    counts: LeaseCounts
    tokens: _containers.RepeatedScalarFieldContainer[bytes]
    lag: int
    trouble: str
    topics: _containers.RepeatedScalarFieldContainer[str]
    sidecar_pids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, seq: _Optional[int] = ..., phase: _Optional[_Union[LeasePhase, str]] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ..., splits_done: _Optional[_Iterable[str]] = ..., want_split: bool = ..., counts: _Optional[_Union[LeaseCounts, _Mapping]] = ..., tokens: _Optional[_Iterable[bytes]] = ..., lag: _Optional[int] = ..., trouble: _Optional[str] = ..., topics: _Optional[_Iterable[str]] = ..., sidecar_pids: _Optional[_Iterable[int]] = ...) -> None: ...

class LeaseCounts(_message.Message):
    __slots__ = ("records_read", "records_written", "bytes_read", "bytes_written", "records_filtered", "failures", "errors", "skipped", "retries", "dead_letters", "batches", "read_time_us", "convert_time_us", "write_time_us", "commit_time_us", "commits", "latency_buckets", "logged", "dead_letter_failures", "last_error_ms")
    RECORDS_READ_FIELD_NUMBER: _ClassVar[int]
    RECORDS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    BYTES_READ_FIELD_NUMBER: _ClassVar[int]
    BYTES_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FILTERED_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    READ_TIME_US_FIELD_NUMBER: _ClassVar[int]
    CONVERT_TIME_US_FIELD_NUMBER: _ClassVar[int]
    WRITE_TIME_US_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIME_US_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    LOGGED_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FAILURES_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_MS_FIELD_NUMBER: _ClassVar[int]
    records_read: int
    records_written: int
    bytes_read: int
    bytes_written: int
    records_filtered: int
    failures: int
    errors: int
    skipped: int
    retries: int
    dead_letters: int
    batches: int
    read_time_us: int
    convert_time_us: int
    write_time_us: int
    commit_time_us: int
    commits: int
    latency_buckets: _containers.RepeatedScalarFieldContainer[int]
    logged: int
    dead_letter_failures: int
    last_error_ms: int
    def __init__(self, records_read: _Optional[int] = ..., records_written: _Optional[int] = ..., bytes_read: _Optional[int] = ..., bytes_written: _Optional[int] = ..., records_filtered: _Optional[int] = ..., failures: _Optional[int] = ..., errors: _Optional[int] = ..., skipped: _Optional[int] = ..., retries: _Optional[int] = ..., dead_letters: _Optional[int] = ..., batches: _Optional[int] = ..., read_time_us: _Optional[int] = ..., convert_time_us: _Optional[int] = ..., write_time_us: _Optional[int] = ..., commit_time_us: _Optional[int] = ..., commits: _Optional[int] = ..., latency_buckets: _Optional[_Iterable[int]] = ..., logged: _Optional[int] = ..., dead_letter_failures: _Optional[int] = ..., last_error_ms: _Optional[int] = ...) -> None: ...

class LeaseEnded(_message.Message):
    __slots__ = ("reason", "error_class", "message", "trace")
    REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_CLASS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    reason: EndReason
    error_class: _common_pb2.ErrorClass
    message: str
    trace: str
    def __init__(self, reason: _Optional[_Union[EndReason, str]] = ..., error_class: _Optional[_Union[_common_pb2.ErrorClass, str]] = ..., message: _Optional[str] = ..., trace: _Optional[str] = ...) -> None: ...

class PositionQuery(_message.Message):
    __slots__ = ("id", "partitions_json")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    id: int
    partitions_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., partitions_json: _Optional[_Iterable[str]] = ...) -> None: ...

class ProgressResponse(_message.Message):
    __slots__ = ("committed", "drain", "pause", "assign", "answer", "heartbeat", "fence")
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    ASSIGN_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    committed: ReportCommitted
    drain: _common_pb2.Drain
    pause: PauseLease
    assign: AssignWork
    answer: PositionAnswer
    heartbeat: _common_pb2.Heartbeat
    fence: FenceLease
    def __init__(self, committed: _Optional[_Union[ReportCommitted, _Mapping]] = ..., drain: _Optional[_Union[_common_pb2.Drain, _Mapping]] = ..., pause: _Optional[_Union[PauseLease, _Mapping]] = ..., assign: _Optional[_Union[AssignWork, _Mapping]] = ..., answer: _Optional[_Union[PositionAnswer, _Mapping]] = ..., heartbeat: _Optional[_Union[_common_pb2.Heartbeat, _Mapping]] = ..., fence: _Optional[_Union[FenceLease, _Mapping]] = ...) -> None: ...

class ReportCommitted(_message.Message):
    __slots__ = ("seq",)
    SEQ_FIELD_NUMBER: _ClassVar[int]
    seq: int
    def __init__(self, seq: _Optional[int] = ...) -> None: ...

class PauseLease(_message.Message):
    __slots__ = ("paused",)
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    paused: bool
    def __init__(self, paused: bool = ...) -> None: ...

class AssignWork(_message.Message):
    __slots__ = ("work", "positions")
    WORK_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    work: _source_pb2.Work
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, work: _Optional[_Union[_source_pb2.Work, _Mapping]] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class PositionAnswer(_message.Message):
    __slots__ = ("id", "positions")
    ID_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    id: int
    positions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Position]
    def __init__(self, id: _Optional[int] = ..., positions: _Optional[_Iterable[_Union[_common_pb2.Position, _Mapping]]] = ...) -> None: ...

class FenceLease(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...
