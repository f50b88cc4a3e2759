"""Connectors planned in one process of their plugin, and what happens when one of them ends or blocks it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.plugins import running_hosts, write_plugin

from wherry.contract.description import Capabilities
from wherry.contract.errors import WherryError
from wherry.control.v1 import lease_pb2
from wherry.coordinator import planner as planners
from wherry.coordinator.effects import LoadPlan
from wherry.coordinator.events import ConnectorSpec, Event, Kind, SourcePlan
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.planner import Planner

pytestmark = pytest.mark.integration

CODE = """\
import os, time
from wherry.sdk import Config, Plan, Source, Split, key, serve

class FilesConfig(Config):
    mood: str = key(default="")

class Files(Source[FilesConfig]):
    class_name = "test.Files"
    splits = True

    def plan(self, offsets, max_tasks):
        if self.config.mood == "die":
            os._exit(3)
        if self.config.mood == "hang":
            time.sleep(600)
        return Plan(splits=[Split(f"{self.context.connector} in {os.getpid()}")], replan_after_ms=1000)

    def read(self, work, offsets):
        yield from ()

if __name__ == "__main__":
    serve(Files, name="files", version="1")
"""


class Grants:
    """Gives every connector the plugin of this test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sidecar(self, spec: ConnectorSpec, generation: int) -> lease_pb2.SidecarSpec:
        return lease_pb2.SidecarSpec(
            plugin="files",
            plugin_directory=str(self.folder),
            class_name="test.Files",
            connector=spec.name,
            generation=generation,
            config=spec.config,
        )

    def shares_planning(self, spec: ConnectorSpec) -> bool:
        return True

    def check_topic_creation(self, spec: ConnectorSpec) -> None:
        pass

    def description(self, spec: ConnectorSpec) -> Grants:
        return self

    capabilities = Capabilities(splits=True)


@pytest.fixture
def hosts() -> Iterator[HostClient]:
    with running_hosts() as made:
        yield made


@pytest.fixture
def planner(hosts: HostClient, tmp_path: Path) -> Planner:
    write_plugin(tmp_path, "files", CODE, class_name="test.Files", planning="shared")
    posted: list[Event] = []
    return Planner(hosts, None, Grants(tmp_path), posted.append, lambda name, values: None)  # type: ignore[arg-type]


def pid_of(planner: Planner, connector: str, mood: str = "") -> int:
    """Plans a connector; the process it was planned in."""
    spec = ConnectorSpec(connector, Kind.SOURCE, {"mood": mood})
    plan = planner.plan(LoadPlan(connector, 1, 1, spec), [])
    assert isinstance(plan, SourcePlan)
    name, _, pid = plan.plan.splits[0].id.rpartition(" in ")
    assert name == connector
    return int(pid)


def test_connectors_are_planned_in_one_process_that_dies_for_none_but_its_killer(planner: Planner) -> None:
    shared = pid_of(planner, "one")
    assert [pid_of(planner, name) for name in ("two", "three", "one")] == [shared] * 3
    with pytest.raises(WherryError):
        pid_of(planner, "killer", "die")
    after = pid_of(planner, "one")
    assert after != shared
    assert pid_of(planner, "two") == after
    # Good again, it is still planned apart for a while.
    assert pid_of(planner, "killer") != after


def test_one_that_hangs_keeps_no_other_waiting(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planners, "PLAN_TIMEOUT_S", 6.0)
    shared = pid_of(planner, "one")
    failures: list[Exception] = []

    def hang() -> None:
        try:
            pid_of(planner, "stuck", "hang")
        except WherryError as error:
            failures.append(error)

    hanging = threading.Thread(target=hang)
    hanging.start()
    assert pid_of(planner, "two") == shared
    assert not failures, "the one that hangs is still waited for"
    hanging.join(120)
    assert failures
    assert pid_of(planner, "one") == shared


def test_a_shared_process_that_was_killed_is_another_at_the_next_plan(planner: Planner) -> None:
    shared = pid_of(planner, "one")
    os.kill(shared, signal.SIGKILL)
    assert pid_of(planner, "one") != shared
