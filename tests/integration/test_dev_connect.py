"""The real Kafka Connect worker, distributed and standalone."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.topics import consume, values

from wherry.coordinator.dev.connect import RealConnect
from wherry.coordinator.dev.kafka import EmbeddedKafka

LINES = ["one", "two", "three"]


def source_config(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=90
    ) as answer:
        return json.load(answer)


def test_a_distributed_worker_runs_a_connector_made_through_rest(own_kafka: EmbeddedKafka, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in LINES))
    with RealConnect(bootstrap=own_kafka.bootstrap) as worker:
        assert ask(worker.rest_url)["version"] == "4.3.1"
        ask(f"{worker.rest_url}/connectors", {"name": "lines", "config": source_config(file, "lines")})
        assert values(consume(own_kafka.bootstrap, "lines", 3)) == [line.encode() for line in LINES]
    assert not worker.work_dir.exists()


def test_a_standalone_worker_runs_the_connector_files_it_is_given(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic()
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in LINES))
    connector = tmp_path / "connector.json"
    connector.write_text(json.dumps({"name": "lines", "config": source_config(file, topic)}))
    with RealConnect(bootstrap=bootstrap, mode="standalone", connectors=[connector]) as worker:
        assert values(consume(bootstrap, topic, 3)) == [line.encode() for line in LINES]
        assert ask(f"{worker.rest_url}/connectors") == ["lines"]
