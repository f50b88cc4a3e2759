from wherry.connector.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SinkClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SINK_CLASS_UNSPECIFIED: _ClassVar[SinkClass]
    SINK_CLASS_APPEND: _ClassVar[SinkClass]
    SINK_CLASS_IDEMPOTENT: _ClassVar[SinkClass]
    SINK_CLASS_TWO_PHASE: _ClassVar[SinkClass]
    SINK_CLASS_TRANSACTIONAL: _ClassVar[SinkClass]

class SourceClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_CLASS_UNSPECIFIED: _ClassVar[SourceClass]
    SOURCE_CLASS_REPLAYABLE: _ClassVar[SourceClass]
    SOURCE_CLASS_LEASED: _ClassVar[SourceClass]

class ConfigType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_TYPE_UNSPECIFIED: _ClassVar[ConfigType]
    CONFIG_TYPE_BOOLEAN: _ClassVar[ConfigType]
    CONFIG_TYPE_STRING: _ClassVar[ConfigType]
    CONFIG_TYPE_INT: _ClassVar[ConfigType]
    CONFIG_TYPE_SHORT: _ClassVar[ConfigType]
    CONFIG_TYPE_LONG: _ClassVar[ConfigType]
    CONFIG_TYPE_DOUBLE: _ClassVar[ConfigType]
    CONFIG_TYPE_LIST: _ClassVar[ConfigType]
    CONFIG_TYPE_CLASS: _ClassVar[ConfigType]
    CONFIG_TYPE_PASSWORD: _ClassVar[ConfigType]

