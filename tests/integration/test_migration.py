"""A cluster goes from Kafka Connect to Wherry and back on the same group and topics, with connectors running."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.support.distributed import Distributed, cluster_settings
from tests.support.rest import Rest
from tests.support.waiting import eventually

from wherry.coordinator.config import properties
from wherry.coordinator.dev.connect import RealConnect

pytestmark = pytest.mark.integration
FLOW_TIMEOUT_S = 120.0


def real(bootstrap: str, group: str) -> RealConnect:
    # Its default way of looking for plugins takes 15 s longer to find the same ones.
    options = {**cluster_settings(group), "plugin.discovery": "service_load"}
    return RealConnect(bootstrap=bootstrap, options=options)


def checked(folder: Path, bootstrap: str, group: str) -> tuple[int, Any]:
    """Exit code and answer of `wherry migrate check`."""
    file = folder / "worker.properties"
    file.write_text(properties.dumps({"bootstrap.servers": bootstrap, **cluster_settings(group)}))
    command = [sys.executable, "-m", "wherry.coordinator.cli", "migrate", "check", str(file), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


class Flow:
    """A file that goes through a topic into another file, line by line."""

    def __init__(self, folder: Path, topic: str) -> None:
        self.source = {"connector.class": "FileStreamSource", "file": str(folder / "in"), "topic": topic}
        self.sink = {
            "connector.class": "FileStreamSink",
            "file": str(folder / "out"),
            "topics": topic,
            "tasks.max": "2",
        }
        self._in, self._out = folder / "in", folder / "out"
        self.sent: list[str] = []

    def send(self, *lines: str) -> None:
        self.sent += lines
        with self._in.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def received(self) -> list[str]:
        return self._out.read_text().splitlines() if self._out.exists() else []

    def wait(self) -> None:
        arrived = eventually(lambda: len(self.received()) >= len(self.sent), FLOW_TIMEOUT_S)
        assert arrived, f"{len(self.received())} of {len(self.sent)} lines came"


def test_a_running_cluster_is_taken_over_and_given_back_with_no_line_lost_or_repeated(bootstrap, tmp_path, topic):
    group = f"migration-{uuid.uuid4().hex[:8]}"
    flow = Flow(tmp_path, topic)
    flow.send(*(f"first {n}" for n in range(50)))
    with real(bootstrap, group) as connect:
        rest = Rest(connect.rest_url)
        rest.create("src", flow.source)
        rest.create("snk", flow.sink)
        rest.create("resting", {**flow.source, "file": str(tmp_path / "other")})
        rest.create("halted", {**flow.source, "file": str(tmp_path / "another")})
        rest.wait_for_states("resting", "RUNNING", "RUNNING")
        rest.wait_for_states("halted", "RUNNING", "RUNNING")
        assert rest.call("PUT", "/connectors/resting/pause").status == 202
        assert rest.call("PUT", "/connectors/halted/stop").status == 204
        moved = {"offsets": [{"partition": {"filename": str(tmp_path / "another")}, "offset": {"position": 4}}]}
        rest.wait_for_states("halted", "STOPPED")
        assert eventually(lambda: rest.call("PATCH", "/connectors/halted/offsets", moved).status == 200, 60)
        flow.wait()
        rest.wait_for_states("resting", "PAUSED", "PAUSED")
        configs = {name: rest.get(f"/connectors/{name}/config") for name in ("src", "snk", "resting", "halted")}

        code, told = checked(tmp_path, bootstrap, group)
        assert (code, told["runs"], told["problems"], told["missing_topics"]) == (0, True, [], [])
        assert {
            each["name"]: (each["plugin"]["name"], each["target"], each["tasks"], each["positions"])
            for each in told["connectors"]
        } == {
            "src": ("filestream", "STARTED", 1, 1),
            "snk": ("filestream", "STARTED", 2, 0),
            "resting": ("filestream", "PAUSED", 1, 0),
            "halted": ("filestream", "STOPPED", 0, 1),
        }

    flow.send(*(f"between {n}" for n in range(20)))
    with Distributed(bootstrap=bootstrap, group=group) as wherry:
        rest = wherry.rest
        assert eventually(rest.is_healthy, 120), wherry.log_tail()
        assert {name: rest.get(f"/connectors/{name}/config") for name in rest.get("/connectors")} == configs
        rest.wait_for_states("src", "RUNNING", "RUNNING")
        rest.wait_for_states("snk", "RUNNING", "RUNNING", "RUNNING")
        rest.wait_for_states("resting", "PAUSED", "PAUSED")
        rest.wait_for_states("halted", "STOPPED")
        assert rest.get("/connectors/halted/offsets") == moved
        assert rest.get("/connectors/src/topics") == {"src": {"topics": [topic]}}
        flow.wait()
        flow.send(*(f"second {n}" for n in range(50)))
        flow.wait()
        (tmp_path / "another").write_text("old\nnew\n")
        assert rest.call("PUT", "/connectors/halted/resume").status == 202
        flow.sent.append("new")
        flow.wait()
        code, seconds = wherry.stop()
        assert (code, seconds < 25) == (0, True), wherry.log_tail()
        log = wherry.log_path.read_text()
        assert f"Joined group {group}" in log
        assert "Traceback" not in log

    flow.send(*(f"behind {n}" for n in range(20)))
    with real(bootstrap, group) as connect:
        rest = Rest(connect.rest_url)
        rest.wait_for_states("src", "RUNNING", "RUNNING")
        rest.wait_for_states("snk", "RUNNING", "RUNNING", "RUNNING")
        rest.wait_for_states("resting", "PAUSED", "PAUSED")
        flow.send(*(f"third {n}" for n in range(50)))
        flow.wait()
        assert {name: rest.get(f"/connectors/{name}/config") for name in rest.get("/connectors")} == configs
    assert sorted(flow.received()) == sorted(flow.sent)
