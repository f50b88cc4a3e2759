"""One process that plans for several connectors: each call is about the one it names."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc
from wherry.contract.client import SidecarClient
from wherry.contract.errors import ConnectorBugError, FencedError, TransientError, WherryError
from wherry.contract.plan import Work as ContractWork
from wherry.sdk import Config, Offsets, Plan, Secret, Source, Split, key
from wherry.sdk.plugin import Context
from wherry.sdk.testing import sidecar

DEADLINE_S = 30.0


class FilesConfig(Config):
    files: int = key(default=1)
    password: Secret | None = key(default=None)


class Files(Source[FilesConfig]):
    """Plans as many splits as it is told; `slow` ones wait until they are let go."""

    class_name = "test.Files"
    splits = True
    watches = True
    ended: ClassVar[list[str]] = []
    contexts: ClassVar[dict[str, Context]] = {}
    gate: ClassVar[threading.Event] = threading.Event()

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        self.contexts[self.context.connector] = self.context
        if self.context.connector == "slow":
            self.gate.wait(DEADLINE_S)
        return Plan(splits=[Split(f"{self.context.connector}-{n}") for n in range(self.config.files)])

    def read(self, work: Any, offsets: Offsets) -> Iterator[Any]:
        yield from ()

    def stop(self) -> None:
        self.ended.append(self.context.connector)


@pytest.fixture
def client() -> Iterator[SidecarClient]:
    Files.ended.clear()
    Files.gate.clear()
    with sidecar(Files) as connected:
        yield connected
        Files.gate.set()


def bound(client: SidecarClient, connector: str, generation: int = 1, **config: str) -> SidecarClient:
    about = client.about(connector)
    about.configure(connector, "test.Files", generation, config)
    return about


def splits(client: SidecarClient) -> list[str]:
    return [split.id for split in client.plan(deadline_s=DEADLINE_S).splits]


def test_each_connector_is_planned_by_its_own_configuration(client: SidecarClient) -> None:
    one, two = bound(client, "größe", files="1"), bound(client, "two", files="2")
    assert splits(two) == ["two-0", "two-1"]
    assert splits(one) == ["größe-0"]


def test_a_connector_that_was_never_bound_is_told_so(client: SidecarClient) -> None:
    bound(client, "one")
    with pytest.raises(ConnectorBugError, match="isn't configured yet"):
        splits(client.about("two"))
    with pytest.raises(ConnectorBugError, match="isn't configured yet"):
        splits(client)


def test_a_newer_generation_replaces_its_own_connector_only(client: SidecarClient) -> None:
    one, two = bound(client, "one"), bound(client, "two")
    bound(client, "one", 2, files="3")
    assert len(splits(one)) == 3
    assert len(splits(two)) == 1
    assert Files.ended == ["one"]
    with pytest.raises(FencedError):
        bound(client, "one", 1)


def test_letting_go_of_one_leaves_the_others(client: SidecarClient) -> None:
    one, two = bound(client, "one"), bound(client, "two")
    one.stop()
    assert Files.ended == ["one"]
    assert splits(two) == ["two-0"]
    with pytest.raises(ConnectorBugError, match="isn't configured yet"):
        splits(one)


def test_one_that_takes_long_keeps_nobody_waiting(client: SidecarClient) -> None:
    slow, quick = bound(client, "slow"), bound(client, "quick")
    waiting = threading.Thread(target=splits, args=(slow,))
    waiting.start()
    assert splits(quick) == ["quick-0"]
    assert waiting.is_alive()
    Files.gate.set()
    waiting.join(DEADLINE_S)


def test_what_changes_is_told_with_the_connectors_name(client: SidecarClient) -> None:
    for connector in ("one", "two"):
        splits(bound(client, connector))
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def follow() -> None:
        with contextlib.suppress(WherryError, ValueError):
            for event in client.events():
                told.put((event.connector, event.WhichOneof("event")))

    threading.Thread(target=follow, daemon=True).start()
    deadline = time.monotonic() + DEADLINE_S
    while not Files.contexts["one"].events.subscribed and time.monotonic() < deadline:
        time.sleep(0.01)
    Files.contexts["two"].plan_changed("a new file")
    Files.contexts["one"].fail("no such folder")
    assert [told.get(timeout=DEADLINE_S) for _ in range(2)] == [("two", "plan_changed"), ("one", "failed")]


def test_a_process_that_is_gone_is_not_called_again_and_again() -> None:
    with sidecar(Files) as connected:
        about = bound(connected, "one")
    began = time.monotonic()
    with pytest.raises(TransientError):
        about.plan(deadline_s=4 * DEADLINE_S)
    assert time.monotonic() - began < DEADLINE_S


def test_no_record_passes_through_a_shared_process(client: SidecarClient) -> None:
    bound(client, "one")
    with pytest.raises(ConnectorBugError, match="isn't configured yet"):
        list(client.about("one").read(generation=1, work=ContractWork("0"), split=True))


def test_a_configuration_under_anothers_name_is_refused(client: SidecarClient) -> None:
    stub = plugin_pb2_grpc.PluginServiceStub(client.channel)  # type: ignore[no-untyped-call]
    request = plugin_pb2.ConfigureRequest(connector="two", class_name="test.Files", generation=1)
    with pytest.raises(ConnectorBugError, match="Configure of two was called for one"):
        client.about("one")._call_once(stub.Configure, request, DEADLINE_S)
