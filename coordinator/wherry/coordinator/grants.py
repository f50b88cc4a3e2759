"""What a lease is made of: resolved configuration, sidecar, policy, as the worker gets it.

Secrets are resolved here, when a lease opens and a sidecar starts, and kept nowhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wherry.contract import mirror, to_proto
from wherry.contract.description import ClassDescription, SinkClass
from wherry.contract.position import Position
from wherry.contract.topic_creation import TopicRules
from wherry.control.v1 import lease_pb2
from wherry.coordinator import exactly_once
from wherry.coordinator.config import direct, owntransforms
from wherry.coordinator.config.providers import ProviderError
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.config.workerkeys import PYTHON_KEY
from wherry.coordinator.effects import GrantLease
from wherry.coordinator.events import ConnectorSpec, Kind
from wherry.coordinator.plugins import Plugin, PluginRegistry

log = logging.getLogger(__name__)

CONTENDED_PARK_MS: Final = 200
"""Idle time after which a lease ends that began while others waited. It has started its sidecar and has seen that there
is nothing to do; kept for longer, a thousand of them would hold all slots in turn, each for `wherry.idle.park.ms`."""

_RESET: Final = "auto.offset.reset"
_READ_HERE: Final = (
    *("connector.class", "tasks.max", "tasks.max.enforce", "topics", "topics.regex"),
    *("consumer.override.group.id", f"consumer.override.{_RESET}"),
)
"""Keys whose values the coordinator itself goes by."""

_PIPELINES: Final = {Kind.SOURCE: lease_pb2.PIPELINE_KIND_SOURCE, Kind.SINK: lease_pb2.PIPELINE_KIND_SINK}


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """How leases behave in time, from the worker's configuration; all in ms."""

    report_interval_ms: int
    commit_interval_ms: int
    idle_park_ms: int
    coordinator_timeout_ms: int
    drain_timeout_ms: int


