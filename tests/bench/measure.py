"""Measuring one run: CPU and memory sampled beside it, progress stamped at the destination, rates over a window of it.

The window matters. A run has a beginning (the connector is created, clients connect, code is loaded) and an end (the
last commit). *Steady* figures are taken between the first and the last observed movement at the destination, *all-in*
figures from the request that created the connector to the last movement.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tests.bench import limits
from tests.bench.processes import BenchError, CpuReading, ProcessTree, machine_busy_seconds

TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Point:
    """At this wall-clock time the destination held this many records."""

    at: float
    count: float


class Sampler:
    """Reads the CPU time and memory of process trees at fixed periods, in a thread, while a run goes on."""

    def __init__(
        self,
        trees: Mapping[str, ProcessTree],
        *,
        pss_of: Sequence[str] = (),
        pss_seconds: float = limits.PSS_SAMPLE_SECONDS,
    ) -> None:
        self._trees = dict(trees)
        self._pss_seconds = pss_seconds
        self._pss_of = tuple(pss_of)
        self._times: list[float] = []
        self._readings: list[dict[str, CpuReading]] = []
        self._other: list[float] = []
        self._peaks: dict[str, dict[str, float]] = {name: {} for name in pss_of}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(limits.REST_TIMEOUT_SECONDS)
        self._sample()

    def cpu_seconds(self, tree: str, begin: float, end: float) -> float:
        """CPU time the tree used between two moments, interpolated between samples."""
        totals = [reading[tree].total for reading in self._readings]
        return interpolate(self._times, totals, end) - interpolate(self._times, totals, begin)

    def cpu_by_role(self, tree: str, begin: float, end: float) -> dict[str, float]:
        """The same by role; a process that ended in between moves its time from its role to `ended`."""
        roles = {role for reading in self._readings for role in reading[tree].by_role}
        used = {}
        for role in sorted(roles):
            values = [reading[tree].by_role.get(role, 0.0) for reading in self._readings]
            used[role] = interpolate(self._times, values, end) - interpolate(self._times, values, begin)
        return used

    def other_cpu_percent(self, begin: float, end: float) -> float:
        """The share of the machine that neither the sampled trees nor the harness used: the disturbance of a run."""
        used = interpolate(self._times, self._other, end) - interpolate(self._times, self._other, begin)
        return 100.0 * used / ((end - begin) * (os.cpu_count() or 1))

    def peak_pss_mb(self, tree: str) -> dict[str, float]:
        """The largest memory seen of each process of a tree, and of all of them at one time under `TOTAL`."""
        return dict(self._peaks[tree])

    def _run(self) -> None:
        next_pss = 0.0
        while not self._over.wait(limits.CPU_SAMPLE_SECONDS):
            self._sample()
            if time.monotonic() >= next_pss:
                next_pss = time.monotonic() + self._pss_seconds
                self._sample_pss()

    def _sample(self) -> None:
        readings = {name: tree.cpu() for name, tree in self._trees.items()}
        self._times.append(time.time())
        self._readings.append(readings)
        own = time.process_time() + sum(reading.total for reading in readings.values())
        self._other.append(machine_busy_seconds() - own)

    def _sample_pss(self) -> None:
        for name in self._pss_of:
            sizes = self._trees[name].pss_mb()
            for process, size in {**sizes, TOTAL: sum(sizes.values())}.items():
                self._peaks[name][process] = max(size, self._peaks[name].get(process, 0.0))


def interpolate(times: Sequence[float], values: Sequence[float], at: float) -> float:
    """The value at a moment, on the straight line between its neighbours; constant outside."""
    if not times:
        raise ValueError("nothing was sampled")
    right = bisect_left(times, at)
    if right == 0:
        return values[0]
    if right == len(times):
        return values[-1]
    begin, end = times[right - 1], times[right]
    share = (at - begin) / (end - begin) if end > begin else 1.0
    return values[right - 1] + share * (values[right] - values[right - 1])


def rate(points: Sequence[Point]) -> float:
    """Records per second from the first point to the last; what the first already held does not count."""
    first, last = points[0], points[-1]
    if last.at <= first.at:
        raise BenchError("Everything arrived in one step, so no rate can be taken: use more records (--records).")
    return (last.count - first.count) / (last.at - first.at)


def watch(
    count: Callable[[], int],
    *,
    target: int,
    failure: Callable[[], str | None],
    poll_seconds: float = limits.PROGRESS_POLL_SECONDS,
) -> list[Point]:
    """Polls a destination until it holds `target` records; gives a point for each change seen.

    Raises when the connector fails, nothing moves for `STALL_SECONDS`, or the run takes longer than `RUN_SECONDS`.
    """
    points: list[Point] = []
    begun = moved = checked = time.monotonic()
    seen = 0
    while True:
        now_at, held = time.time(), count()
        if held > seen:
            points.append(Point(at=now_at, count=held))
            seen, moved = held, time.monotonic()
        if held >= target:
            return points
        now = time.monotonic()
        if now - checked > 1.0:
            checked = now
            failed = failure()
            if failed is not None:
                raise BenchError(f"The connector failed after {held} of {target} records: {failed}")
        if now - moved > limits.STALL_SECONDS:
            raise BenchError(f"Nothing has arrived for {limits.STALL_SECONDS:.0f} s; {held} of {target} records did.")
        if now - begun > limits.RUN_SECONDS:
            raise BenchError(f"Not over after {limits.RUN_SECONDS:.0f} s; {held} of {target} records arrived.")
        time.sleep(poll_seconds)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: p99 of 1000 values is the 990th."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * round(share * 1000) // 1000))
    return ordered[rank - 1]


def slope_per_minute(points: Sequence[Point]) -> float:
    """The least-squares slope of the counts, per minute."""
    if len(points) < 2:
        raise ValueError("a slope needs two points")
    mean_at = sum(point.at for point in points) / len(points)
    mean_count = sum(point.count for point in points) / len(points)
    spread = sum((point.at - mean_at) ** 2 for point in points)
    if spread == 0:
        raise ValueError("a slope needs two moments")
    return 60.0 * sum((point.at - mean_at) * (point.count - mean_count) for point in points) / spread
