"""Undisturbed flow: 20 sinks at a steady pace while others are created, scaled, deleted and fail.

Every record carries the time it was sent; a reader woken by the kernel stamps its arrival. A gap is how much more
time lies between two arrivals at one connector than between their sendings: what the connector has added to the pace,
whatever the harness's own pace was. `--records` is the number of acts on other connectors, one a second.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Producer
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import Sampler, percentile, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import System, WorkerSettings
from tests.bench.tail import Tail

CONNECTORS = 20
ACTS = 32
ACT_SECONDS = 1.0
RATE = 5
"""Records per second and connector. A record on its own costs either system milliseconds of CPU (see `latency`): at 25
two cores were full before anything else happened, and what was measured was that."""
CALM_SECONDS = 10.0
"""Measured before the first act."""
OTHERS_PARTITIONS = 3
LONGEST_TOLD = 200
PADDING = "x" * 170
SENDER_JOIN_SECONDS = 30.0

FIGURES = (
    Figure("calm_p99_ms", "gap beyond the pace, p99, nothing else happening", "ms", 1),
    Figure("p50_ms", "gap beyond the pace, median", "ms", 2),
    Figure("p99_ms", "gap beyond the pace, p99", "ms", 1, value_max=100.0),
    Figure("worst_p99_ms", "the same of the connector with most", "ms", 1, value_max=100.0),
    Figure("max_ms", "longest gap of all", "ms", 0),
    OTHER_CPU,
)


class _Sender:
    """Sends to every topic in turn at a fixed rate until told to end."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._producer = Producer({**load.CLIENT, "bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "1"})
        self._topics = topics
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self.sent = 0
        """To each topic."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(SENDER_JOIN_SECONDS)
        if self._producer.flush(limits.LATENCY_DRAIN_SECONDS) != 0:
            raise BenchError(f"The broker did not take all records within {limits.LATENCY_DRAIN_SECONDS:.0f} s.")

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._over.is_set():
            for index, topic in enumerate(self._topics):
                at = begun + (self.sent + index / len(self._topics)) / RATE
                time.sleep(max(at - time.monotonic(), 0.0))
                self._producer.produce(topic, f"{time.time_ns()} {PADDING}".encode())
                self._producer.poll(0)
            self.sent += 1


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Has the sinks run, first in peace, then with `records` acts on others beside them."""
    system = site.running(name)
    system.rest.wait_healthy()
    topics = [f"gap-{label}-{number}" for number in range(CONNECTORS)]
    for topic in topics:
        load.create_topic(site.bootstrap, topic, 1)
    others = f"gap-{label}-others"
    load.create_topic(site.bootstrap, others, OTHERS_PARTITIONS)
    sender = _Sender(site.bootstrap, [*topics, others])
    with contextlib.ExitStack() as stack:
        tails = [stack.enter_context(Tail(site.directory / f"{topic}.txt")) for topic in topics]
        for topic in topics:
            system.rest.create(topic, _sink(topic, site.directory / f"{topic}.txt"))
        sender.start()
        for topic, tail in zip(topics, tails, strict=True):
            watch(lambda tail=tail: len(tail.lines), target=1, failure=_failure(system, topic))  # type: ignore[misc]
        time.sleep(limits.LATENCY_WARM_UP_SECONDS)
        with Sampler(site.trees(system)) as sampler:
            calm_ns, begun = time.time_ns(), time.time()
            time.sleep(CALM_SECONDS)
            acts_ns = time.time_ns()
            _disturb(site, system, others, records)
            ended_ns, ended = time.time_ns(), time.time()
        sender.stop()
        for topic, tail in zip(topics, tails, strict=True):
            watch(lambda tail=tail: len(tail.lines), target=sender.sent, failure=_failure(system, topic))  # type: ignore[misc]
    for topic in topics:
        system.rest.delete(topic)
    calm = [gap for tail in tails for gap in gaps_ms(tail.lines, calm_ns, acts_ns)]
    each = [gaps_ms(tail.lines, acts_ns, ended_ns) for tail in tails]
    pooled = [gap for gaps in each for gap in gaps]
    return Outcome(
        {
            "calm_p99_ms": percentile(calm, 0.99),
            "p50_ms": percentile(pooled, 0.5),
            "p99_ms": percentile(pooled, 0.99),
            "worst_p99_ms": max(percentile(gaps, 0.99) for gaps in each),
            "max_ms": max(pooled),
            "other_cpu_percent": sampler.other_cpu_percent(begun, ended),
        },
        {
            "p99_ms_each": [percentile(gaps, 0.99) for gaps in each],
            "max_ms_each": [max(gaps) for gaps in each],
            "calm_max_ms": max(calm),
            "longest": _longest(tails, acts_ns, ended_ns),
            "cores": sampler.cpu_seconds("system", begun, ended) / (ended - begun),
            "cpu_seconds_by_role": sampler.cpu_by_role("system", begun, ended),
        },
    )


def gaps_ms(lines: Sequence[tuple[int, bytes]], begin_ns: int, end_ns: int) -> list[float]:
    """How much longer than the pace the records that arrived in a time let wait for them, in ms, never below 0."""
    found = []
    for (before_ns, before), (after_ns, after) in itertools.pairwise(lines):
        if begin_ns <= after_ns < end_ns:
            paced_ns = int(after.split(b" ", 1)[0]) - int(before.split(b" ", 1)[0])
            found.append(max(after_ns - before_ns - paced_ns, 0) / 1e6)
    if not found:
        raise BenchError("No record arrived in the measured time.")
    return found


def _longest(tails: Sequence[Tail], acts_ns: int, ended_ns: int) -> list[tuple[float, int, float]]:
    """When after the first act the longest gaps ended, at which connector, in ms: those of one stall stand together."""
    found = []
    for number, tail in enumerate(tails):
        for before, after in itertools.pairwise(tail.lines):
            for gap in gaps_ms((before, after), acts_ns, ended_ns) if acts_ns <= after[0] < ended_ns else ():
                found.append(((after[0] - acts_ns) / 1e9, number, gap))
    return sorted(sorted(found, key=lambda each: -each[2])[:LONGEST_TOLD])


def _disturb(site: Site, system: System, topic: str, acts: int) -> None:
    """In turn: one is created, it is scaled to three tasks, one is created that must fail, both are deleted."""
    for act in range(acts):
        began = time.monotonic()
        number = act // 4
        other, broken = f"{topic}-{number}", f"{topic}-broken-{number}"
        path = site.directory / f"{other}.txt"
        if act % 4 == 0:
            system.rest.create(other, _sink(topic, path))
        elif act % 4 == 1:
            scaled = {**_sink(topic, path), "tasks.max": str(OTHERS_PARTITIONS)}
            system.rest.patiently("PUT", f"/connectors/{other}/config", scaled)
        elif act % 4 == 2:
            system.rest.create(broken, _sink(topic, site.directory / "no-such-folder" / "file.txt"))
        else:
            for name in (other, broken):
                system.rest.patiently("DELETE", f"/connectors/{name}")
        time.sleep(max(began + ACT_SECONDS - time.monotonic(), 0.0))


def _failure(system: System, name: str) -> Callable[[], str | None]:
    return lambda: system.rest.failure(name)


def _sink(topic: str, path: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "file": str(path),
        # From the end: an act is about starting and stopping, not about reading what came before.
        "consumer.override.auto.offset.reset": "latest" if topic.endswith("-others") else "earliest",
    }


FLOW = Flow(
    name="gap",
    summary=f"{CONNECTORS} sinks at {RATE} records/s each while others come, grow, fail and go; --records is the acts",
    figures=FIGURES,
    records=ACTS,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
)
