"""An executor is killed: how long until every task it ran moves records again.

A Spark standalone cluster of two Workers on this machine, one executor on each, `--records` pairs of connectors: a
file, its source, a topic, its sink, a file. Every file is written to all the time; one executor gets SIGKILL in the
middle. A pair counts as moving again when a line that was written after the kill has come out at its other end, so that
its source and its sink both go on; pairs of the other executor are in the figures, too, and move on undisturbed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Final

from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, WHERRY, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.flows.kills import BEFORE_SECONDS, MOVING_SECONDS_MAX, until
from tests.bench.measure import Sampler
from tests.bench.processes import BenchError, ProcessTree
from tests.bench.rest import Rest as BenchRest
from tests.bench.site import Site
from tests.bench.systems import WorkerSettings, wherry_role
from tests.support.pairs import Pair, Traffic, lost_and_repeated, moving_again
from tests.support.standalone import Standalone

from wherry.coordinator.dev.spark import SparkCluster

EXECUTORS: Final = 2
SLOTS: Final = 32

FIGURES = (
    Figure("moving_seconds", "SIGKILL to every task moving", "s", 2, value_max=3.0),
    Figure("median_seconds", "SIGKILL to the median pair moving", "s", 2),
    Figure("first_seconds", "SIGKILL to the first pair moving", "s", 2),
    Figure("replaced_seconds", "SIGKILL to a new executor", "s", 2),
    Figure("lost_lines", "lines lost", "lines", 0, value_max=0.0),
    Figure("repeated_lines", "lines repeated", "lines", 0),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Kills one executor; `records` is the number of pairs."""
    if name != WHERRY:
        raise BenchError("Kafka Connect holds the work of a lost worker back for minutes; only Wherry is measured.")
    pairs = [Pair(site.directory, "executor-kill", label, number) for number in range(records)]
    for pair in pairs:
        load.create_topic(site.bootstrap, pair.topic, 1)
    with SparkCluster(workers=EXECUTORS, slots=SLOTS) as cluster:
        settings = {"wherry.spark.master": cluster.url, "wherry.idle.park.ms": "0"}
        with Standalone(bootstrap=site.bootstrap, settings=settings) as worker:
            until(worker.rest.is_healthy, limits.SYSTEM_START_SECONDS, "it is healthy", worker)
            until(lambda: len(cluster.executors()) == EXECUTORS, 60, "both executors are there", worker)
            # Both are known to the scheduler, and warm.
            until(lambda: worker.log_path.read_text().count("is there, with") == EXECUTORS, 60, "both are seen", worker)
            rest = BenchRest(worker.rest.url)
            for pair in pairs:
                pair.write()
                for connector, config in pair.connectors.items():
                    rest.create(connector, config)
            until(lambda: all(pair.last() >= 0 for pair in pairs), limits.STALL_SECONDS, "every pair moves", worker)
            return _kill(pairs, cluster, worker)


def _kill(pairs: Sequence[Pair], cluster: SparkCluster, worker: Standalone) -> Outcome:
    system = ProcessTree(worker.pid, wherry_role)
    with Sampler({"system": system}) as sampler:
        with Traffic(pairs):
            time.sleep(BEFORE_SECONDS)
            before = {executor.pid for executor in cluster.executors()}
            os.kill(min(before), signal.SIGKILL)
            killed_at = time.time()
            moved = moving_again(pairs, lambda true: until(true, MOVING_SECONDS_MAX, "every task moves again", worker))
            moving_at = time.time()
            until(lambda: {e.pid for e in cluster.executors()} - before, 60, "a new executor is there", worker)
            replaced = time.time() - killed_at
            time.sleep(BEFORE_SECONDS)
        until(lambda: all(pair.last() == pair.sent - 1 for pair in pairs), limits.STALL_SECONDS, "all has come", worker)
    lost, repeated = lost_and_repeated(pairs)
    seconds = sorted(moved.values())
    return Outcome(
        {
            "moving_seconds": seconds[-1],
            "median_seconds": seconds[len(seconds) // 2],
            "first_seconds": seconds[0],
            "replaced_seconds": replaced,
            "lost_lines": lost,
            "repeated_lines": repeated,
            "other_cpu_percent": sampler.other_cpu_percent(killed_at, moving_at),
        },
        {"moved_seconds": moved, "log": worker.log_tail()},
    )


FLOW = Flow(
    name="executor-kill",
    summary="one of two Spark executors is killed (Wherry alone)",
    figures=FIGURES,
    records=4,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
    systems=(WHERRY,),
)