class ConfigImportance(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_IMPORTANCE_UNSPECIFIED: _ClassVar[ConfigImportance]
    CONFIG_IMPORTANCE_HIGH: _ClassVar[ConfigImportance]
    CONFIG_IMPORTANCE_MEDIUM: _ClassVar[ConfigImportance]
    CONFIG_IMPORTANCE_LOW: _ClassVar[ConfigImportance]

class ConfigWidth(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_WIDTH_UNSPECIFIED: _ClassVar[ConfigWidth]
    CONFIG_WIDTH_SHORT: _ClassVar[ConfigWidth]
    CONFIG_WIDTH_MEDIUM: _ClassVar[ConfigWidth]
    CONFIG_WIDTH_LONG: _ClassVar[ConfigWidth]

class ValidationLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALIDATION_LEVEL_UNSPECIFIED: _ClassVar[ValidationLevel]
    VALIDATION_LEVEL_STATIC: _ClassVar[ValidationLevel]
    VALIDATION_LEVEL_CONNECT: _ClassVar[ValidationLevel]

class LogLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_LEVEL_UNSPECIFIED: _ClassVar[LogLevel]
    LOG_LEVEL_DEBUG: _ClassVar[LogLevel]
    LOG_LEVEL_INFO: _ClassVar[LogLevel]
    LOG_LEVEL_WARN: _ClassVar[LogLevel]
    LOG_LEVEL_ERROR: _ClassVar[LogLevel]
SINK_CLASS_UNSPECIFIED: SinkClass
SINK_CLASS_APPEND: SinkClass
SINK_CLASS_IDEMPOTENT: SinkClass
SINK_CLASS_TWO_PHASE: SinkClass
SINK_CLASS_TRANSACTIONAL: SinkClass
SOURCE_CLASS_UNSPECIFIED: SourceClass
SOURCE_CLASS_REPLAYABLE: SourceClass
SOURCE_CLASS_LEASED: SourceClass
CONFIG_TYPE_UNSPECIFIED: ConfigType
CONFIG_TYPE_BOOLEAN: ConfigType
CONFIG_TYPE_STRING: ConfigType
CONFIG_TYPE_INT: ConfigType
CONFIG_TYPE_SHORT: ConfigType
CONFIG_TYPE_LONG: ConfigType
CONFIG_TYPE_DOUBLE: ConfigType
CONFIG_TYPE_LIST: ConfigType
CONFIG_TYPE_CLASS: ConfigType
CONFIG_TYPE_PASSWORD: ConfigType
CONFIG_IMPORTANCE_UNSPECIFIED: ConfigImportance
CONFIG_IMPORTANCE_HIGH: ConfigImportance
CONFIG_IMPORTANCE_MEDIUM: ConfigImportance
CONFIG_IMPORTANCE_LOW: ConfigImportance
CONFIG_WIDTH_UNSPECIFIED: ConfigWidth
CONFIG_WIDTH_SHORT: ConfigWidth
CONFIG_WIDTH_MEDIUM: ConfigWidth
CONFIG_WIDTH_LONG: ConfigWidth
VALIDATION_LEVEL_UNSPECIFIED: ValidationLevel
VALIDATION_LEVEL_STATIC: ValidationLevel
VALIDATION_LEVEL_CONNECT: ValidationLevel
LOG_LEVEL_UNSPECIFIED: LogLevel
LOG_LEVEL_DEBUG: LogLevel
LOG_LEVEL_INFO: LogLevel
LOG_LEVEL_WARN: LogLevel
LOG_LEVEL_ERROR: LogLevel

class HelloRequest(_message.Message):
    __slots__ = ("engine_version", "revision_min", "revision_max", "features", "limits", "instance_id")
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_MIN_FIELD_NUMBER: _ClassVar[int]
    REVISION_MAX_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    engine_version: str
    revision_min: int
    revision_max: int
    features: _containers.RepeatedScalarFieldContainer[str]
    limits: _common_pb2.Limits
    instance_id: str
    def __init__(self, engine_version: _Optional[str] = ..., revision_min: _Optional[int] = ..., revision_max: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[_common_pb2.Limits, _Mapping]] = ..., instance_id: _Optional[str] = ...) -> None: ...

class HelloResponse(_message.Message):
    __slots__ = ("plugin_name", "plugin_version", "revision", "features", "limits", "encodings", "instance_id", "sdk")
    PLUGIN_NAME_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    plugin_name: str
    plugin_version: str
    revision: int
    features: _containers.RepeatedScalarFieldContainer[str]
    limits: _common_pb2.Limits
    encodings: _containers.RepeatedScalarFieldContainer[_common_pb2.Encoding]
    instance_id: str
    sdk: str
    def __init__(self, plugin_name: _Optional[str] = ..., plugin_version: _Optional[str] = ..., revision: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[_common_pb2.Limits, _Mapping]] = ..., encodings: _Optional[_Iterable[_Union[_common_pb2.Encoding, str]]] = ..., instance_id: _Optional[str] = ..., sdk: _Optional[str] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("classes",)
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    classes: _containers.RepeatedCompositeFieldContainer[ClassDescription]
    def __init__(self, classes: _Optional[_Iterable[_Union[ClassDescription, _Mapping]]] = ...) -> None: ...

class ClassDescription(_message.Message):
    __slots__ = ("class_name", "aliases", "role", "version", "config", "partition_schema_json", "offset_schema_json", "source_class", "sink_class", "capabilities", "documentation")
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARTITION_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    OFFSET_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_CLASS_FIELD_NUMBER: _ClassVar[int]
    SINK_CLASS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTATION_FIELD_NUMBER: _ClassVar[int]
    class_name: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    role: _common_pb2.Role
    version: str
    config: _containers.RepeatedCompositeFieldContainer[ConfigKey]
    partition_schema_json: str
    offset_schema_json: str
    source_class: SourceClass
    sink_class: SinkClass
    capabilities: Capabilities
    documentation: str
    def __init__(self, class_name: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., role: _Optional[_Union[_common_pb2.Role, str]] = ..., version: _Optional[str] = ..., config: _Optional[_Iterable[_Union[ConfigKey, _Mapping]]] = ..., partition_schema_json: _Optional[str] = ..., offset_schema_json: _Optional[str] = ..., source_class: _Optional[_Union[SourceClass, str]] = ..., sink_class: _Optional[_Union[SinkClass, str]] = ..., capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., documentation: _Optional[str] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("splits", "watch", "parkable", "alter_offsets", "typed", "raw", "transaction_boundaries", "deletes")
    SPLITS_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    PARKABLE_FIELD_NUMBER: _ClassVar[int]
    ALTER_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    TYPED_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    splits: bool
    watch: bool
    parkable: bool
    alter_offsets: bool
    typed: bool
    raw: bool
    transaction_boundaries: bool
    deletes: bool
    def __init__(self, splits: bool = ..., watch: bool = ..., parkable: bool = ..., alter_offsets: bool = ..., typed: bool = ..., raw: bool = ..., transaction_boundaries: bool = ..., deletes: bool = ...) -> None: ...

class ConfigKey(_message.Message):
    __slots__ = ("name", "type", "default_value", "required", "importance", "documentation", "group", "order_in_group", "width", "display_name", "dependents", "validators", "recommended_values", "aliases")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTATION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ORDER_IN_GROUP_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DEPENDENTS_FIELD_NUMBER: _ClassVar[int]
    VALIDATORS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDED_VALUES_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ConfigType
    default_value: str
    required: bool
    importance: ConfigImportance
    documentation: str
    group: str
    order_in_group: int
    width: ConfigWidth
    display_name: str
    dependents: _containers.RepeatedScalarFieldContainer[str]
    validators: _containers.RepeatedCompositeFieldContainer[Validator]
    recommended_values: _containers.RepeatedScalarFieldContainer[str]
    aliases: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ConfigType, str]] = ..., default_value: _Optional[str] = ..., required: bool = ..., importance: _Optional[_Union[ConfigImportance, str]] = ..., documentation: _Optional[str] = ..., group: _Optional[str] = ..., order_in_group: _Optional[int] = ..., width: _Optional[_Union[ConfigWidth, str]] = ..., display_name: _Optional[str] = ..., dependents: _Optional[_Iterable[str]] = ..., validators: _Optional[_Iterable[_Union[Validator, _Mapping]]] = ..., recommended_values: _Optional[_Iterable[str]] = ..., aliases: _Optional[_Iterable[str]] = ...) -> None: ...

