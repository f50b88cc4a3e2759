"""What the REST server and the command line ask of a coordinator.

Decides the words and shapes between the outside (`rest/`, `cli/`) and the engine (`herder.py`); holds no logic. Every
method of `Herder` is called from a thread of the REST server's pool, by many at once, and returns or raises within its
own deadline: mutators write what is wanted, tell the machine, and answer.

Errors are `ApiError`s; their messages are Kafka Connect's to the letter, because clients match them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wherry.contract.position import Position

KAFKA_VERSION = "4.3.1"  # what `GET /` tells: clients parse it to see which calls they may make


class ApiError(Exception):
    """A request that cannot be done: an HTTP status and one message."""

    status = 500

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if status is not None:
            self.status = status


class BadRequestError(ApiError):
    """The request itself is wrong."""

    status = 400


class ForbiddenError(ApiError):
    """The worker's configuration switches this off."""

    status = 403


class NotFoundError(ApiError):
    """No such connector, task, plugin or logger."""

    status = 404


class AlreadyExistsError(ApiError):
    """A connector of that name exists."""

    status = 409


class ConflictError(ApiError):
    """Not possible now; the same request may work later."""

    status = 409


class UnavailableError(ApiError):
    """The part that would answer has not come up yet."""

    status = 503


class State(enum.Enum):
    """States as Kafka Connect shows them; the set is closed, for generated clients know no others."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class TargetState(enum.Enum):
    """What a connector is wanted to be."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class ConnectorType(enum.Enum):
    """Role of a connector; `unknown` when its class cannot be found."""

    SOURCE = "source"
    SINK = "sink"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector as configured; `tasks` are task numbers."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[int, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of the connector itself. An empty `trace` and a None `version` are left out of the answer."""

    state: State
    worker_id: str
    trace: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """State of one task. An empty `trace` and a None `version` are left out of the answer."""

    id: int
    state: State
    worker_id: str
    trace: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorStateInfo:
    """State of a connector and its tasks; tasks sorted by id."""

    name: str
    connector: ConnectorStatus
    tasks: tuple[TaskStatus, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One class as listed. `type` is source, sink, converter, header_converter, transformation or predicate."""

    class_name: str
    type: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigKeyInfo:
    """Definition of a configuration key in Kafka Connect's shape."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    order_in_group: int
    width: str
    display_name: str
    dependents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigValueInfo:
    """Value of a key and what is wrong with it."""

    name: str
    value: str | None
    recommended_values: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """One key of a validation; a key nobody defines has no definition."""

    definition: ConfigKeyInfo | None
    value: ConfigValueInfo


@dataclass(frozen=True, slots=True)
class ConfigInfos:
    """Result of a validation."""

    name: str
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    @property
    def error_count(self) -> int:
        """Number of errors over all keys."""
        return sum(len(config.value.errors) for config in self.configs)

    def errors(self) -> list[str]:
        """All errors in order of the keys."""
        return [error for config in self.configs for error in config.value.errors]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Body of `GET /`; `version` is the Kafka version whose API is served."""

    kafka_cluster_id: str
    commit: str = "unknown"
    version: str = KAFKA_VERSION


@dataclass(frozen=True, slots=True)
class Health:
    """`status` is healthy (200), starting (503) or unhealthy (500)."""

    status: str
    message: str


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """A lease that runs now, for `/wherry/v1/leases`."""

    connector: str
    task: int
    generation: int
    phase: str
    worker: str = ""
    started_ms: int = 0
    splits: tuple[str, ...] = ()
    records: int = 0
    lag: int | None = None
    host: str = ""
    """The machine it runs on; empty until a worker has taken it up."""
    executor: str = ""
    """Spark's id of the executor it runs in; `driver` where workers run beside that."""


@dataclass(frozen=True, slots=True)
class RestartInfo:
    """A connector (task is None) or a task that failed lately, for `/wherry/v1/restarts`.

    Attributes:
        connector: Its name.
        task: Number of the task.
        restarts: Restarts in a row by now, that under way included.
        restarts_max: After so many it is given up; -1 is never.
        next_in_ms: Until the next one; None when none is waited for.
        failure: Why it failed last; empty when it runs since.
    """

    connector: str
    task: int | None
    restarts: int
    restarts_max: int
    next_in_ms: int | None
    failure: str


@dataclass(frozen=True, slots=True)
class RestartNote:
    """One failure or restart of the past, for `/wherry/v1/connectors/NAME/restarts`.

    Attributes:
        at_ms: When, since the epoch.
        task: Number of the task; None for the connector itself.
        happening: "failed" (it is started again by itself), "given up" (it waits for a person) or "asked" (somebody
            asked for a restart).
        error_class: Class of the failure, such as TRANSIENT; empty when somebody asked.
        message: Why it failed.
        attempt: Which restart in a row follows, from 1; of one given up, how many there were.
        wait_ms: How long until that restart; None when there is none.
    """

    at_ms: int
    task: int | None
    happening: str
    error_class: str
    message: str
    attempt: int
    wait_ms: int | None


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two connectors that get in one another's way, and what is to be said of them, for `/wherry/v1/overlaps`."""

    connectors: tuple[str, str]
    message: str


@dataclass(frozen=True, slots=True)
class SidecarInfo:
    """A sidecar that runs now, for `/wherry/v1/sidecars`."""

    plugin: str
    connector: str
    generation: int
    pid: int
    endpoint: str
    rss_bytes: int = 0
    cpu_seconds: float = 0.0
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """Bounded pieces of work of a source; `failed` have failed at least once and are tried again."""

    pending: int
    active: int
    failed: int


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task as the machine sees it. Records count since this worker started; spans are None where nothing is due.

    What counts failures is what Kafka Connect's task-error-metrics count; `last_error_ms` is a time, 0 without one.
    """

    id: int
    state: str
    parked: bool
    restarts: int
    retry_in_ms: int | None
    in_state_ms: int | None
    failure: str
    partitions: tuple[str, ...]
    lag: int | None
    leases: int
    records_read: int
    records_written: int
    errors: int
    failures: int
    skipped: int
    retries: int
    logged: int
    dead_letters: int
    dead_letter_failures: int
    last_error_ms: int


@dataclass(frozen=True, slots=True)
class ConnectorDetail:
    """A connector as the machine sees it, for `/wherry/v1/connectors`."""

    name: str
    state: str
    generation: int
    restarts: int
    retry_in_ms: int | None
    failure: str
    plan_wanted: bool
    next_plan_in_ms: int | None
    splits: SplitCounts
    tasks: tuple[TaskDetail, ...]


@dataclass(frozen=True, slots=True)
class InternalVerifier:
    """What requests between workers are checked with; `key` is None while none has been read."""

    key: bytes | None
    algorithms: tuple[str, ...]


class PluginCatalog(Protocol):
    """What is known of classes and configurations; `plugins.py` and `config/` implement it, the herder passes it on."""

    def plugins(self, *, connectors_only: bool = True) -> list[PluginInfo]:
        """Classes that can be used."""

    def plugin_config(self, plugin: str, version: str | None = None) -> list[ConfigKeyInfo]:
        """Definition of a class's keys.

        NotFoundError `Unknown plugin X.`; BadRequestError for a version that is not installed, and for a class that is
        no plugin of a connector.
        """

    def validate(self, config: Mapping[str, str | None], *, plugin: str | None = None) -> ConfigInfos:
        """Check a configuration; errors of values are part of the answer.

        `plugin` is what the request named, which must fit `connector.class` (else BadRequestError).
        """

    def check(self, config: Mapping[str, str | None]) -> dict[str, str]:
        """The configuration to store, or BadRequestError with all errors in Kafka Connect's text."""

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Role of the configured class; UNKNOWN when there is none such."""


class Herder(Protocol):
    """Everything that can be asked of a running coordinator. 404 texts: reference of each method."""

    def connectors(self) -> list[str]:
        """Names of all connectors."""

    def connector(self, name: str) -> ConnectorInfo:
        """A connector as configured. NotFoundError `Connector X not found`."""

    def put_config(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: TargetState | None = None,
        create_only: bool = False,
    ) -> tuple[bool, ConnectorInfo]:
        """Create or change a connector; True when it was created.

        Validation comes before the look whether it exists. BadRequestError for an invalid configuration;
        AlreadyExistsError `Connector X already exists` with `create_only`.
        """

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Change single keys; None removes a key. NotFoundError `Connector X not found`."""

    def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay. NotFoundError `Connector X not found`."""

    def status(self, name: str) -> ConnectorStateInfo:
        """State of a connector. NotFoundError `No status found for connector X`."""

    def task_status(self, name: str, task: int) -> TaskStatus:
        """State of a task. NotFoundError `No status found for task X-0`."""

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Raw task configurations, by task number. NotFoundError `Connector X not found`."""

    def pause(self, name: str) -> None:
        """Want it paused. NotFoundError `Unknown connector X`."""

    def resume(self, name: str) -> None:
        """Want it running. NotFoundError `Unknown connector X`."""

    def stop(self, name: str) -> None:
        """Want it stopped: no tasks at all. NotFoundError `Unknown connector X`."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStateInfo | None:
        """Restart the connector; None (204) when both flags are false, else the plan with RESTARTING parts.

        NotFoundError `Unknown connector: X`.
        """

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task. NotFoundError `Unknown connector: X`, `Unknown task: X-0`."""

    def offsets(self, name: str) -> list[Position]:
        """Committed positions. NotFoundError `Connector X not found`."""

    def alter_offsets(self, name: str, positions: Sequence[Position] | None) -> str:
        """Write positions, or forget all of them with None; answers the message to show.

        A position without offset forgets that partition. BadRequestError unless STOPPED with no task running. Sinks:
        check and normalise with `wherry.coordinator.offsets.sink_positions` after the look at the state.
        """

    def topics(self, name: str) -> list[str]:
        """Topics the connector has used; empty for an unknown one. ForbiddenError when tracking is off."""

    def reset_topics(self, name: str) -> None:
        """Forget the topics used. ForbiddenError when tracking or reset is off."""

    def plugins(self, *, connectors_only: bool = True) -> list[PluginInfo]:
        """As `PluginCatalog.plugins`."""

    def plugin_config(self, plugin: str, version: str | None = None) -> list[ConfigKeyInfo]:
        """As `PluginCatalog.plugin_config`."""

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> ConfigInfos:
        """As `PluginCatalog.validate`."""

    def internal_verifier(self) -> InternalVerifier | None:
        """What requests between workers are checked with; None where there are no other workers."""

    def server_info(self) -> ServerInfo:
        """Who this is."""

    def health(self) -> Health:
        """Whether the machine's thread answers; never blocks longer than a second."""

    def details(self, name: str | None = None) -> list[ConnectorDetail]:
        """All connectors, or one, as the machine sees them. NotFoundError `Connector X not found`."""

    def leases(self) -> list[LeaseInfo]:
        """Leases running now."""

    def restarts(self) -> list[RestartInfo]:
        """What has failed lately, and whether it is started again by itself."""

    def restart_history(self, name: str) -> list[RestartNote]:
        """The last failures and restarts of a connector, oldest first. NotFoundError `Connector X not found`."""

    def overlaps(self) -> list[Overlap]:
        """Sinks that get in one another's way."""

    def sidecars(self) -> list[SidecarInfo]:
        """Sidecars running now."""
