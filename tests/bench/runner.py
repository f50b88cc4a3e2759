"""Alternates runs between the two systems and collects what they give.

The order is turned round every time (wherry, connect, connect, wherry, …), so that neither always runs on the warmer
page cache or the fuller disk. A run that fails is told and left out; the others go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.bench.flows.flow import Flow, Outcome
from tests.bench.processes import BenchError
from tests.bench.site import Site

from wherry.coordinator.dev.errors import DevServerError


@dataclass(slots=True)
class Result:
    """All runs of a flow, and the failures told on the way."""

    runs: dict[str, list[Outcome]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, list[dict[str, float]]]:
        """The figures alone, as the table takes them."""
        return {name: [outcome.figures for outcome in outcomes] for name, outcomes in self.runs.items()}


def run_flow(site: Site, flow: Flow) -> Result:
    """Runs the flow as often as asked on the systems asked for."""
    systems = [name for name in flow.systems if site.options.only in (None, name)]
    result = Result(runs={name: [] for name in systems})
    if flow.warm_up_records and not site.options.fresh:
        for name in systems:
            _try(site, flow, name, f"{name}-warm-up", min(flow.warm_up_records, site.options.records), result)
    for index in range(site.options.runs):
        for name in systems if index % 2 == 0 else reversed(systems):
            outcome = _try(site, flow, name, f"{name}-{index + 1}", site.options.records, result)
            if outcome is not None:
                result.runs[name].append(outcome)
            if site.options.fresh:
                site.discard(name)
    return result


def _try(site: Site, flow: Flow, name: str, label: str, records: int, result: Result) -> Outcome | None:
    site.say(f"{flow.name}: {label}")
    try:
        outcome = flow.run_once(site, name, label, records)
    except (BenchError, DevServerError) as error:
        result.failures.append(f"{label}: {error}")
        site.say(f"{label} failed: {error}")
        site.discard(name)
        return None
    site.say(", ".join(f"{key} {value:,.2f}" for key, value in outcome.figures.items()))
    return outcome
