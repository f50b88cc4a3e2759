"""The three topics of a cluster: made alike by the real Kafka Connect and by Wherry, and refused alike."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.peer.peers import CONNECT, WHERRY
from tests.support.distributed import Distributed, cluster_settings
from tests.support.topics import create_topic
from tests.support.waiting import eventually

from wherry.coordinator.dev.connect import RealConnect
from wherry.coordinator.kafka import KafkaAdmin

TIMEOUT_S = 240.0
KINDS = ("config", "offset", "status")
MADE = {
    "offset.storage.partitions": "4",
    "status.storage.partitions": "-1",
    "offset.storage.replication.factor": "-1",
    "status.storage.segment.bytes": "2097152",
    "config.storage.cleanup.policy": "delete",
    "config.storage.min.compaction.lag.ms": "5",
}
SHOWN = ("cleanup.policy", "segment.bytes", "min.compaction.lag.ms", "retention.ms", "max.message.bytes")
REFUSED: Mapping[str, tuple[str, int, dict[str, str]]] = {
    "config topic of two partitions": ("config", 2, {"cleanup.policy": "compact"}),
    "status topic that forgets": ("status", 2, {"cleanup.policy": "delete"}),
    "offset topic that forgets and compacts": ("offset", 2, {"cleanup.policy": "compact,delete"}),
}


class Run:
    """A worker of either kind on topics of its own."""

    def __init__(self, name: str, bootstrap: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.group = f"topics-{uuid.uuid4().hex[:8]}"
        self._name, self._bootstrap, self._folder, self._settings = name, bootstrap, folder, settings

    def run(self, until: Callable[[RealConnect | Distributed], bool]) -> str:
        """Start it, wait, end it; answers its log."""
        if self._name == CONNECT:
            options = {**cluster_settings(self.group), **self._settings, "plugin.discovery": "service_load"}
            connect = RealConnect(bootstrap=self._bootstrap, options=options, work_dir=self._folder)
            try:
                connect.launch()
                assert eventually(lambda: until(connect), TIMEOUT_S), connect.last_words()
                return connect.log_path.read_text()
            finally:
                connect.kill()  # by itself it takes 45 s over its end
                connect.close()
        settings = {**self._settings, "wherry.standby": "cold"}
        ours = Distributed(bootstrap=self._bootstrap, group=self.group, settings=settings)
        try:
            ours.start()
            assert eventually(lambda: until(ours), TIMEOUT_S), ours.log_tail()
            return ours.log_path.read_text()
        finally:
            ours.close()


def side_by_side(*acts: Callable[[], None]) -> None:
    """Do all at the same time; the first error is raised."""
    errors: list[BaseException] = []

    def guarded(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S * 2)
    if errors:
        raise errors[0]


def test_topics_are_made_as_kafka_connect_makes_them(kafka_address: str, tmp_path: Path) -> None:
    runs = {name: Run(name, kafka_address, tmp_path / name, MADE) for name in (CONNECT, WHERRY)}

    def healthy(worker: RealConnect | Distributed) -> bool:
        return worker.is_healthy() if isinstance(worker, RealConnect) else worker.rest.is_healthy()

    side_by_side(*(lambda run=run: run.run(healthy) for run in runs.values()))  # type: ignore[misc]
    admin = KafkaAdmin({"bootstrap.servers": kafka_address})
    partitions = admin.topics()
    made = {
        name: {
            kind: (partitions[topic], {key: admin.topic_config(topic)[key] for key in SHOWN})
            for kind in KINDS
            for topic in (f"{run.group}-{kind}",)
        }
        for name, run in runs.items()
    }
    assert made[WHERRY] == made[CONNECT]


@pytest.fixture(scope="module")
def logs(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[str, str]]:
    """The topic that is wrong, and the log of the worker that ended, by scenario and kind of worker."""
    folder = tmp_path_factory.mktemp("topics")
    found: dict[tuple[str, str], tuple[str, str]] = {}

    def live(scenario: str, name: str) -> None:
        kind, partitions, config = REFUSED[scenario]
        run = Run(name, kafka_address, folder / f"{name}-{kind}", {})
        topic = create_topic(kafka_address, f"{run.group}-{kind}", partitions=partitions, config=config)

        def ended(worker: RealConnect | Distributed) -> bool:
            if isinstance(worker, RealConnect):
                return worker.log_path.exists() and "Herder stopping" in worker.log_path.read_text()
            return worker.ended  # what it says last comes after the end of REST

        found[scenario, name] = topic, run.run(ended)

    pairs = [(scenario, name) for scenario in REFUSED for name in (CONNECT, WHERRY)]
    side_by_side(*(lambda pair=pair: live(*pair) for pair in pairs))
    return found


@pytest.mark.parametrize("name", [CONNECT, WHERRY])
@pytest.mark.parametrize("scenario", REFUSED)
def test_topics_that_cannot_serve_end_the_worker(
    logs: dict[tuple[str, str], tuple[str, str]], scenario: str, name: str
) -> None:
    topic, log = logs[scenario, name]
    assert topic in log
    if name == WHERRY:
        assert "Traceback" not in log
        assert REFUSED[scenario][0] + ".storage.topic" in log
