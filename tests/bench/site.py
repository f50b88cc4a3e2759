"""Where runs happen: the servers, the two systems, and the records that were made once and are read by every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import load
from tests.bench.connect_plugins import build_tally, discard_sink
from tests.bench.figures import CONNECT, WHERRY
from tests.bench.processes import BenchError, ProcessTree
from tests.bench.systems import (
    ConnectDistributed,
    System,
    WherryDistributed,
    WherryStandalone,
    WorkerSettings,
)

from wherry.coordinator.dev.errors import DevServerError
from wherry.coordinator.dev.jars import JarSet, ensure_plugin
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.postgres import LocalPostgres
from wherry.coordinator.dev.registry import LocalRegistry

# A broker for load, not the small one that a developer gets.
BROKER_JVM_OPTIONS = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")

POSTGRES_SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    # The time at which each row's transaction committed is how the harness measures at the destination.
    "track_commit_timestamp": "on",
    "autovacuum": "off",
}
"""Otherwise as PostgreSQL comes: fsync and synchronous_commit are on. No checkpoint or vacuum falls into one run and
not into another."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for; None means the flow's own default."""

    runs: int
    records: int
    minutes: float
    only: str | None
    fresh: bool
    wherry_plugin_path: str


class Site:
    """One harness run's servers and systems. Systems start at their first use and stay until `stop`.

    Args:
        directory: For logs and data.
        options: What the command line asked for.
        settings: The worker's settings by variant; the one that most flows have alone has no name.
        plugins: What Kafka Connect needs besides its own.
        say: Tells the user what goes on.
    """

    def __init__(
        self,
        directory: Path,
        options: Options,
        settings: Mapping[str, WorkerSettings],
        plugins: Sequence[JarSet],
        say: Say,
    ) -> None:
        self.directory = directory
        self.options = options
        self.say = say
        self._settings = settings
        self._systems: dict[tuple[str, str], System] = {}
        self._made = 0
        self._postgres: LocalPostgres | None = None
        self._registry: LocalRegistry | None = None
        self._topics: dict[tuple[int, int, str], str] = {}
        self.notes: dict[str, object] = {}
        """What one run leaves for those after it."""
        self._plugins = [*(ensure_plugin(wanted, say) for wanted in plugins), discard_sink(directory)]
        self.broker = EmbeddedKafka(data_dir=directory / "kafka", jvm_options=BROKER_JVM_OPTIONS, progress=say)
        self.broker.start()
        self._broker_tree = ProcessTree(self.broker.pid, lambda *_: "broker")

    @property
    def bootstrap(self) -> str:
        """Where the broker listens."""
        return self.broker.bootstrap

    @property
    def postgres(self) -> LocalPostgres:
        """The database server, started at its first use."""
        if self._postgres is None:
            self._postgres = LocalPostgres(data_dir=self.directory / "postgres", options=POSTGRES_SETTINGS).start()
        return self._postgres

    @property
    def registry(self) -> LocalRegistry:
        """The schema registry, started at its first use."""
        if self._registry is None:
            self._registry = LocalRegistry(progress=self.say).start()
        return self._registry

    def fresh(self, name: str, variant: str = "") -> System:
        """A new instance of a system with empty state, not started; the caller stops it."""
        self._made += 1
        directory = self.directory / f"{name}-{self._made}"
        settings = self._settings[variant]
        if name == CONNECT:
            return ConnectDistributed(directory, plugins=self._plugins, bootstrap=self.bootstrap, settings=settings)
        if name == WHERRY:
            build_tally(Path(self.options.wherry_plugin_path))
            made = WherryDistributed if settings.distributed else WherryStandalone
            return made(
                directory, bootstrap=self.bootstrap, settings=settings, plugin_path=self.options.wherry_plugin_path
            )
        raise BenchError(f"There is no system {name!r}.")

    def running(self, name: str, variant: str = "") -> System:
        """The shared instance of a system, started when it is not there."""
        system = self._systems.get((name, variant))
        if system is None or not system.alive():
            self.say(f"starting {name} {variant}".rstrip())
            system = self._systems[name, variant] = self.fresh(name, variant)
            system.start()
        return system

    def discard(self, name: str) -> None:
        """Stops the shared instances of a system that failed, so that the next run gets a new one."""
        for key in [key for key in self._systems if key[0] == name]:
            self._systems.pop(key).stop()

    def trees(self, system: System) -> dict[str, ProcessTree]:
        """Every process tree of a run: the system's, the broker's, the database's."""
        trees = {"system": system.tree, "broker": self._broker_tree}
        if self._postgres is not None:
            trees["postgres"] = ProcessTree(self._postgres.pid, lambda *_: "postgres")
        return trees

    def topic_of_records(
        self,
        records: int,
        partitions: int = load.PARTITIONS,
        *,
        kind: str = "json",
        making: Callable[[str], load.Making] | None = None,
    ) -> str:
        """A topic with that many records, filled at its first use and shared by all runs.

        `making` tells what makes records of a kind that `load` doesn't know, given the topic.
        """
        key = (records, partitions, kind)
        if key not in self._topics:
            topic = f"{kind}-{records}-{partitions}"
            make = load.KINDS[kind] if making is None else making(topic)
            load.create_topic(self.bootstrap, topic, partitions)
            per_second = load.fill_topic(self.bootstrap, topic, records, partitions=partitions, making=make)
            self.say(f"filled {topic} at {per_second:,.0f} records/s")
            self._topics[key] = topic
        return self._topics[key]

    def stop(self) -> None:
        """Stops everything; each is stopped even when another does not."""
        systems = [system.stop for system in self._systems.values()]
        for stop in [*systems, self._stop_postgres, self._stop_registry, self.broker.stop]:
            try:
                stop()
            except (OSError, BenchError, DevServerError) as error:
                self.say(f"while stopping: {error}")

    def _stop_postgres(self) -> None:
        if self._postgres is not None:
            self._postgres.stop()

    def _stop_registry(self) -> None:
        if self._registry is not None:
            self._registry.close()
