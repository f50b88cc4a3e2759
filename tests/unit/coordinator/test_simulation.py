"""The machine in a world of dropped, repeated and late events: what must always hold, and what must come about.

A failure prints its seed; `World(seed)` lives the same life again.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from tests.unit.coordinator.simulation import SPLIT_LENGTHS, SPREAD, World, split

from wherry.coordinator import events as ev
from wherry.coordinator.api import TargetState

SEEDS = range(int(os.environ.get("WHERRY_SEEDS", "8")))
POLICY = ev.RestartPolicy(restarts_max=-1, delay_ms_max=10_000)


def spec(name: str, **changes: object) -> ev.ConnectorSpec:
    shapes: dict[str, dict[str, object]] = {
        "sink": {"kind": ev.Kind.SINK, "tasks_max": 3},
        "log": {"kind": ev.Kind.SOURCE, "tasks_max": 2, "config": {"logs": "2"}},
        "queue": {"kind": ev.Kind.SOURCE, "tasks_max": 3, "splits": True},
        "both": {"kind": ev.Kind.SOURCE, "tasks_max": 2, "splits": True, "config": {"logs": "1"}},
    }
    fields: dict[str, object] = {"config": {}, "restart": POLICY, **shapes[name], **changes}
    return ev.ConnectorSpec(name, **fields)  # type: ignore[arg-type]


def meddle(world: World, rng: random.Random, name: str) -> None:
    """What a person does to a connector."""
    act = rng.randrange(7)
    if act == 0:
        world.at(0, ev.ConnectorPut(name, spec(name, config={**spec(name).config, "v": str(rng.random())})))
    elif act == 1:
        world.at(0, ev.ConnectorRestarted(name, rng.random() < 0.5, rng.random() < 0.5))
    elif act == 2:
        world.at(0, ev.TaskRestarted(name, rng.randrange(3)))
    elif act == 3:
        world.at(0, ev.ConnectorDeleted(name))
        world.at(rng.randrange(1_000), ev.ConnectorPut(name, spec(name)))
    elif act == 4:
        world.at(0, ev.PlanChanged(name))
    else:
        world.at(0, ev.TargetSet(name, rng.choice(list(TargetState))))


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_everything_wanted_runs_in_the_end(seed: int) -> None:
    world = World(seed)
    rng = random.Random(seed)
    names = ["sink", "log", "queue", "both"]
    for name in names:
        world.at(0, ev.ConnectorPut(name, spec(name)))
    for _ in range(30):
        meddle(world, rng, rng.choice(names))
        if rng.random() < 0.05:
            world.at(10, ev.EngineDown(ev.Failure(1, "the JVM died")))  # type: ignore[arg-type]
            world.at(2_000, ev.EngineUp())
        if rng.random() < 0.2:
            rng.choice((world.lose_executor, world.gain_executor))()
        world.run(rng.randrange(20_000))
    world.calm()
    for name in names:
        world.at(0, ev.ConnectorPut(name, spec(name)))
        world.at(1, ev.TargetSet(name, TargetState.STARTED))
    world.run(300_000)
    for name in names:
        assert world.everything_runs(name, spec(name).tasks_max), f"seed {seed}: {name} {world.machine.shown(name)}"
    for name, length in SPLIT_LENGTHS.items():
        assert world.committed["queue", split(name)] == length, f"seed {seed}: split {name} was not finished"


@pytest.mark.parametrize("seed", SEEDS)
def test_after_the_shutdown_every_lease_ends_in_time(seed: int) -> None:
    world = World(seed)
    for name in ("sink", "log", "queue", "both"):
        world.at(0, ev.ConnectorPut(name, spec(name)))
    world.run(random.Random(seed).randrange(2_000, 20_000))
    world.at(0, ev.ShutdownAsked())
    world.run(5_000)
    assert world.machine.idle, f"seed {seed}: {list(world.machine.leases())}"


def test_without_faults_nothing_is_read_twice() -> None:
    world = World(1, faults=0.0)
    world.at(0, ev.ConnectorPut("queue", spec("queue")))
    world.run(120_000)
    written = [position for commit in world.commits for position in commit.positions]
    assert len(written) == len(set(written)) == sum(SPLIT_LENGTHS.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_when_executors_have_come_and_gone_leases_spread_once_and_then_rest(seed: int) -> None:
    world = World(seed, faults=0.0, idles=0.0)
    names = [f"log{n}" for n in range(4)]
    for name in names:
        world.at(0, ev.ConnectorPut(name, replace(spec("log"), name=name)))
    world.run(5_000)
    for _ in range(3):
        world.lose_executor()
        world.run(world.random.randrange(1_000, 6_000))
        world.gain_executor()
    # Those that have moved rest before they may move again: later changes are evened out later.
    world.run(4 * SPREAD.window_ms + 2 * SPREAD.rest_ms)
    loads = world.loads()
    assert sum(loads.values()) == 8, f"seed {seed}: {loads}"
    assert max(loads.values()) - min(loads.values()) <= 1, f"seed {seed}: {loads}"
    drains = world.drains
    world.run(3 * SPREAD.window_ms)
    assert world.drains == drains, f"seed {seed}: leases move although the load is even"
    assert all(world.everything_runs(name, 2) for name in names)
