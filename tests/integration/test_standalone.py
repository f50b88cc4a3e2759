"""`wherry standalone` as a user starts it: Kafka Connect's own files, a real broker, real sidecars, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.position import Position
from wherry.coordinator.dev.ports import free_ports
from wherry.coordinator.store.local import FileOffsetStore

START_TIMEOUT_S = 120.0
FLOW_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 25.0  # before its own limit cuts it off; it takes a second or two on a machine that lets it run
STRING = "org.apache.kafka.connect.storage.StringConverter"


@dataclass
class Worker:
    """A worker's process and its address."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data=content, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=95) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal; answers how long the end took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(STOP_TIMEOUT_S + 10)
        return time.monotonic() - began


def until(found: Callable[[], Any], what: str, timeout_s: float = FLOW_TIMEOUT_S) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (value := found()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.1)
    return value


@pytest.fixture(scope="module")
def start(kafka, tmp_path_factory) -> Iterator[Callable[..., Worker]]:
    """Starts workers, and kills what a test left."""
    running: list[subprocess.Popen[bytes]] = []

    def make(folder: Path, *files: Path, wait: bool = True, **settings: str) -> Worker:
        port = settings.pop("port", None) or str(free_ports(1)[0])
        values = {
            "bootstrap.servers": kafka.bootstrap,
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(folder / "offsets"),
            "offset.flush.interval.ms": "500",
            "task.shutdown.graceful.timeout.ms": "30000",
            "listeners": f"http://127.0.0.1:{port}",
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in values.items() if value is not None))
        log = folder / f"worker-{len(running)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "wherry.coordinator.cli", "standalone", str(properties), *map(str, files)],
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        running.append(process)
        worker = Worker(process, f"http://127.0.0.1:{port}", log)
        if wait:
            until(lambda: _answers(worker), f"an answer of {worker.url}", START_TIMEOUT_S)
        return worker

    yield make
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def shared(start, tmp_path_factory) -> Worker:
    """One worker for the tests that only talk to it."""
    return start(tmp_path_factory.mktemp("shared"))


def _answers(worker: Worker) -> bool:
    assert worker.process.poll() is None, worker.log.read_text()
    try:
        return worker.request("GET", "/")[0] == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def _flow(folder: Path, topic: str) -> tuple[Path, Path]:
    source = folder / "source.properties"
    source.write_text(
        f"name=lines-{topic}\nconnector.class=FileStreamSource\ntasks.max=1\nfile={folder / 'in'}\ntopic={topic}\n"
    )
    sink = folder / "sink.json"
    config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(folder / "out"), "tasks.max": 1}
    sink.write_text(json.dumps({"name": f"print-{topic}", "config": config}))
    return source, sink


def _lines(folder: Path) -> list[str]:
    path = folder / "out"
    return path.read_text().splitlines() if path.exists() else []


def test_lines_flow_and_a_restart_goes_on_where_it_stopped(start, tmp_path, topic):
    files = _flow(tmp_path, topic)
    (tmp_path / "in").write_text("".join(f"line {number}\n" for number in range(500)))
    worker = start(tmp_path, *files)
    until(lambda: len(_lines(tmp_path)) >= 500, "500 lines")
    took_s = worker.stop()
    assert (worker.process.returncode, took_s < STOP_TIMEOUT_S) == (0, True), worker.log.read_text()
    log = worker.log.read_text()
    assert "Kafka version: 4.3.1" in log
    assert "Finished starting connectors and tasks" in log
    assert "Traceback" not in log

    with (tmp_path / "in").open("a") as file:
        file.write("one more\n")
    again = start(tmp_path, *files)
    until(lambda: "one more" in _lines(tmp_path), "the line added meanwhile")
    assert again.stop() < STOP_TIMEOUT_S
    assert _lines(tmp_path) == [*(f"line {number}" for number in range(500)), "one more"]


def test_a_worker_goes_on_where_kafka_connect_had_got_to(start, tmp_path, topic):
    """The offsets file is Kafka Connect's: 8 bytes of the file are read already."""
    source, sink = _flow(tmp_path, topic)
    (tmp_path / "in").write_text("old\nold\nnew\n")
    partition = json.dumps({"filename": str(tmp_path / "in")}, separators=(",", ":"))
    FileOffsetStore(tmp_path / "offsets").write(f"lines-{topic}", [Position(partition, '{"position":8}')])
    worker = start(tmp_path, source, sink)
    until(lambda: _lines(tmp_path), "the new line")
    worker.stop()
    assert _lines(tmp_path) == ["new"]
    assert FileOffsetStore(tmp_path / "offsets").load(f"lines-{topic}") == [Position(partition, '{"position":12}')]


