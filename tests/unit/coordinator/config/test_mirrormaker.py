"""MirrorMaker's file: its flows, their workers, and connectors to the letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.mirrormaker import Flow, flows_of, unused
from wherry.coordinator.config.worker import WorkerConfig

CASES = json.loads((Path(__file__).parents[3] / "cases" / "mirror" / "dedicated-4.3.1.json").read_text())["cases"]
TWO = {"clusters": "A, B", "A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:1"}


def flows(*near: str, **values: str) -> dict[str, Flow]:
    return {flow.name: flow for flow in flows_of({**TWO, **values}, near)}


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_connectors_are_those_that_mirrormaker_writes(case: dict[str, Any]) -> None:
    found = {flow.name: flow.connectors for flow in flows_of(case["file"])}
    assert found == case["connectors"]


def test_a_flow_is_a_worker_on_its_target_with_mirrormakers_group_and_topics() -> None:
    worker = flows(**{"A->B.enabled": "true", "B.producer.linger.ms": "3", "A.producer.linger.ms": "9"})["A->B"].worker
    assert worker["bootstrap.servers"] == "b:1"
    assert worker["group.id"] == "A-mm2"
    assert worker["offset.storage.topic"] == "mm2-offsets.A.internal"
    assert worker["config.storage.topic"] == "mm2-configs.A.internal"
    assert worker["status.storage.topic"] == "mm2-status.A.internal"
    assert worker["producer.linger.ms"] == "3"
    assert worker["key.converter"].endswith("ByteArrayConverter")
    assert WorkerConfig.of(worker, distributed=True).unknown == ()


def test_what_a_target_says_of_its_worker_wins() -> None:
    given = {"offset.storage.replication.factor": "2", "B.offset.storage.replication.factor": "1", "B.group.id": "g"}
    worker = flows(**{"A->B.enabled": "true", **given})["A->B"].worker
    assert (worker["offset.storage.replication.factor"], worker["group.id"]) == ("1", "g")


def test_a_flow_that_only_beats_runs_unless_that_is_switched_off() -> None:
    assert list(flows(**{"A->B.enabled": "true"})) == ["A->B", "B->A"]
    assert flows()["B->A"].connectors["MirrorSourceConnector"]["enabled"] == "false"
    off = {"A->B.enabled": "true", "emit.heartbeats.enabled": "false"}
    assert list(flows(**off)) == ["A->B"]
    assert list(flows(**off, **{"B->A.emit.heartbeats.enabled": "true"})) == ["A->B", "B->A"]


def test_nodes_near_a_cluster_run_the_flows_into_it() -> None:
    assert list(flows("B")) == ["A->B"]
    assert list(flows("A", "B")) == ["A->B", "B->A"]
    with pytest.raises(ConfigError, match="C is not one of the clusters: A, B"):
        flows("C")


def test_what_is_said_of_all_clusters_reaches_their_clients() -> None:
    config = flows(**{"security.protocol": "SSL", "B.security.protocol": "PLAINTEXT"})["A->B"]
    source = config.connectors["MirrorSourceConnector"]
    assert source["source.consumer.security.protocol"] == "SSL"
    assert source["target.admin.security.protocol"] == "PLAINTEXT"
    assert config.worker["security.protocol"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"clusters": " "}, "clusters"),
        ({"B.bootstrap.servers": ""}, "B.bootstrap.servers"),
        ({"emit.heartbeats.enabled": "false"}, "A->B.enabled"),
    ],
)
def test_a_file_that_says_too_little_is_refused_by_key(values: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        flows_of({**TWO, **values})
    assert caught.value.key == key


def test_keys_that_reach_nobody_are_known() -> None:
    reach = {"A->B.use.defaults.from": "source", "B.producer.linger.ms": "1", "topics": "x", "security.protocol": "SSL"}
    strange = {"use.defaults.from": "source", "A->C.topics": "y", "producer.linger.ms": "1"}
    assert unused({**TWO, **reach, **strange}) == list(strange)