class Grants:
    """Makes what travels to workers and hosts.

    Args:
        worker: Configuration of the worker process.
        plugins: Installed plugins.
        timings: How leases behave in time.
        host_endpoint: Where the sidecar host of this machine listens; empty if workers run elsewhere.
    """

    def __init__(
        self, worker: WorkerConfig, plugins: PluginRegistry, timings: LeaseTimings, host_endpoint: str
    ) -> None:
        self._worker = worker
        self._plugins = plugins
        self._timings = timings
        self._host_endpoint = host_endpoint

    def resolved(self, config: Mapping[str, str]) -> dict[str, str]:
        """A connector's configuration with its placeholders filled in."""
        return dict(self._worker.providers.resolve(config).values)

    def read_here(self, config: Mapping[str, str]) -> dict[str, str]:
        """A connector's configuration with placeholders filled in where the coordinator itself reads a value.

        All others stay: a secret belongs to those who use it. What a provider can't tell stays, too.
        """
        asked = {key: value for key in _READ_HERE if "${" in (value := config.get(key, ""))}
        try:
            return {**config, **self._worker.providers.resolve(asked).values}
        except ProviderError as error:
            log.warning("%s cannot be read: %s", ", ".join(sorted(asked)), error.message)
            return dict(config)

    def reads_from_start(self, spec: ConnectorSpec) -> bool:
        """Whether a sink reads what was written before it was made."""
        worker = self._worker.values.get(f"consumer.{_RESET}", "earliest")
        return spec.config.get(f"consumer.override.{_RESET}", worker).strip() == "earliest"

    def check_topic_creation(self, spec: ConnectorSpec) -> None:
        """Refuse a source whose `topic.creation.*` can't be: not when it is written, but before it starts.

        Raises:
            ConfigError: A key is missing or wrong.
        """
        TopicRules.of(self.resolved(spec.config), self._worker.values)

    def description(self, spec: ConnectorSpec) -> ClassDescription:
        """What a connector's class is and can do."""
        return self._plugins.description(self._plugins.resolve(spec.config.get("connector.class", "")))

    def sidecar(self, spec: ConnectorSpec, generation: int) -> lease_pb2.SidecarSpec:
        """The sidecar of a connector."""
        plugin = self._plugins.resolve(spec.config.get("connector.class", ""))
        return self._sidecar(spec, generation, plugin, direct.source_config(self.resolved(spec.config)))

    def altering(self, spec: ConnectorSpec, generation: int) -> list[lease_pb2.SidecarSpec]:
        """The sidecars that have a say when offsets are changed: of the connector, and of a direct pipeline's sink."""
        found = [(self.description(spec), self.sidecar)]
        if direct.is_direct(spec.config):
            found.append((self._sink_of(spec), self.sink_sidecar))
        return [make(spec, generation) for described, make in found if described.capabilities.alter_offsets]

    def stages(self, spec: ConnectorSpec) -> bool:
        """Whether what a connector writes is staged first, and applied by a call of its own."""
        if direct.is_direct(spec.config):
            sink = self._sink_of(spec)
        elif spec.kind is Kind.SINK:
            sink = self.description(spec)
        else:
            return False
        return sink.sink_class is SinkClass.TWO_PHASE

    def _sink_of(self, spec: ConnectorSpec) -> ClassDescription:
        """What the sink of a direct pipeline says of itself."""
        return self._plugins.description(self._plugins.resolve(spec.config[direct.SINK_CLASS]))

    def sink_sidecar(self, spec: ConnectorSpec, generation: int) -> lease_pb2.SidecarSpec:
        """The sink's sidecar of a direct pipeline."""
        plugin = self._plugins.resolve(spec.config[direct.SINK_CLASS])
        return self._sidecar(spec, generation, plugin, direct.sink_config(self.resolved(spec.config)))

    def _transforms(self, spec: ConnectorSpec, generation: int) -> list[lease_pb2.SidecarSpec]:
        """The sidecars of a connector's transformations."""
        found = []
        python = self._worker.values.get(PYTHON_KEY, "false").strip().lower() == "true"
        for use in owntransforms.WithPlugins(self._plugins, python=python).uses(self.resolved(spec.config)):
            made = self._sidecar(spec, generation, use.plugin, use.config)
            made.alias = use.alias
            found.append(made)
        return found

    def _sidecar(
        self, spec: ConnectorSpec, generation: int, plugin: Plugin, values: Mapping[str, str]
    ) -> lease_pb2.SidecarSpec:
        described = self._plugins.description(plugin)
        config, secrets = described.config.split_secrets(values)
        return lease_pb2.SidecarSpec(
            plugin=plugin.manifest.name,
            plugin_directory=str(plugin.manifest.directory),
            class_name=plugin.class_name,
            role=int(described.role),  # type: ignore[arg-type]  # the enums share their numbers
            connector=spec.name,
            generation=generation,
            config=config,
            secrets=secrets,
            typed=described.capabilities.typed,
            raw=described.capabilities.raw,
            parkable=described.capabilities.parkable,
        )

    def shares_planning(self, spec: ConnectorSpec) -> bool:
        """Whether the control calls of a connector may go to a process that serves others of its plugin, too."""
        return self._plugins.resolve(spec.config.get("connector.class", "")).manifest.shares_planning

    def parks(self, spec: ConnectorSpec) -> bool:
        """Whether a sink's tasks may wait without a lease."""
        return self._timings.idle_park_ms > 0 and self.description(spec).capabilities.parkable

    def lease(self, effect: GrantLease, positions: Sequence[Position]) -> lease_pb2.OpenLeaseResponse:
        """Everything a worker needs for a lease."""
        sidecar = self.sidecar(effect.spec, effect.generation)
        capabilities = self.description(effect.spec).capabilities
        # Parked work must be woken by something: records (sinks), the source's own word, or the next plan.
        sidecars = [sidecar]
        kind = _PIPELINES[effect.spec.kind]
        if direct.is_direct(effect.spec.config):
            kind = lease_pb2.PIPELINE_KIND_DIRECT
            sidecars.append(self.sink_sidecar(effect.spec, effect.generation))
        elif sidecar.class_name == mirror.SOURCE_CLASS:
            # The plugin only plans; records go from cluster to cluster without passing through it.
            kind, sidecars = lease_pb2.PIPELINE_KIND_MIRROR, []
        sidecars += self._transforms(effect.spec, effect.generation)
        parkable = sidecar.parkable and all(each.parkable for each in sidecars)
        parks = parkable and (effect.wakes or capabilities.watch) and not effect.work.split
        timings = self._timings
        park_ms = min(timings.idle_park_ms, CONTENDED_PARK_MS) if effect.others_wait else timings.idle_park_ms
        response = lease_pb2.OpenLeaseResponse(
            kind=kind,
            task=effect.task,
            config=self.resolved(effect.spec.config),
            worker_config=self._worker.values,
            split=effect.work.split,
            positions=to_proto.positions(positions),
            partitions_json=effect.work.partitions,
            host_endpoint=self._host_endpoint,
            sidecars=sidecars,
            policy=lease_pb2.LeasePolicy(
                report_interval_ms=timings.report_interval_ms,
                commit_interval_ms=timings.commit_interval_ms,
                idle_park_ms=park_ms if parks else 0,
                coordinator_timeout_ms=timings.coordinator_timeout_ms,
                drain_timeout_ms=timings.drain_timeout_ms,
            ),
        )
        if effect.spec.exactly_once:
            config = dict(response.config)
            response.exactly_once.CopyFrom(exactly_once.terms(self._worker, effect.spec.name, effect.task, config))
        if effect.work.work is not None:
            response.work.CopyFrom(to_proto.work(effect.work.work))
        return response
