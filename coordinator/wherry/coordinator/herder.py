"""The coordinator as REST and the command line see it: every request of `api.Herder`, over all the parts.

Answers from stores and asks the machine, and decides nothing that the machine decides; `parts.py` puts the parts
together. Mutators write what is wanted to the config store, tell the machine, and return.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Final, TypeVar

from wherry.contract.description import Role
from wherry.contract.errors import ConfigError, WherryError
from wherry.contract.position import Position
from wherry.coordinator import api, exactly_once, offsets
from wherry.coordinator import events as ev
from wherry.coordinator.config.direct import is_direct
from wherry.coordinator.config.tasksmax import tasks_max
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.details import detail, lease_info
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.machine import Machine
from wherry.coordinator.manners import (
    lease_times,
    restart_policy,
    spread_times,
    starts_max,
)
from wherry.coordinator.overlaps import overlaps, sinks_of
from wherry.coordinator.parts import Stores, hands_of
from wherry.coordinator.plugins import PluginRegistry
from wherry.coordinator.reload import Reloader
from wherry.coordinator.runner import Runner
from wherry.coordinator.states import restarting, task_status_of
from wherry.coordinator.store import StoredConnector

log = logging.getLogger(__name__)

HEALTH_TIMEOUT_S: Final = 1.0
ASK_TIMEOUT_S: Final = 5.0
OFFSETS_TIMEOUT_S: Final = 60.0
LANES_CLOSE_S: Final = 1.0
OVERLAPS_LOGGED_MAX: Final = 3
_ABSENT: Final = "Connector {} not found"
_KINDS: Final = {Role.SOURCE: ev.Kind.SOURCE, Role.SINK: ev.Kind.SINK}

T = TypeVar("T")


class StandardHerder:
    """Implements `api.Herder`. Safe for use by many threads.

    Args:
        worker: Configuration of the worker process.
        registry: Installed plugins.
        catalog: Checks configurations.
        hosts: The sidecar host, not yet started; started and stopped by this object.
        stores: Where things are kept.
        run_directory: For sockets and Spark's files; must be ours alone.
        worker_id: What statuses show as worker.
        cluster_id: Id of the Kafka cluster.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        registry: PluginRegistry,
        catalog: api.PluginCatalog,
        hosts: HostClient,
        stores: Stores,
        run_directory: Path,
        *,
        worker_id: str,
        cluster_id: str = "",
    ) -> None:
        self._worker = worker
        self._registry = registry
        self._catalog = catalog
        self._stores = stores
        self._cluster_id = cluster_id
        self._runner = Runner(_machine(worker), lambda effect: self._hands.carry_out(effect))
        self._hands = hands_of(worker, registry, hosts, stores, run_directory, self._runner.post, worker_id=worker_id)
        self._grants = self._hands.grants
        self.figures = self._hands.figures
        self._reloader = Reloader(
            worker.providers,
            lambda: {name: stored.config for name, stored in stores.configs.snapshot().connectors.items()},
            lambda name: self._runner.post(ev.ConnectorRestarted(name, include_tasks=True)),
        )

    # ---- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all parts and take up every connector in the config store. Returns at once; Spark takes seconds."""
        self.start_parts()
        self._hands.spark.start()
        self._reloader.start()
        self.take_up()

    def start_parts(self) -> None:
        """Start all parts but Spark, with nothing to do yet."""
        hands = self._hands
        hands.control.start()
        hands.hosts.start()
        self._runner.start()
        hands.watcher.start()

    def take_up(self) -> None:
        """Take up every connector in the config store."""
        for stored in self._stores.configs.snapshot().connectors.values():
            self._post_put(stored, restored=True)

    def know_cluster(self, cluster_id: str) -> None:
        """Take the id of the Kafka cluster, which is not known before a broker answers."""
        self._cluster_id = cluster_id

    def close(self, timeout_s: float = 5.0) -> bool:
        """Drain all leases, commit, and stop all parts; False if a lease had to be cut off."""
        deadline = time.monotonic() + timeout_s
        hands = self._hands
        self._reloader.stop()
        self._runner.post(ev.ShutdownAsked())
        drain_s = max(timeout_s - 1.0, 0.1)
        try:
            clean = self._runner.wait_until(lambda machine: machine.idle, drain_s)
        except FutureTimeoutError:
            clean = False
        hands.lanes.close(LANES_CLOSE_S if clean else 0.2)
        hands.watcher.stop()
        hands.control.stop(0.1)
        self._runner.stop()
        hands.hosts.stop()
        hands.spark.stop(max(deadline - time.monotonic(), 0.2))
        return clean

    # ---- connectors ----------------------------------------------------------------------------------------------

    def connectors(self) -> list[str]:
        """Names of all connectors."""
        return list(self._stores.configs.snapshot().connectors)

    def connector(self, name: str) -> api.ConnectorInfo:
        """A connector as configured."""
        return self._info(self._stored(name))

    def put_config(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: api.TargetState | None = None,
        create_only: bool = False,
    ) -> tuple[bool, api.ConnectorInfo]:
        """Create or change a connector; True when it was created."""
        named = {**config, "name": name} if config.get("name") is None else config
        return self._put(name, named, initial_state=initial_state, create_only=create_only)

    def _put(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: api.TargetState | None = None,
        create_only: bool = False,
    ) -> tuple[bool, api.ConnectorInfo]:
        self._hands.traces.follow(name)
        checked = self._catalog.check(config)
        old = self._find(name)
        if old is not None and create_only:
            raise api.AlreadyExistsError(f"Connector {name} already exists")
        self._stores.configs.put_connector(name, checked, initial_state if old is None else None)
        stored = self._stored(name)
        self._post_put(stored)
        self._warn_of_overlaps(name)
        return old is None, self._info(stored)

    def _warn_of_overlaps(self, name: str) -> None:
        found = overlaps(sinks_of(self._stores.configs.snapshot().connectors.values(), self._registry), name)
        for overlap in found[:OVERLAPS_LOGGED_MAX]:
            log.warning("%s", overlap.message)
        if len(found) > OVERLAPS_LOGGED_MAX:
            more = len(found) - OVERLAPS_LOGGED_MAX
            log.warning("%s gets in the way of %d more; GET /wherry/v1/overlaps lists them.", name, more)

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> api.ConnectorInfo:
        """Change single keys; None removes a key."""
        old = self._stored(name)
        merged = {key: value for key, value in {**old.config, **patch}.items() if value is not None}
        return self._put(name, merged)[1]

    def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay."""
        self._stored(name)
        self._stores.configs.delete_connector(name)
        self._runner.post(ev.ConnectorDeleted(name))

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Raw task configurations, by task number."""
        return [dict(task) for task in self._stored(name).tasks]

    def pause(self, name: str) -> None:
        """Want it paused."""
        self._want(name, api.TargetState.PAUSED)

    def resume(self, name: str) -> None:
        """Want it running."""
        self._want(name, api.TargetState.STARTED)

    def stop(self, name: str) -> None:
        """Want it stopped: no tasks at all."""
        self._want(name, api.TargetState.STOPPED)
        self._stores.configs.put_task_configs(name, [])

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> api.ConnectorStateInfo | None:
        """Restart the connector; None when both flags are false, else the plan with RESTARTING parts."""
        self._stored(name, "Unknown connector: {}")
        self._hands.traces.follow(name)
        before = self.status(name) if include_tasks or only_failed else None
        self._runner.post(ev.ConnectorRestarted(name, include_tasks, only_failed))
        return None if before is None else restarting(before, include_tasks, only_failed)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        stored = self._stored(name, "Unknown connector: {}")
        if self._stores.statuses.get(name, task) is None and not 0 <= task < len(stored.tasks):
            raise api.NotFoundError(f"Unknown task: {name}-{task}")
        self._hands.traces.follow(name)
        self._runner.post(ev.TaskRestarted(name, task))

    # ---- states --------------------------------------------------------------------------------------------------

    def status(self, name: str) -> api.ConnectorStateInfo:
        """State of a connector."""
        shown = self._stores.statuses.get(name)
        if shown is None:
            raise api.NotFoundError(f"No status found for connector {name}")
        # Looked up once: this is asked for every connector there is.
        stored = self._find(name)
        version = self._version(stored)
        tasks = (task_status_of(status, version) for status in self._stores.statuses.tasks(name))
        connector = api.ConnectorStatus(shown.state, shown.worker_id, shown.trace, version)
        return api.ConnectorStateInfo(name, connector, tuple(tasks), self._type(stored))

    def task_status(self, name: str, task: int) -> api.TaskStatus:
        """State of a task."""
        shown = self._stores.statuses.get(name, task)
        if shown is None:
            raise api.NotFoundError(f"No status found for task {name}-{task}")
        return task_status_of(shown, self._version(self._find(name)))

    def topics(self, name: str) -> list[str]:
        """Topics the connector has used."""
        if not self._worker.topic_tracking:
            raise api.ForbiddenError("Topic tracking is disabled.")
        return self._stores.statuses.topics(name)

    def reset_topics(self, name: str) -> None:
        """Forget the topics used."""
        if not self._worker.topic_tracking:
            raise api.ForbiddenError("Topic tracking is disabled.")
        if not self._worker.topic_tracking_reset:
            raise api.ForbiddenError("Topic tracking reset is disabled.")
        self._stores.statuses.reset_topics(name)
        self.figures.topics_reset(name)

    # ---- offsets -------------------------------------------------------------------------------------------------

    def offsets(self, name: str) -> list[Position]:
        """Committed positions."""
        spec = self._spec(self._stored(name))
        return self._in_order(name, lambda: self._hands.keeper.load(spec), "read")

    def alter_offsets(self, name: str, positions: Sequence[Position] | None) -> str:
        """Write positions, or forget all of them with None; answers the message to show."""
        spec = self._spec(self._stored(name))
        generation = self._runner.ask(lambda machine: _generation_at_rest(machine, name), ASK_TIMEOUT_S)
        if generation is None:
            raise api.BadRequestError(offsets.NOT_STOPPED.format(name=name))
        if positions is not None:
            check = offsets.sink_positions if spec.kind is ev.Kind.SINK else offsets.source_positions
            positions = check(positions)

        def alter() -> None:
            if self._hands.fencer is not None and spec.exactly_once:
                self._hands.fencer.owe_round(spec)
                self._hands.fencer.settle(name)
            if self._grants.altering(spec, generation):
                asked = positions
                if asked is None:
                    asked = [Position(p.partition, None) for p in self._hands.keeper.load(spec)]
                self._hands.planner.alter_offsets(spec, generation, asked)
            try:
                self._hands.keeper.alter(spec, positions)
            except WherryError as error:
                if spec.kind is not ev.Kind.SINK or positions is None:
                    raise
                log.warning("The offsets of %s cannot be altered: %s", name, error)
                raise api.ApiError(offsets.failed_to_alter(name, positions)) from error

        self._in_order(name, alter, "alter")
        return offsets.RESET if positions is None else offsets.ALTERED

    def _in_order(self, name: str, act: Callable[[], T], verb: str) -> T:
        """Run after every commit of the connector that is under way."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(act())
            except Exception as error:
                answer.set_exception(error)

        self._hands.lanes.submit((name, "positions"), run)
        try:
            return answer.result(OFFSETS_TIMEOUT_S)
        except FutureTimeoutError:
            raise api.ApiError(f"Failed to {verb} the offsets of connector {name}: no answer in time") from None
        except ConfigError as error:
            raise api.ApiError(error.message) from error  # what the connector says of these positions, as it is
        except WherryError as error:
            raise api.ApiError(f"Failed to {verb} the offsets of connector {name}: {error.message}") from error

    # ---- plugins and the worker itself -----------------------------------------------------------------------------

    def plugins(self, *, connectors_only: bool = True) -> list[api.PluginInfo]:
        """Classes that can be used."""
        return self._catalog.plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> list[api.ConfigKeyInfo]:
        """Definition of a class's keys."""
        return self._catalog.plugin_config(plugin, version)

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> api.ConfigInfos:
        """Check a configuration."""
        return self._catalog.validate(config, plugin=plugin)

    def internal_verifier(self) -> api.InternalVerifier | None:
        """Nothing: a single worker is asked by no other."""
        return None

    def server_info(self) -> api.ServerInfo:
        """Who this is."""
        return api.ServerInfo(self._cluster_id)

    def health(self) -> api.Health:
        """Whether the machine's thread answers, and Spark is there."""
        try:
            self._runner.ask(lambda machine: machine.idle, HEALTH_TIMEOUT_S)
        except FutureTimeoutError:
            return api.Health(
                "unhealthy", "Worker was unable to handle this request and may be unable to handle others."
            )
        spark = self._hands.spark
        if spark.state == "starting":
            return api.Health("starting", f"Worker is still starting up. {spark.message}")
        if spark.state != "up":
            return api.Health("unhealthy", f"Worker can't run tasks. {spark.message}")
        return api.Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def details(self, name: str | None = None) -> list[api.ConnectorDetail]:
        """All connectors, or one, as the machine sees them."""
        names = self.connectors() if name is None else [self._stored(name).name]

        def look(machine: Machine) -> list[api.ConnectorDetail]:
            now_ms = int(time.monotonic() * 1000)
            books = [book for book in map(machine.book, names) if book is not None]
            return [
                detail(book, self.figures.totals(book.name), self.figures.lags(book.name), now_ms) for book in books
            ]

        found = self._runner.ask(look, ASK_TIMEOUT_S)
        if name is not None and not found:  # stored, and not yet taken up, or deleted meanwhile
            raise api.NotFoundError(_ABSENT.format(name))
        return found

    def leases(self) -> list[api.LeaseInfo]:
        """Leases running now."""
        found = self._runner.ask(lambda machine: list(machine.leases()), ASK_TIMEOUT_S)
        return [lease_info(lease, self.figures.get(lease.id)) for lease in found]

    def restarts(self) -> list[api.RestartInfo]:
        """What has failed lately, and whether it is started again."""
        now_ms = int(time.monotonic() * 1000)
        return self._runner.ask(lambda machine: machine.retries(now_ms), ASK_TIMEOUT_S)

    def restart_history(self, name: str) -> list[api.RestartNote]:
        """The last failures and restarts of a connector."""
        self._stored(name)
        epoch_ms = int((time.time() - time.monotonic()) * 1000)

        def look(machine: Machine) -> list[api.RestartNote]:
            book = machine.book(name)
            return [] if book is None else list(book.handout.history.told(epoch_ms))

        return self._runner.ask(look, ASK_TIMEOUT_S)

    def overlaps(self) -> list[api.Overlap]:
        """Sinks that get in one another's way."""
        return overlaps(sinks_of(self._stores.configs.snapshot().connectors.values(), self._registry))

    def sidecars(self) -> list[api.SidecarInfo]:
        """Sidecars running now."""
        try:
            found = self._hands.hosts.sidecars()
        except WherryError as error:
            raise api.UnavailableError(error.message) from error
        return [
            api.SidecarInfo(
                status.plugin,
                status.connector,
                status.generation,
                status.pid,
                status.endpoint,
                status.rss_bytes,
                status.cpu_ms / 1000,
                {"instance_id": status.instance_id, "restarts": str(status.restarts)},
            )
            for status in found
        ]

    # ---- helpers -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> StoredConnector | None:
        return self._stores.configs.snapshot().connectors.get(name)

    def _stored(self, name: str, absent: str = _ABSENT) -> StoredConnector:
        stored = self._find(name)
        if stored is None:
            raise api.NotFoundError(absent.format(name))
        return stored

    def _want(self, name: str, target: api.TargetState) -> None:
        self._stored(name, "Unknown connector {}")
        self._hands.traces.follow(name)
        self._stores.configs.put_target_state(name, target)
        self._runner.post(ev.TargetSet(name, target))

    def _post_put(self, stored: StoredConnector, *, restored: bool = False) -> None:
        self._runner.post(ev.ConnectorPut(stored.name, self._spec(stored), stored.target_state, restored))

    def _spec(self, stored: StoredConnector) -> ev.ConnectorSpec:
        config = self._grants.read_here(stored.config)
        plugin = self._registry.find(config.get("connector.class", ""))
        splits = False
        if plugin is not None:
            try:
                splits = self._registry.description(plugin).capabilities.splits
            except WherryError as error:
                log.warning("The class of %s could not be asked what it can do: %s", stored.name, error)
        kind = _KINDS.get(plugin.role, ev.Kind.SOURCE) if plugin else ev.Kind.SOURCE
        return ev.ConnectorSpec(
            stored.name,
            kind,
            config,
            tasks_max(config),
            splits,
            restart_policy(self._worker),
            kind is ev.Kind.SOURCE and exactly_once.is_enabled(self._worker) and not is_direct(config),
            config.get("tasks.max.enforce", "true").strip().lower() != "false",
            {key: value for key, value in stored.config.items() if config[key] != value},
        )

    def _info(self, stored: StoredConnector) -> api.ConnectorInfo:
        kind = self._catalog.connector_type(stored.config)
        return api.ConnectorInfo(stored.name, dict(stored.config), tuple(range(len(stored.tasks))), kind)

    def _type(self, stored: StoredConnector | None) -> api.ConnectorType:
        return api.ConnectorType.UNKNOWN if stored is None else self._catalog.connector_type(stored.config)

    def _version(self, stored: StoredConnector | None) -> str | None:
        plugin = None if stored is None else self._registry.find(stored.config.get("connector.class", ""))
        return None if plugin is None else plugin.manifest.version


def _machine(worker: WorkerConfig) -> Machine:
    return Machine(
        generation=int(time.time()),
        times=lease_times(worker),
        jitter=random.SystemRandom().random,
        starts_max=starts_max(worker),
        spread=spread_times(worker),
    )


def _generation_at_rest(machine: Machine, name: str) -> int | None:
    """The generation of a connector without tasks; None while it has some.

    A sidecar for questions meanwhile is of this generation: one beyond it would fence the connector's next start.
    """
    book = machine.book(name)
    return book.handout.generation if book is not None and machine.tasks_are_gone(name) else None


_: type[api.Herder] = StandardHerder  # checked by mypy
