"""The stores of coordinators of one group on a broker, without the coordinators."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.store.internal_topics import InternalTopic, ensure
from wherry.coordinator.store.kafka import KafkaStores
from wherry.coordinator.store.topiclog import FencedWriter


class Cluster:
    """The stores of coordinators of one group, all of which believe to lead until told otherwise."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] | None = None) -> None:
        self.config = {"bootstrap.servers": bootstrap, **(client or {})}
        self.admin = KafkaAdmin(self.config)
        self.group = f"stores-{uuid.uuid4().hex[:8]}"
        self.topics = [
            InternalTopic(kind, f"{self.group}-{kind}", 1 if kind == "config" else 3, 1, {"cleanup.policy": "compact"})
            for kind in ("config", "offset", "status")
        ]
        for topic in self.topics:
            assert ensure(self.admin, topic)
        self.leads = True
        self.levels: list[tuple[str, str]] = []
        self._open: list[KafkaStores] = []

    def writer(self) -> FencedWriter:
        return FencedWriter(self.config, f"connect-cluster-{self.group}")

    def stores(
        self, writer: FencedWriter | None = None, *, generation: int = 7, workers_write: bool = False
    ) -> KafkaStores:
        stores = KafkaStores(
            self.topics,
            self.config,
            self.admin,
            self.group,
            writer or self.writer(),
            leads=lambda: self.leads,
            generation=lambda: generation,
            level_set=lambda logger, level: self.levels.append((logger, level)),
            workers_write=workers_write,
        )
        stores.start()
        self._open.append(stores)
        return stores

    def close(self) -> None:
        for stores in self._open:
            stores.close()
