"""Which connectors share a planning process, who is kept apart, and when a process is given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from wherry.contract.client import SidecarClient
from wherry.contract.errors import ConfigError, TransientError
from wherry.control.v1 import lease_pb2
from wherry.coordinator.hosts import Acquired
from wherry.coordinator.planning import APART_S, IDLE_S, SharedPlanning


class Host:
    """Starts nothing; counts."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.released: list[str] = []
        self.refuses = False

    def acquire_plugin(self, plugin: str, directory: str, holder: str, *, planning: bool = False) -> Acquired:
        assert planning
        if self.refuses:
            raise TransientError("no memory")
        self.started.append(directory)
        return Acquired("unix:///nowhere", f"i{len(self.started)}")

    def release(self, instance_id: str, holder: str) -> None:
        self.released.append(instance_id)


class Client(SidecarClient):
    """A client of a process that answers everything, until it is told to die."""

    def __init__(self, log: list[tuple[str, str]], over: threading.Event, connector: str = "") -> None:
        super().__init__("unix:///nowhere", connector=connector)
        self.log, self.over = log, over

    def about(self, connector: str) -> SidecarClient:
        return Client(self.log, self.over, connector)

    def configure(self, connector: str, *given: Any, **options: Any) -> None:
        if connector == "wrong":
            raise ConfigError("no such folder")
        self.log.append(("configure", connector))

    def stop(self, **options: Any) -> None:
        self.log.append(("stop", self._metadata[0][1].decode()))

    def events(self) -> Iterator[Any]:
        self.over.wait(10.0)
        yield from ()


class World:
    def __init__(self) -> None:
        self.host = Host()
        self.log: list[tuple[str, str]] = []
        self.deaths: list[threading.Event] = []
        self.ended: list[Sequence[str]] = []
        self.now = 1000.0
        self.planning = SharedPlanning(
            self.host, lambda name, event: None, self.ended.append, clock=lambda: self.now, connect=self._connect
        )
        self.planning._sweeping = True  # no thread: tests sweep

    def _connect(self, endpoint: str) -> SidecarClient:
        self.deaths.append(threading.Event())
        return Client(self.log, self.deaths[-1])

    def hold(self, connector: str, directory: str = "/plugins/files") -> Any:
        return self.planning.hold(
            lease_pb2.SidecarSpec(plugin="files", plugin_directory=directory, connector=connector, generation=1)
        )


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for death in made.deaths:
        death.set()


def test_connectors_of_one_plugin_share_a_process_and_others_do_not(world: World) -> None:
    world.hold("one")
    world.hold("two")
    world.hold("three", "/plugins/other")
    assert world.host.started == ["/plugins/files", "/plugins/other"]
    assert world.log == [("configure", "one"), ("configure", "two"), ("configure", "three")]


def test_a_process_is_kept_for_a_while_after_its_last_connector(world: World) -> None:
    share = world.hold("one")
    world.now += 10 * IDLE_S
    assert world.planning.sweep()
    world.planning.let_go(share)
    assert world.log[-1] == ("stop", "one")
    world.now += IDLE_S - 1
    assert world.planning.sweep()
    world.now += 2
    assert not world.planning.sweep()
    assert world.host.released == ["i1"]
    assert world.ended == []


def test_a_refused_configuration_binds_nobody(world: World) -> None:
    with pytest.raises(ConfigError):
        world.hold("wrong")
    world.now += IDLE_S + 1
    assert not world.planning.sweep()


def test_a_process_that_ends_by_itself_is_told_and_the_next_one_is_new(world: World) -> None:
    world.hold("two")
    world.hold("one")
    world.deaths[0].set()
    deadline = time.monotonic() + 60
    while not world.ended and time.monotonic() < deadline:
        time.sleep(0.005)
    assert world.ended == [["one", "two"]]
    world.hold("one")
    assert len(world.host.started) == 2


def test_a_process_that_cannot_be_had_is_asked_for_again(world: World) -> None:
    world.host.refuses = True
    with pytest.raises(TransientError):
        world.hold("one")
    world.host.refuses = False
    assert world.hold("one").connector == "one"


def test_a_connector_is_kept_apart_for_a_while(world: World) -> None:
    world.planning.set_apart("one")
    assert world.planning.is_apart("one")
    assert not world.planning.is_apart("two")
    world.now += APART_S + 1
    assert not world.planning.is_apart("one")


def test_one_deleted_meanwhile_begins_anew(world: World) -> None:
    world.planning.set_apart("one")
    world.planning.forget("one")
    assert not world.planning.is_apart("one")
