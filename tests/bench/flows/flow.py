"""What a flow is, what a run of it gives, and the costs that most flows report in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.figures import SYSTEMS, Figure
from tests.bench.measure import TOTAL, Point, Sampler
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import WorkerSettings

from wherry.coordinator.dev.jars import JarSet


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run's figures by key, and whatever else is worth keeping in the JSON."""

    figures: dict[str, float]
    detail: dict[str, object] = field(default_factory=dict)


class RunOnce(Protocol):
    """Runs a flow once on the system of that name; `label` is unique and fit for names of tables and connectors."""

    def __call__(self, site: Site, name: str, label: str, records: int) -> Outcome:
        """Gives what was measured; raises `BenchError` when the records did not arrive."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A named comparison. Without warm-up records there is no unmeasured run before the first.

    A flow of one system alone names it in `systems`. `variants` are worker settings by name, for flows that need
    several workers of each system; `plugins` is what Kafka Connect needs besides its own.
    """

    name: str
    summary: str
    figures: tuple[Figure, ...]
    records: int
    warm_up_records: int
    settings: WorkerSettings
    run_once: RunOnce
    systems: tuple[str, ...] = SYSTEMS
    variants: Mapping[str, WorkerSettings] = field(default_factory=dict)
    plugins: tuple[JarSet, ...] = ()


def costs(
    sampler: Sampler, points: Sequence[Point], created_at: float, *, with_postgres: bool = False
) -> dict[str, float]:
    """CPU per record between the first and the last point and all in, and the system's peak memory."""
    first, last = points[0], points[-1]
    moved = last.count - first.count
    if moved <= 0:
        raise BenchError("Everything arrived in one step, so no cost can be told: use more records (--records).")
    figures = {
        "cpu_us": 1e6 * sampler.cpu_seconds("system", first.at, last.at) / moved,
        "cpu_us_all_in": 1e6 * sampler.cpu_seconds("system", created_at, last.at) / last.count,
        "broker_cpu_us": 1e6 * sampler.cpu_seconds("broker", first.at, last.at) / moved,
        "other_cpu_percent": sampler.other_cpu_percent(first.at, last.at),
        "pss_mb": sampler.peak_pss_mb("system").get(TOTAL, 0.0),
    }
    if with_postgres:
        figures["postgres_cpu_us"] = 1e6 * sampler.cpu_seconds("postgres", first.at, last.at) / moved
    return figures


def detail(sampler: Sampler, points: Sequence[Point]) -> dict[str, object]:
    """What does not fit the table: CPU and memory by process."""
    return {
        "cpu_seconds_by_role": sampler.cpu_by_role("system", points[0].at, points[-1].at),
        "peak_pss_mb_by_process": sampler.peak_pss_mb("system"),
    }
