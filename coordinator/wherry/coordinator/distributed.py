"""Puts a worker of a cluster together and runs it: `wherry distributed`.

Takes a Kafka Connect cluster's own worker file: the same topics, the same group. Of several coordinators one leads, the
others answer reads and forward the rest to it. Order of a start: REST answers first; then the three topics are created
or checked and read; then the group is joined, and whoever is given the lead takes up all connectors.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.manifest import Manifest
from wherry.coordinator import cluster
from wherry.coordinator.cluster import ClusterHerder
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.exactly_once import is_enabled
from wherry.coordinator.leadership import GroupSettings, Leadership
from wherry.coordinator.main import CLOSED_BEFORE_S, KAFKA_RETRY_S, StandaloneWorker, own_version, run, tell_versions
from wherry.coordinator.manners import standby_is_warm
from wherry.coordinator.parts import Stores
from wherry.coordinator.rest import tls
from wherry.coordinator.rest.app import App
from wherry.coordinator.rest.forward import Forwarding
from wherry.coordinator.rest.loggers import LEVELS, Loggers
from wherry.coordinator.rest.server import Application, RestServer
from wherry.coordinator.rest.site import RestSite
from wherry.coordinator.standby import Standby
from wherry.coordinator.store.internal_topics import ensure, internal_topics
from wherry.coordinator.store.kafka import KafkaStores
from wherry.coordinator.store.topiclog import FencedWriter

_log = logging.getLogger(__name__)

LEAVE_S: Final = 0.7
"""Of the time for an end, what is kept for leaving the group."""
JOIN_WAIT_S: Final = 600.0
READ_ON_S: Final = 2.0
"""How long the answer to a request sent on to the leader waits until what it has changed is to be seen here too."""


class DistributedWorker(StandaloneWorker):
    """One coordinator of a cluster. Implements `leadership.Leading`."""

    mode = "distributed"
    herder_class = ClusterHerder
    herder: ClusterHerder

    def __init__(self, worker: WorkerConfig) -> None:
        self._ready = False
        self._leadership: Leadership | None = None
        super().__init__(worker)

    # ---- the parts -----------------------------------------------------------------------------------------------

    def _stores(self) -> Stores:
        worker = self._worker
        # Kafka Connect's own clients take the worker's settings without prefix, as its admin client does.
        client = worker.admin_config()
        self._client = client
        self._group = str(worker.parsed["group.id"])
        self._topics = internal_topics(worker.values, worker.parsed)
        self._writer = FencedWriter(client, f"connect-cluster-{self._group}", self._fenced, topic=self._topics[0].name)
        self._kept = KafkaStores(
            self._topics,
            client,
            self._kafka,
            self._group,
            self._writer,
            leads=lambda: self._leadership is not None and self._leadership.may_write_soon(),
            generation=lambda: 0 if self._leadership is None else self._leadership.generation,
            level_set=_set_level,
            workers_write=is_enabled(worker),
        )
        return Stores(self._kept.configs, self._kept.offsets, self._kept.statuses, self._kept.may_write)

    def _serve(self, site: RestSite) -> RestServer:
        self._url = self._worker.advertised_url(site.ports)
        settings = GroupSettings(
            self._client,
            self._group,
            self._topics[0].name,
            self._url,
            int(self._worker.parsed["wherry.leader.session.timeout.ms"]),
        )
        leadership = Leadership(settings, self._kafka, self, self._fail)
        self._leadership = leadership
        if self._url.startswith("https:"):
            self._trust()  # what is wrong with it is told at the start, not with the first request sent on

        def around(app: App) -> Application:
            set_level = self._kept.configs.put_logger_level
            return Forwarding(app, leadership, set_level, trust=self._trust, catch_up=self._read_on, serves=app.serves)

        return site.serve(self.herder, version=own_version(), around=around)

    def _read_on(self) -> None:
        self._kept.catch_up(READ_ON_S)

    def _trust(self) -> ssl.SSLContext:
        """What other workers are asked with, when they speak https."""
        return tls.client_context(tls.settings(self._worker.values, tls.MAIN_PREFIX), "the leader's listener")

    def _start_parts(self) -> None:
        self.herder.await_lead(lambda: self._ready, warm=standby_is_warm(self._worker))

    def _begin(self) -> None:
        assert self._leadership is not None, "it is made before the start"
        self._await_kafka()
        deadline = time.monotonic() + self._worker.parsed["wherry.kafka.start.timeout.ms"] / 1000
        for topic in self._topics:
            self._patiently(deadline, lambda topic=topic: ensure(self._kafka, topic))  # type: ignore[misc]
        self._kept.start()
        self.herder.watch_secrets()
        self._leadership.start()
        if self._worker.parsed["wherry.standby"] == "warm":
            threading.Thread(target=self._guard, args=(self._stand_by,), name="standby", daemon=True).start()
        self._leadership.joined.wait(JOIN_WAIT_S)
        self._ready = True
        _log.info("Joined group %s at generation %d", self._group, self._leadership.generation)
        _log.info("Finished starting connectors and tasks")
        ttl_ms = int(self._worker.parsed["inter.worker.key.ttl.ms"])
        while not self._closing.wait(max(ttl_ms / 1000, 1.0)):
            if self._leadership.may_write:
                cluster.renew_key(self._kept, _now_ms(), ttl_ms)

    def _stand_by(self) -> None:
        leadership = self._leadership
        assert leadership is not None, "it is made before the start"

        def manifest_of(class_name: str) -> Manifest | None:
            plugin = self.registry.find(class_name) if class_name else None
            return None if plugin is None else plugin.manifest

        Standby(self._prober, manifest_of, self._kept.configs.snapshot, lambda: leadership.leads).run(self._closing)

    def _patiently(self, deadline: float, act: Callable[[], object]) -> None:
        """Do it again while Kafka does not answer as it should, until the deadline."""
        while True:
            try:
                act()
                return
            except TransientError as error:
                if time.monotonic() > deadline:
                    raise ConfigError(error.message) from error
            self._closing.wait(KAFKA_RETRY_S)

    def close(self, timeout_s: float | None = None) -> None:
        """Drain all tasks, commit, leave the group, stop."""
        if self._closing.is_set():
            return
        timeout_s = self.stop_s - CLOSED_BEFORE_S if timeout_s is None else timeout_s
        super().close(timeout_s - LEAVE_S)
        # Only now: whoever leads next begins where the last commit was.
        if self._leadership is not None:
            self._leadership.leave()
        with contextlib.suppress(Exception):
            self._kept.close()
            self._writer.close()

    def _fail(self, error: Exception) -> None:
        if not self._closing.is_set():
            self._failure.put(error)

    def _fenced(self) -> None:
        if self._leadership is not None:
            self._leadership.fenced()

    # ---- leading -------------------------------------------------------------------------------------------------

    def claim(self) -> None:
        """Fence the forerunner, and read what it has written."""
        self._writer.claim()
        self._kept.catch_up()

    def lead(self) -> None:
        """Take up all connectors."""
        _log.info("This coordinator leads the cluster %s", self._group)
        ttl_ms = int(self._worker.parsed["inter.worker.key.ttl.ms"])
        cluster.tidy(self._kept, self.worker_id, _now_ms(), ttl_ms)
        self.herder.lead()

    def depose(self) -> None:
        """Drop all work at once."""
        _log.warning("This coordinator no longer leads the cluster %s and drops its work", self._group)
        self._writer.release()
        self.herder.depose()


def distributed(
    worker_file: Path | None,
    *,
    ready: Callable[[StandaloneWorker], None] = lambda worker: None,
    stuck: Callable[[], None] = lambda: None,
) -> None:
    """Run a worker of a cluster until it cannot go on; see `main.standalone`."""
    tell_versions()
    config = WorkerConfig.load(worker_file, distributed=True, environ=os.environ)
    run(lambda: DistributedWorker(config), ready=ready, stuck=stuck)


_LOGGERS: Final = Loggers()


def _set_level(logger: str, level: str) -> None:
    if level.upper() in LEVELS:
        _LOGGERS.set_level(logger, level.upper())


def _now_ms() -> int:
    return int(time.time() * 1000)
