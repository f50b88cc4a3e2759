"""Where runs happen: the servers, the two systems, and the records that were made once and are read by every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import load
from tests.bench.figures import CONNECT, WHERRY
from tests.bench.jars import Jars
from tests.bench.processes import BenchError, ProcessTree
from tests.bench.servers import Broker, Postgres
from tests.bench.systems import KafkaConnect, System, WherryStandalone, WorkerSettings

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for; None means the flow's own default."""

    runs: int
    records: int
    minutes: float
    only: str | None
    wherry_plugin_path: str


class Site:
    """One harness run's servers and systems. Systems start at their first use and stay until `stop`."""

    def __init__(self, directory: Path, jars: Jars, options: Options, settings: WorkerSettings, say: Say) -> None:
        self.directory = directory
        self.options = options
        self.say = say
        self._jars = jars
        self._settings = settings
        self._systems: dict[str, System] = {}
        self._made = 0
        self._postgres: Postgres | None = None
        self._topics: dict[tuple[int, int], str] = {}
        self.broker = Broker(jars.broker, directory / "kafka")

    @property
    def bootstrap(self) -> str:
        """Where the broker listens."""
        return self.broker.bootstrap

    @property
    def postgres(self) -> Postgres:
        """The database server, started at its first use."""
        if self._postgres is None:
            self._postgres = Postgres(self.directory / "postgres")
        return self._postgres

    def fresh(self, name: str) -> System:
        """A new instance of a system with empty state, not started; the caller stops it."""
        self._made += 1
        directory = self.directory / f"{name}-{self._made}"
        if name == CONNECT:
            return KafkaConnect(directory, jars=self._jars, bootstrap=self.bootstrap, settings=self._settings)
        if name == WHERRY:
            return WherryStandalone(
                directory, bootstrap=self.bootstrap, settings=self._settings,
                plugin_path=self.options.wherry_plugin_path,
            )  # fmt: skip
        raise BenchError(f"There is no system {name!r}.")

    def running(self, name: str) -> System:
        """The shared instance of a system, started when it is not there."""
        system = self._systems.get(name)
        if system is None or not system.alive():
            self.say(f"starting {name}")
            system = self._systems[name] = self.fresh(name)
            system.start()
        return system

    def discard(self, name: str) -> None:
        """Stops the shared instance of a system that failed, so that the next run gets a new one."""
        system = self._systems.pop(name, None)
        if system is not None:
            system.stop()

    def trees(self, system: System) -> dict[str, ProcessTree]:
        """Every process tree of a run: the system's, the broker's, the database's."""
        trees = {"system": system.tree, "broker": self.broker.tree}
        if self._postgres is not None:
            trees["postgres"] = self._postgres.tree
        return trees

    def topic_of_records(self, records: int, partitions: int = load.PARTITIONS) -> str:
        """A topic with that many records, filled at its first use and shared by all runs."""
        key = (records, partitions)
        if key not in self._topics:
            topic = f"records-{records}-{partitions}"
            load.create_topic(self.bootstrap, topic, partitions)
            per_second = load.fill_topic(self.bootstrap, topic, records, partitions=partitions)
            self.say(f"filled {topic} at {per_second:,.0f} records/s")
            self._topics[key] = topic
        return self._topics[key]

    def stop(self) -> None:
        """Stops everything; each is stopped even when another does not."""
        for stop in [*(system.stop for system in self._systems.values()), self._stop_postgres, self.broker.stop]:
            try:
                stop()
            except (OSError, BenchError) as error:
                self.say(f"while stopping: {error}")

    def _stop_postgres(self) -> None:
        if self._postgres is not None:
            self._postgres.stop()
