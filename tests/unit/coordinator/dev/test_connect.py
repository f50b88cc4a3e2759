"""The real Kafka Connect worker's settings, as far as they need no worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.dev.connect import RealConnect, worker_settings
from wherry.coordinator.dev.errors import ServerStartError


def test_a_distributed_worker_keeps_its_state_in_single_replicas() -> None:
    settings = worker_settings("distributed", "kafka:9092", Path("/srv"))
    assert settings["group.id"] == "connect-cluster"
    assert {settings[f"{topic}.storage.replication.factor"] for topic in ("config", "offset", "status")} == {"1"}


def test_a_standalone_worker_keeps_its_offsets_in_its_folder() -> None:
    settings = worker_settings("standalone", "kafka:9092", Path("/srv"))
    assert settings["offset.storage.file.filename"] == "/srv/connect.offsets"
    assert "group.id" not in settings


def test_connector_files_need_a_standalone_worker() -> None:
    with pytest.raises(ServerStartError, match="takes no connector files"):
        RealConnect(bootstrap="kafka:9092", connectors=[Path("a.json")])
