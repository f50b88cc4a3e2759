"""Coordinators that freeze, are cut off, die and come back: who leads, and what becomes of positions.

A failure prints its seed; `Cluster(seed, …)` lives the same life again.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.unit.coordinator.simulation_cluster import ANSWER_MS_MAX, SESSION_MS, Cluster, Node
from tests.unit.coordinator.test_simulation import spec

from wherry.coordinator import events as ev
from wherry.coordinator.membership import HELD_MS

SEEDS = range(int(os.environ.get("WHERRY_SEEDS", "6")))
CONNECTORS = {name: spec(name) for name in ("sink", "log")}
CALM_MS = 120_000
SEVERAL_MS_MAX = HELD_MS + ANSWER_MS_MAX
"""One that was cut off just after it saw its old place doubts so soon."""


def trouble(cluster: Cluster, chance: random.Random) -> None:
    """What happens to coordinators."""
    node = chance.choice(cluster.nodes)
    act = chance.randrange(8)
    if act < 2:
        node.frozen = not node.frozen
    elif act < 4:
        node.cut = not node.cut
    elif act == 4:
        cluster.replace(node)
    elif act == 5:
        node.at(0, ev.PlanChanged("sink"))
    elif act == 6:
        if cluster.broker.away:
            cluster.broker.back(cluster.now_ms)
        else:
            cluster.broker.away = True
    for leader in cluster.leaders():
        if chance.random() < 0.3:
            leader.frozen = True


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_one_leads_in_the_end_and_positions_never_moved_back(seed: int) -> None:
    cluster, chance = Cluster(seed, 3, CONNECTORS), random.Random(seed)
    leaders, moved = set(), 0
    for _ in range(40):
        trouble(cluster, chance)
        cluster.run(chance.randrange(15_000))
        leaders |= {node.number for node in cluster.leaders()}
    cluster.broker.back(cluster.now_ms)
    for node in cluster.nodes:
        node.frozen = node.cut = False
        node.calm()
    cluster.run(CALM_MS)
    (leader,) = cluster.leaders()
    assert cluster.several_ms_max <= SEVERAL_MS_MAX, f"seed {seed}"
    assert len(leaders) > 1, f"seed {seed}: the lead never changed hands"
    for name, wanted in CONNECTORS.items():
        assert leader.everything_runs(name, wanted.tasks_max), f"seed {seed}: {name} {leader.machine.shown(name)}"
    for node in cluster.nodes:
        if node is not leader:
            assert (node.machine.connectors(), node.working()) == ([], []), f"seed {seed}: {node.number} still works"
    moved = sum(leader.committed.values())
    cluster.run(30_000)
    assert sum(leader.committed.values()) > moved, f"seed {seed}: nothing moves"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_was_frozen_for_long_writes_nothing_when_it_wakes(seed: int) -> None:
    cluster = Cluster(seed, 2, CONNECTORS)
    for node in cluster.nodes:
        node.calm()
    cluster.run(20_000)
    (old,) = cluster.leaders()
    old.frozen = True
    cluster.run(30_000)
    (new,) = (node for node in cluster.nodes if node is not old)
    assert new in cluster.leaders()
    wrote, commits = old.wrote, len(old.commits)
    old.frozen = False
    cluster.run(10_000)
    assert (old.wrote, len(old.commits)) == (wrote, commits), f"seed {seed}"
    assert cluster.leaders() == [new]


def after_an_outage(seed: int, size: int) -> tuple[Cluster, Node]:
    """A cluster whose broker comes back after longer than the session, and who has led until then."""
    cluster = Cluster(seed, size, CONNECTORS)
    for node in cluster.nodes:
        node.calm()
    cluster.run(20_000)
    (leader,) = cluster.leaders()
    cluster.broker.away = True
    cluster.run(SESSION_MS + 2_000)
    assert not cluster.leaders(), "for all it knows, another one might lead"
    assert not leader.working()
    cluster.broker.back(cluster.now_ms)
    return cluster, leader


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1, 3])
def test_whoever_led_leads_on_when_the_broker_is_back_before_the_group_has_decided(seed: int, size: int) -> None:
    cluster, leader = after_an_outage(seed, size)
    decided = cluster.broker.decided
    cluster.run(4_000)
    assert set(leader.machine.connectors()) == set(CONNECTORS), f"seed {seed}"
    assert cluster.broker.decided == decided, "the group is still waiting for the old place"
    cluster.run(CALM_MS)
    assert len(cluster.leaders()) == 1
    assert cluster.several_ms_max <= SEVERAL_MS_MAX, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_one_that_is_cut_off_while_it_leads_on_from_its_old_place_ends_before_long(seed: int) -> None:
    cluster, leader = after_an_outage(seed, 3)
    cluster.run(4_000)
    assert leader.machine.connectors(), f"seed {seed}"
    leader.cut = True
    cluster.run(SESSION_MS)
    assert not leader.machine.connectors(), f"seed {seed}"
    assert not leader.working(), f"seed {seed}"
    cluster.run(SESSION_MS)
    assert leader not in cluster.leaders()
    assert len(cluster.leaders()) == 1
    assert cluster.several_ms_max <= SEVERAL_MS_MAX, f"seed {seed}"
