"""Clients that users have: each call of two of them, and random requests of the shapes that the document tells."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from kafka_connect import KafkaConnect
from tests.support.distributed import Distributed
from tests.support.rest import MOMENTARY, POLL_S
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.rest import openapi

NPM_CLIENT = "kafka-connect-client@2.3.0"
NPM_TIMEOUT_S = 240
STATE_TIMEOUT_S = 120.0
EXAMPLES = 5
SCRIPT = Path(__file__).parent / "clients" / "every_call.js"


@pytest.fixture(scope="module", params=["standalone", "cluster"])
def worker(request: pytest.FixtureRequest, kafka: EmbeddedKafka) -> Iterator[Standalone]:
    """One worker for all clients: alone, or one of two of which the other leads."""
    with contextlib.ExitStack() as running:
        members: list[Standalone] = [Standalone(bootstrap=kafka.bootstrap)]
        if request.param == "cluster":
            group, standby = f"clients-{uuid.uuid4().hex[:8]}", {"wherry.standby": "cold"}
            members = [*(Distributed(bootstrap=kafka.bootstrap, group=group, settings=standby) for _ in range(2))]
        for member in members:
            running.enter_context(member)
            assert eventually(member.rest.is_healthy, STATE_TIMEOUT_S), member.log_tail()
        yield members[-1]


@pytest.fixture
def name() -> str:
    return f"c-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_text("one\ntwo\n")
    return path


class Watched:
    """A client that notes what it is called for, and asks again what can't be told just now, as clients have to."""

    def __init__(self, client: KafkaConnect) -> None:
        self._client = client
        self.called: set[str] = set()

    def __getattr__(self, call: str) -> Any:
        self.called.add(call)
        return partial(self._call, getattr(self._client, call))

    @staticmethod
    def _call(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        deadline = time.monotonic() + STATE_TIMEOUT_S
        while True:
            try:
                return method(*arguments, **options)
            except requests.HTTPError as error:
                if error.response.status_code != 409 or not MOMENTARY.search(error.response.text):
                    raise
                if time.monotonic() >= deadline:
                    raise
            time.sleep(POLL_S)


def test_every_call_of_the_python_client_works(worker: Standalone, name: str, lines: Path, topic: str) -> None:
    client = Watched(KafkaConnect(url=worker.rest.url))
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(lines), "topic": topic}

    assert client.get_cluster_info()["version"].split(".")[0] == "4"
    assert "FileStreamSource" in str(client.list_connector_plugins())
    checked = client.validate_connector_config("FileStreamSource", {"name": name, **config})
    assert checked["error_count"] == 0
    assert client.create_connector({"name": name, "config": config})["name"] == name
    worker.rest.wait_for_states(name, "RUNNING", "RUNNING")
    assert name in client.list_connectors()
    assert client.list_connectors(expand="status", pattern=name)[name]["status"]["connector"]["state"] == "RUNNING"
    assert client.get_connector(name)["type"] == "source"
    assert client.get_connector_config(name)["topic"] == topic
    assert client.update_connector(name, {**config, "batch.size": "5"})["config"]["batch.size"] == "5"
    worker.rest.wait_for_states(name, "RUNNING", "RUNNING")
    assert client.get_connector_status(name)["name"] == name
    assert client.list_connector_tasks(name)[0]["id"] == {"connector": name, "task": 0}
    assert client.get_connector_task_status(name, 0)["id"] == 0
    assert eventually(lambda: client.list_connector_topics(name)[name]["topics"] == [topic], STATE_TIMEOUT_S)
    client.reset_connector_topics(name)
    client.restart_connector(name)
    client.restart_connector(name, include_tasks=True, only_failed=False)
    client.restart_connector_task(name, 0)
    client.pause_connector(name)
    worker.rest.wait_for_states(name, "PAUSED", "PAUSED")
    client.resume_connector(name)
    worker.rest.wait_for_states(name, "RUNNING", "RUNNING")
    client.restart_all_connectors(include_tasks=True, pattern=name)
    client.pause_all_connectors(pattern=name)
    client.resume_all_connectors(pattern=name)
    client.stop_all_connectors(pattern=name)
    client.stop_connector(name)
    worker.rest.wait_for_states(name, "STOPPED")
    client.delete_all_connectors(pattern=name)
    assert name not in client.list_connectors()
    with pytest.raises(requests.HTTPError, match="404"):
        client.delete_connector(name)
    assert client.called == {call for call in dir(KafkaConnect) if not call.startswith("_")}


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm client."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are not installed")
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text('{"private": true}')
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", NPM_CLIENT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_call_of_the_npm_client_works(
    worker: Standalone, node_modules: Path, name: str, lines: Path, topic: str
) -> None:
    script = node_modules / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    host, _, port = worker.rest.url.removeprefix("http://").rpartition(":")
    command = ["node", str(script), host, port, name, str(lines), topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=NPM_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    statuses = {what: answer["status"] for what, answer in found.items()}
    assert statuses == {
        **dict.fromkeys(found, 200),
        **dict.fromkeys(("create", "create again"), 201),
        **dict.fromkeys(("restart", "restart all", "restart task", "stop", "delete", "delete again"), 204),
        **dict.fromkeys(("pause", "resume", "reset topics"), 202),
    }
    assert found["config"]["data"]["batch.size"] == "10"
    assert found["expanded"]["data"] == [name]  # it asks for "expand[]", which Kafka Connect does not know either
    assert found["offsets"]["data"]["offsets"] == [{"partition": {"filename": str(lines)}, "offset": {"position": 0}}]
    assert {each["type"] for each in found["all plugins"]["data"]} >= {"source", "sink", "converter", "predicate"}


schema = schemathesis.openapi.from_dict(copy.deepcopy(openapi.document()))
# Of any request that fits no call: names that are paths of their own, other methods, other types of bodies.
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
OF_HTTP = (400, 404, 405, 406, 415)
# Kafka Connect's own: clients know these texts, so that they stay what they are.
KNOWN_500 = (
    "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: ",
    "org.apache.kafka.common.config.ConfigException: ",
    "Offsets may only contain primitive types as values",
    "Partition objects cannot be null",
    "The request body is missing",
    '"level" is empty',
    "Cannot deserialize",
    "The request body is not valid JSON",
    "The request body has no",
    'Unrecognized field "',
    '"offsets" must be',
    '"partition" must be',
    '"offset" must be',
    "Invalid initial_state",
)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_a_request_of_the_documented_shape_is_answered_in_the_documented_shape(worker: Standalone, case: Any) -> None:
    response = case.call(base_url=worker.rest.url)
    told = f"{case.method} {case.formatted_path} {case.body!r}: {response.status_code} {response.text[:500]}"
    if case.method == "OPTIONS":
        assert response.status_code == 200, told
        return
    documented = case.operation.definition.raw["responses"]
    assert str(response.status_code) in documented or response.status_code in OF_HTTP, told
    if response.status_code == 500:
        assert response.json()["message"].startswith(KNOWN_500), told
    elif response.status_code < 400 and case.method in METHODS:
        case.validate_response(response, checks=[schemathesis.checks.response_schema_conformance])
    elif response.status_code >= 400:
        assert set(response.json()) == {"error_code", "message"}, told
