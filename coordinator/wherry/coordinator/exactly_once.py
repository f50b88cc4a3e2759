"""Exactly-once sources on the coordinator's side: whether they are, under which names, and who is shut out.

Workers write records and offsets in transactions named after the task (`<group.id>-<connector>-<task>`). A worker that
was taken for dead may come back within one. Its task's next lease opens the same name, which shuts it out; where its
work may go to another task, and before a new set of tasks begins, the names of all tasks there were are opened here.

Positions are read to behind their own last record, so a transaction that never ends keeps them waiting, as it does
Kafka Connect. A broker may lose the end of one (`tests/chaos/README.md` tells when); then only `kafka-transactions.sh
abort` helps. Wherry doesn't do it by itself: it can't know whether the transaction had been told as committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from wherry.contract import kafka_clients
from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.transactions import init_transactions
from wherry.control.v1 import lease_pb2
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.events import ConnectorSpec

log = logging.getLogger(__name__)

ENABLED: Final = "enabled"
FENCE_TIMEOUT_S: Final = 30.0
"""For the names of all tasks of a connector; a coordinator of transactions that is just starting takes seconds."""
FENCE_PAUSE_S: Final = 0.1
SLICE_S: Final = 1.0
OFFSETS_TOPIC: Final = "offsets.storage.topic"
_BOUNDARIES: Final = {
    "poll": lease_pb2.TRANSACTION_BOUNDARY_POLL,
    "interval": lease_pb2.TRANSACTION_BOUNDARY_INTERVAL,
    "connector": lease_pb2.TRANSACTION_BOUNDARY_CONNECTOR,
}


def is_enabled(worker: WorkerConfig) -> bool:
    """Whether the sources of a worker write exactly once. A standalone worker's never do."""
    return str(worker.parsed.get("exactly.once.source.support", "")).lower() == ENABLED


def transactional_id(group: str, connector: str, task: int) -> str:
    """Name of a task's transactions, as in Kafka Connect."""
    return f"{group}-{connector}-{task}"


def terms(worker: WorkerConfig, connector: str, task: int, config: Mapping[str, str]) -> lease_pb2.ExactlyOnce:
    """What the lease of a task needs to know.

    Args:
        worker: Configuration of a worker that has it enabled.
        connector: Name of the connector.
        task: Number of the task.
        config: The connector's configuration, resolved.

    Raises:
        ConfigError: The interval is no number.
    """
    given = config.get("transaction.boundary.interval.ms", "").strip()
    try:
        interval_ms = int(given) if given else worker.offset_flush_interval_ms
    except ValueError:
        key = "transaction.boundary.interval.ms"
        raise ConfigError(
            f"Invalid value {given} for configuration {key}: Not a number of type LONG", key=key
        ) from None
    return lease_pb2.ExactlyOnce(
        transactional_id=transactional_id(str(worker.parsed["group.id"]), connector, task),
        offsets_topic=config.get(OFFSETS_TOPIC, "").strip() or str(worker.parsed["offset.storage.topic"]),
        boundary=_BOUNDARIES.get(config.get("transaction.boundary", "poll").strip().lower(), _BOUNDARIES["poll"]),
        interval_ms=max(interval_ms, 1),
    )


class TaskCounts(Protocol):
    """Remembers how many tasks of a connector may have transactions open."""

    def task_count(self, name: str) -> int | None:
        """How many names were in use by the last set of tasks; None if it was never told."""

    def put_task_count(self, name: str, count: int) -> None:
        """Tell how many names the next set of tasks uses."""


Opener = Callable[[Mapping[str, kafka_clients.ClientValue], str, float, str], None]