class Validator(_message.Message):
    __slots__ = ("range", "one_of", "pattern", "non_empty")
    RANGE_FIELD_NUMBER: _ClassVar[int]
    ONE_OF_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    NON_EMPTY_FIELD_NUMBER: _ClassVar[int]
    range: RangeValidator
    one_of: OneOfValidator
    pattern: str
    non_empty: bool
    def __init__(self, range: _Optional[_Union[RangeValidator, _Mapping]] = ..., one_of: _Optional[_Union[OneOfValidator, _Mapping]] = ..., pattern: _Optional[str] = ..., non_empty: bool = ...) -> None: ...

class RangeValidator(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: float
    max: float
    def __init__(self, min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class OneOfValidator(_message.Message):
    __slots__ = ("values", "ignore_case")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    ignore_case: bool
    def __init__(self, values: _Optional[_Iterable[str]] = ..., ignore_case: bool = ...) -> None: ...

class ValidateConfigRequest(_message.Message):
    __slots__ = ("class_name", "config", "secrets", "level")
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
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    class_name: str
    config: _containers.ScalarMap[str, str]
    secrets: _containers.ScalarMap[str, str]
    level: ValidationLevel
    def __init__(self, class_name: _Optional[str] = ..., config: _Optional[_Mapping[str, str]] = ..., secrets: _Optional[_Mapping[str, str]] = ..., level: _Optional[_Union[ValidationLevel, str]] = ...) -> None: ...

class ValidateConfigResponse(_message.Message):
    __slots__ = ("values", "sink_class")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SINK_CLASS_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[ConfigValue]
    sink_class: SinkClass
    def __init__(self, values: _Optional[_Iterable[_Union[ConfigValue, _Mapping]]] = ..., sink_class: _Optional[_Union[SinkClass, str]] = ...) -> None: ...

class ConfigValue(_message.Message):
    __slots__ = ("name", "errors", "recommended_values", "visible")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDED_VALUES_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    errors: _containers.RepeatedScalarFieldContainer[str]
    recommended_values: _containers.RepeatedScalarFieldContainer[str]
    visible: bool
    def __init__(self, name: _Optional[str] = ..., errors: _Optional[_Iterable[str]] = ..., recommended_values: _Optional[_Iterable[str]] = ..., visible: bool = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("connector", "class_name", "generation", "config", "secrets")
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
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    connector: str
    class_name: str
    generation: int
    config: _containers.ScalarMap[str, str]
    secrets: _containers.ScalarMap[str, str]
    def __init__(self, connector: _Optional[str] = ..., class_name: _Optional[str] = ..., generation: _Optional[int] = ..., config: _Optional[_Mapping[str, str]] = ..., secrets: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ConfigureResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProbeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProbeResponse(_message.Message):
    __slots__ = ("detail",)
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    detail: str
    def __init__(self, detail: _Optional[str] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("deadline_ms",)
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    deadline_ms: int
    def __init__(self, deadline_ms: _Optional[int] = ...) -> None: ...

class StopResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OnDeleteRequest(_message.Message):
    __slots__ = ("connector",)
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    connector: str
    def __init__(self, connector: _Optional[str] = ...) -> None: ...

class OnDeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EventsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EventsResponse(_message.Message):
    __slots__ = ("time_ms", "connector", "log", "metric", "plan_changed", "rate_limited", "config_update", "failed")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    PLAN_CHANGED_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMITED_FIELD_NUMBER: _ClassVar[int]
    CONFIG_UPDATE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    connector: str
    log: LogEvent
    metric: MetricEvent
    plan_changed: PlanChanged
    rate_limited: RateLimited
    config_update: ConfigUpdate
    failed: ConnectorFailed
    def __init__(self, time_ms: _Optional[int] = ..., connector: _Optional[str] = ..., log: _Optional[_Union[LogEvent, _Mapping]] = ..., metric: _Optional[_Union[MetricEvent, _Mapping]] = ..., plan_changed: _Optional[_Union[PlanChanged, _Mapping]] = ..., rate_limited: _Optional[_Union[RateLimited, _Mapping]] = ..., config_update: _Optional[_Union[ConfigUpdate, _Mapping]] = ..., failed: _Optional[_Union[ConnectorFailed, _Mapping]] = ...) -> None: ...

class LogEvent(_message.Message):
    __slots__ = ("level", "logger", "message", "fields")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LOGGER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    level: LogLevel
    logger: str
    message: str
    fields: _containers.ScalarMap[str, str]
    def __init__(self, level: _Optional[_Union[LogLevel, str]] = ..., logger: _Optional[str] = ..., message: _Optional[str] = ..., fields: _Optional[_Mapping[str, str]] = ...) -> None: ...

class MetricEvent(_message.Message):
    __slots__ = ("name", "value", "counter", "unit", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    counter: bool
    unit: str
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., counter: bool = ..., unit: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PlanChanged(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class RateLimited(_message.Message):
    __slots__ = ("until_ms", "message")
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    until_ms: int
    message: str
    def __init__(self, until_ms: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ConfigUpdate(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ConnectorFailed(_message.Message):
    __slots__ = ("error_class", "message")
    ERROR_CLASS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    error_class: _common_pb2.ErrorClass
    message: str
    def __init__(self, error_class: _Optional[_Union[_common_pb2.ErrorClass, str]] = ..., message: _Optional[str] = ...) -> None: ...
