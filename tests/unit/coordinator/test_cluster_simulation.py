"""Coordinators that freeze, are cut off, die and come back: who leads, and what becomes of positions.

A failure prints its seed; `Cluster(seed, …)` lives the same life again.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.unit.coordinator.simulation_cluster import Cluster
from tests.unit.coordinator.test_simulation import spec

from wherry.coordinator import events as ev

SEEDS = range(int(os.environ.get("WHERRY_SEEDS", "6")))
CONNECTORS = {name: spec(name) for name in ("sink", "log")}
CALM_MS = 120_000


def trouble(cluster: Cluster, chance: random.Random) -> None:
    """What happens to coordinators."""
    node = chance.choice(cluster.nodes)
    act = chance.randrange(7)
    if act < 2:
        node.frozen = not node.frozen
    elif act < 4:
        node.cut = not node.cut
    elif act == 4:
        cluster.replace(node)
    elif act == 5:
        node.at(0, ev.PlanChanged("sink"))
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
    for node in cluster.nodes:
        node.frozen = node.cut = False
        node.calm()
    cluster.run(CALM_MS)
    (leader,) = cluster.leaders()
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