class Fencer:
    """Shuts out workers of earlier leases. Safe for use by many threads; calls for one connector come in order.

    A round also opens names that were opened a moment ago, when their lease was lost. To spare that, it would have to
    know that no lease of theirs was granted since, by another coordinator neither; opening them is cheap, and certain.

    Args:
        worker: Configuration of the worker process.
        resolved: Fills in the placeholders of a connector's configuration.
        counts: Remembers the numbers of tasks.
        opener: Opens the transactions of a name, given settings, name, seconds and a topic that exists there (empty if
            none is known); shuts out whoever has them open.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        resolved: Callable[[Mapping[str, str]], dict[str, str]],
        counts: TaskCounts,
        opener: Opener | None = None,
    ) -> None:
        self._worker = worker
        self._resolved = resolved
        self._counts = counts
        self._open = opener or open_transactions
        self._lock = threading.Lock()
        self._due: dict[str, tuple[ConnectorSpec, set[int]]] = {}

    def owe(self, spec: ConnectorSpec, tasks: Iterable[int]) -> None:
        """Note tasks whose last worker may come back: nothing is handed out before they are shut out."""
        with self._lock:
            _, due = self._due.get(spec.name, (spec, set()))
            self._due[spec.name] = (spec, due | set(tasks))

    def owe_round(self, spec: ConnectorSpec) -> None:
        """Note all tasks there were, before a new set of tasks begins or its offsets are changed by hand."""
        self.owe(spec, range(self._counts.task_count(spec.name) or 0))

    def settle(self, connector: str) -> None:
        """Shut out everybody noted of a connector.

        Raises:
            WherryError: Kafka could not be asked; they stay noted.
        """
        with self._lock:
            noted = self._due.get(connector)
        if noted is None or not noted[1]:
            return
        spec, due = noted[0], sorted(noted[1])
        deadline = time.monotonic() + FENCE_TIMEOUT_S
        settings = self._settings(spec)
        here = settings.get("bootstrap.servers") == self._worker.values.get("bootstrap.servers")
        topic = str(self._worker.parsed["offset.storage.topic"]) if here else ""
        for task in due:
            name = transactional_id(str(self._worker.parsed["group.id"]), spec.name, task)
            self._open(settings, name, deadline - time.monotonic(), topic)
            with self._lock:
                _, left = self._due.get(connector, (spec, set()))
                self._due[connector] = (spec, left - {task})
        log.info("Fenced %d transactional id(s) of %s", len(due), spec.name)

    def expect(self, spec: ConnectorSpec, count: int, *, first: bool) -> None:
        """Remember how many tasks there will be; within one set of tasks the number only grows."""
        known = self._counts.task_count(spec.name)
        if known != count and (first or known is None or known < count):
            self._counts.put_task_count(spec.name, count)

    def forget(self, connector: str) -> None:
        """The connector is gone."""
        with self._lock:
            self._due.pop(connector, None)

    def _settings(self, spec: ConnectorSpec) -> dict[str, kafka_clients.ClientValue]:
        named = {"client.id": f"connector-fencer-{spec.name}"}
        found = kafka_clients.resolve(
            "producer", worker=self._worker.values, connector=self._resolved(spec.config), defaults=named
        )
        # What concerns records would only contradict what transactions demand.
        return {key: value for key, value in found.values.items() if key.startswith(_CONNECTION)}


def open_transactions(
    settings: Mapping[str, kafka_clients.ClientValue], name: str, seconds: float, topic: str = ""
) -> None:
    """Open the transactions of a name: whoever had them open can commit no more, and what was under way is settled.

    Raises:
        WherryError: Not possible, or not in time.
    """
    from confluent_kafka import KafkaException, Producer

    deadline = time.monotonic() + seconds
    try:
        producer: Any = Producer({"log_level": 0, **settings, "transactional.id": name})
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TransientError(f"Kafka did not fence the transactional id {name} in time.")
            try:
                init_transactions(producer, min(left_s, SLICE_S), topic)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or error.args[0].fatal():
                    raise
                time.sleep(FENCE_PAUSE_S)
    except KafkaException as error:
        known = error.args[0]
        raise TransientError(
            f"Kafka could not fence the transactional id {name}: {known.str()} ({known.name()})."
        ) from error


_CONNECTION: Final = (
    "bootstrap.servers", "client.", "security.", "sasl.", "ssl.", "socket.", "broker.", "reconnect.", "metadata.",
    "connections.", "enable.ssl.",
)  # fmt: skip
