"""What a lease is made of: secrets apart, placeholders resolved, parked only if something wakes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType
from wherry.contract.description import Capabilities, ClassDescription, Role, SinkClass
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2
from wherry.coordinator.config.providers import ProviderError
from wherry.coordinator.effects import GrantLease
from wherry.coordinator.events import ConnectorSpec, Kind, TaskWork
from wherry.coordinator.grants import CONTENDED_PARK_MS, Grants, LeaseTimings

TIMINGS = LeaseTimings(1_000, 60_000, 30_000, 10_000, 3_500)


class Providers:
    def resolve(self, values: Mapping[str, str]) -> Any:
        return SimpleNamespace(values={key: value.replace("${secret}", "geheim") for key, value in values.items()})


class Registry:
    def __init__(self, role: Role, **capabilities: bool) -> None:
        keys = (ConfigKey("url", ConfigType.STRING), ConfigKey("password", ConfigType.PASSWORD))
        self._description = ClassDescription(
            "org.example.Thing", role, ConfigDef(keys), capabilities=Capabilities(**capabilities)
        )

    def resolve(self, name: str) -> Any:
        assert name == "Thing"
        manifest = SimpleNamespace(name="things", directory=Path("/plugins/things"))
        return SimpleNamespace(manifest=manifest, class_name="org.example.Thing")

    def description(self, plugin: Any) -> ClassDescription:
        return self._description

    def find(self, name: str) -> Any:
        """One transformation besides; what it describes is the same."""
        if name != "Change":
            return None
        manifest = SimpleNamespace(name="changes", directory=Path("/plugins/changes"))
        return SimpleNamespace(manifest=manifest, class_name="org.example.Change", role=Role.TRANSFORM)


def grants(role: Role = Role.SOURCE, **capabilities: bool) -> Grants:
    worker: Any = SimpleNamespace(providers=Providers(), values={"bootstrap.servers": "b:1"})
    return Grants(worker, Registry(role, **capabilities), TIMINGS, "unix:///host.sock")  # type: ignore[arg-type]


def effect(kind: Kind = Kind.SOURCE, work: TaskWork | None = None, *, wakes: bool = True) -> GrantLease:
    config = {"connector.class": "Thing", "url": "u", "password": "${secret}"}
    spec = ConnectorSpec("c", kind, config)
    return GrantLease("c", "l", 7, 0, 1, 3, spec, work or TaskWork(Work("0", b"d")), wakes=wakes)


def test_secrets_travel_apart_and_resolved() -> None:
    (sidecar,) = grants().lease(effect(), []).sidecars
    assert dict(sidecar.secrets) == {"password": "geheim"}
    assert dict(sidecar.config) == {"connector.class": "Thing", "url": "u"}


def test_the_coordinator_reads_what_a_provider_tells_and_no_secret() -> None:
    config = {"connector.class": "Thing", "topics": "a-${secret}", "password": "${secret}"}
    assert grants().read_here(config) == {**config, "topics": "a-geheim"}


def test_what_a_provider_cannot_tell_stays() -> None:
    class Failing:
        def resolve(self, values: Mapping[str, str]) -> Any:
            raise ProviderError("No such file.")

    worker: Any = SimpleNamespace(providers=Failing(), values={})
    config = {"topics": "${secret}"}
    registry: Any = Registry(Role.SINK)
    assert Grants(worker, registry, TIMINGS, "").read_here(config) == config


@pytest.mark.parametrize(
    ("worker", "config", "from_start"),
    [
        ({}, {}, True),
        ({"consumer.auto.offset.reset": "latest"}, {}, False),
        ({"consumer.auto.offset.reset": "latest"}, {"consumer.override.auto.offset.reset": "earliest"}, True),
        ({}, {"consumer.override.auto.offset.reset": "none"}, False),
    ],
)
def test_a_sink_reads_from_the_start_unless_its_consumer_is_told_otherwise(
    worker: dict[str, str], config: dict[str, str], from_start: bool
) -> None:
    settings: Any = SimpleNamespace(providers=Providers(), values=worker)
    registry: Any = Registry(Role.SINK)
    made = Grants(settings, registry, TIMINGS, "")
    assert made.reads_from_start(ConnectorSpec("c", Kind.SINK, config)) == from_start


def test_each_transformation_of_a_plugin_has_a_sidecar_of_its_own_with_its_own_settings() -> None:
    keys = {
        "transforms": "a,b,c",
        "transforms.a.type": "Change", "transforms.a.url": "ua", "transforms.a.password": "${secret}",
        "transforms.b.type": "Filter", "transforms.c.type": "Change", "transforms.c.predicate": "p",
    }  # fmt: skip
    wanted = effect()
    wanted.spec.config.update(keys)  # type: ignore[attr-defined]  # a plain dict here
    connector, first, second = grants(parkable=True).lease(wanted, []).sidecars
    assert (connector.alias, first.alias, second.alias) == ("", "a", "c")
    assert (first.class_name, first.connector, first.generation) == ("org.example.Change", "c", 7)
    assert dict(first.config) == {"url": "ua"}
    assert dict(first.secrets) == {"password": "geheim"}
    assert dict(second.config) == {}


def test_a_sidecar_is_named_by_its_full_class_and_generation() -> None:
    (sidecar,) = grants().lease(effect(), []).sidecars
    assert (sidecar.plugin, sidecar.class_name, sidecar.generation) == ("things", "org.example.Thing", 7)
    assert sidecar.plugin_directory == "/plugins/things"


def test_a_source_lease_has_its_work_and_positions() -> None:
    response = grants().lease(effect(), [Position("p", "o")])
    assert (response.kind, response.task, response.work.descriptor) == (lease_pb2.PIPELINE_KIND_SOURCE, 3, b"d")
    assert [position.partition_json for position in response.positions] == ["p"]


def test_a_sink_lease_has_its_partitions() -> None:
    response = grants(Role.SINK).lease(effect(Kind.SINK, TaskWork(partitions=("p",))), [])
    assert (response.kind, list(response.partitions_json)) == (lease_pb2.PIPELINE_KIND_SINK, ["p"])
    assert not response.HasField("work")


def test_timings_are_passed_on() -> None:
    policy = grants().lease(effect(), []).policy
    assert (policy.commit_interval_ms, policy.drain_timeout_ms, policy.coordinator_timeout_ms) == (
        60_000,
        3_500,
        10_000,
    )


@pytest.mark.parametrize(
    ("capabilities", "wakes", "split", "parks"),
    [
        ({"parkable": True}, True, False, True),
        ({"parkable": False}, True, False, False),
        ({"parkable": True}, False, False, False),
        ({"parkable": True, "watch": True}, False, False, True),
        ({"parkable": True}, True, True, False),
    ],
)
def test_only_what_will_be_woken_is_parked(
    capabilities: dict[str, bool], wakes: bool, split: bool, parks: bool
) -> None:
    given = effect(work=TaskWork(Work("0"), split=split), wakes=wakes)
    assert bool(grants(**capabilities).lease(given, []).policy.idle_park_ms) is parks


@pytest.mark.parametrize(("others_wait", "idle_ms"), [(False, TIMINGS.idle_park_ms), (True, CONTENDED_PARK_MS)])
def test_one_that_others_wait_for_is_parked_sooner(others_wait: bool, idle_ms: int) -> None:
    given = replace(effect(), others_wait=others_wait)
    assert grants(parkable=True).lease(given, []).policy.idle_park_ms == idle_ms


def test_one_that_never_parks_does_not_for_others_either() -> None:
    assert grants(parkable=False).lease(replace(effect(), others_wait=True), []).policy.idle_park_ms == 0


def test_a_direct_pipeline_has_two_sidecars_and_neither_sees_the_others_secrets() -> None:
    config = {
        "connector.class": "Thing",
        "password": "source's",
        "sink.connector.class": "Thing",
        "sink.password": "sink's",
    }
    asked = GrantLease("c", "l", 7, 0, 1, 3, ConnectorSpec("c", Kind.SOURCE, config), TaskWork(Work("0", b"d")))
    lease = grants().lease(asked, [])
    source, sink = lease.sidecars
    assert lease.kind == lease_pb2.PIPELINE_KIND_DIRECT
    assert (dict(source.secrets), dict(sink.secrets)) == ({"password": "source's"}, {"password": "sink's"})
    assert "sink" not in str(dict(source.config))
    assert dict(sink.config) == {"name": "", "connector.class": "Thing"}


@pytest.mark.parametrize(("sink_class", "stages"), [(SinkClass.TWO_PHASE, True), (SinkClass.TRANSACTIONAL, False)])
def test_the_sinks_class_decides_whether_rows_are_staged_also_behind_a_source(
    sink_class: SinkClass, stages: bool
) -> None:
    def description(role: Role) -> ClassDescription:
        return ClassDescription(f"org.example.{role.name}", role, ConfigDef(()), sink_class=sink_class)

    registry = SimpleNamespace(resolve=lambda name: name, description=lambda name: description(Role[name]))
    made = Grants(SimpleNamespace(), registry, TIMINGS, "")  # type: ignore[arg-type]
    assert made.stages(ConnectorSpec("c", Kind.SINK, {"connector.class": "SINK"})) is stages
    pipeline = {"connector.class": "SOURCE", "sink.connector.class": "SINK"}
    assert made.stages(ConnectorSpec("c", Kind.SOURCE, pipeline)) is stages
    assert not made.stages(ConnectorSpec("c", Kind.SOURCE, {"connector.class": "SOURCE"}))


@pytest.mark.parametrize("ability", ["typed", "raw"])
def test_a_lease_tells_how_a_sink_takes_its_records(ability: str) -> None:
    made = grants(Role.SINK, **{ability: True}).lease(effect(Kind.SINK), ())
    assert [each.name for each, set_ in made.sidecars[0].ListFields() if each.name in ("typed", "raw")] == [ability]