def test_a_connector_is_created_paused_stopped_moved_and_deleted_over_rest(shared, tmp_path, topic):
    (tmp_path / "in").write_text("a\nb\n")
    name = f"rest-{topic}"
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in"), "topic": topic}
    status, info = shared.request("POST", "/connectors/", {"name": name, "config": config})
    assert (status, info["name"], info["type"]) == (201, name, "source")
    assert shared.request("POST", "/connectors", {"name": name, "config": config})[0] == 409

    def state() -> tuple[str, list[str]]:
        code, shown = shared.request("GET", f"/connectors/{name}/status")
        if code == 404:  # As in Kafka Connect, a connector has no status until it was begun.
            return "", []
        return shown["connector"]["state"], [task["state"] for task in shown.get("tasks", ())]

    until(lambda: state() == ("RUNNING", ["RUNNING"]), "RUNNING")
    path = f"/connectors/{name}/offsets"
    until(lambda: shared.request("GET", path)[1]["offsets"], "offsets")
    assert shared.request("PUT", f"/connectors/{name}/pause")[0] == 202
    until(lambda: state() == ("PAUSED", ["PAUSED"]), "PAUSED")
    assert shared.request("PATCH", path, {"offsets": [{"partition": {"a": 1}, "offset": None}]})[0] == 400
    assert shared.request("PUT", f"/connectors/{name}/stop")[0] == 204
    until(lambda: state() == ("STOPPED", []), "STOPPED")
    moved = {"offsets": [{"partition": {"filename": str(tmp_path / "in")}, "offset": {"position": 2}}]}
    until(lambda: shared.request("PATCH", path, moved)[0] == 200, "altered offsets")
    assert shared.request("GET", path)[1] == moved
    assert shared.request("PUT", f"/connectors/{name}/resume")[0] == 202
    until(lambda: state() == ("RUNNING", ["RUNNING"]), "RUNNING again")
    assert shared.request("DELETE", f"/connectors/{name}")[0] == 204
    assert shared.request("GET", f"/connectors/{name}")[0] == 404


def test_the_worker_tells_who_it_is(shared, kafka):
    _, info = shared.request("GET", "/")
    assert info["version"] == "4.3.1"
    until(lambda: shared.request("GET", "/")[1]["kafka_cluster_id"], "the cluster's id")
    assert shared.request("GET", "/wherry/v1/leases")[0] == 200
    until(lambda: shared.request("GET", "/health")[0] == 200, "health")


def test_a_bad_value_is_refused_by_validate_and_create_alike(shared):
    config = {"name": "bad", "connector.class": "FileStreamSource", "topic": "t", "tasks.max": "dog"}
    status, infos = shared.request("PUT", "/connector-plugins/FileStreamSource/config/validate", config)
    assert (status, infos["error_count"]) == (200, 2)
    status, error = shared.request("POST", "/connectors", {"name": "bad", "config": config})
    assert status == 400
    assert "Invalid value dog for configuration tasks.max: Not a number of type INT" in error["message"]


def test_the_file_connectors_validate_with_kafkas_key_sets(shared):
    for name, extra, count in (("FileStreamSource", {"topic": "t"}, 27), ("FileStreamSink", {"topics": "t"}, 25)):
        config = {"name": "c", "connector.class": name, "file": "/tmp/x", **extra}
        _, infos = shared.request("PUT", f"/connector-plugins/{name}/config/validate", config)
        assert (len(infos["configs"]), infos["error_count"]) == (count, 0)


def _fails(worker: Worker, code: int = 1) -> str:
    assert worker.process.wait(START_TIMEOUT_S) == code
    log = worker.log.read_text()
    assert "Traceback" not in log
    return log


def test_a_worker_file_without_a_required_key_is_one_sentence(start, tmp_path):
    log = _fails(start(tmp_path, wait=False, key__converter=None))
    assert 'worker.properties: Missing required configuration "key.converter" which has no default value.' in log


def test_a_taken_port_is_one_sentence(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"Port {port} is already in use" in _fails(start(tmp_path, wait=False, port=port))


def test_an_unreachable_broker_is_given_up_on(start, tmp_path):
    settings = {"bootstrap__servers": f"127.0.0.1:{free_ports(1)[0]}", "wherry__kafka__start__timeout__ms": "300"}
    assert "Start Kafka, or correct bootstrap.servers." in _fails(start(tmp_path, wait=False, **settings))


def test_a_connector_file_that_names_an_unknown_class_ends_the_worker(start, tmp_path):
    (tmp_path / "c.properties").write_text("name=c\nconnector.class=Nope\n")
    log = _fails(start(tmp_path, tmp_path / "c.properties", wait=False))
    assert "Failed to find any class that implements Connector and which name matches Nope" in log


def test_a_damaged_offsets_file_is_one_sentence(start, tmp_path):
    (tmp_path / "offsets").write_bytes(os.urandom(64))
    assert "is damaged or no offsets file" in _fails(start(tmp_path, wait=False))


def test_nothing_is_left_behind_when_the_worker_is_killed(start, tmp_path, topic):
    source, _ = _flow(tmp_path, topic)
    (tmp_path / "in").write_text("a\n")
    worker = start(tmp_path, source)
    until(lambda: worker.request("GET", "/wherry/v1/leases")[1]["leases"], "a lease")
    children = _descendants(worker.process.pid)
    assert children
    worker.stop(signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "the end of all children")


def _descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}
