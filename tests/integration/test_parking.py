"""An idle sink gives everything back, shows RUNNING all the while, and is there when a record comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.standalone import Standalone
from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

FLOW_TIMEOUT_S = 120.0


def test_a_sink_of_the_sdk_parks_and_wakes_again(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    create_topic(kafka.bootstrap, "parking", partitions=2)
    taken = tmp_path / "out.txt"
    sink = {"connector.class": "FileStreamSink", "topics": "parking", "file": str(taken), "tasks.max": "2"}
    settings = {"wherry.idle.park.ms": "500"}
    # One that begins at the end of its topic: what comes while it is parked is behind that end.
    create_topic(kafka.bootstrap, "parking-late")
    produce(kafka.bootstrap, "parking-late", [b"old"])
    new = tmp_path / "new.txt"
    late = {
        "connector.class": "FileStreamSink",
        "topics": "parking-late",
        "file": str(new),
        "consumer.override.auto.offset.reset": "latest",
    }
    connectors = {"sink": sink, "late": late}
    with Standalone(bootstrap=kafka.bootstrap, connectors=connectors, settings=settings) as worker:
        for number in range(2):
            produce(kafka.bootstrap, "parking", [f"{number}".encode()])
            wanted = [str(each) for each in range(number + 1)]
            assert eventually(
                lambda wanted=wanted: taken.exists() and taken.read_text().split() == wanted, FLOW_TIMEOUT_S
            ), worker.log_tail()
            assert eventually(lambda: worker.rest.get("/wherry/v1/leases")["leases"] == [], FLOW_TIMEOUT_S)
            sidecars = worker.rest.get("/wherry/v1/sidecars")["sidecars"]
            assert eventually(
                lambda: not [each for each in worker.rest.get("/wherry/v1/sidecars")["sidecars"] if each["connector"]],
                FLOW_TIMEOUT_S,
            ), sidecars
            assert worker.rest.states("sink") == ("RUNNING", "RUNNING", "RUNNING")
        produce(kafka.bootstrap, "parking-late", [b"new"])
        assert eventually(lambda: new.exists() and bool(new.read_text()), FLOW_TIMEOUT_S), worker.log_tail()
        assert new.read_text() == "new\n"
