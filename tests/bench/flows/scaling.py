"""One task, then two, of the same work on the same records: how much of the second core becomes records.

Two cores can't have more than twice the work of one, and a task keeps more than one busy: reading, sidecar and broker
run beside its own thread. So the most that is possible here is told as well: the machine's cores by those that one task
keeps busy, the broker included.

`scaling` takes records of which some lack a member and one nests, through four transforms. `scaling-rows` takes the
same with their members in ever another order, which no columns fit: there a task is bound by its own thread.
"""

from __future__ import annotations

import dataclasses
import os

from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.discard import BARE, PLAIN, TRANSFORMS, Discard
from tests.bench.flows.flow import Outcome
from tests.bench.site import Site

FIGURES = (
    Figure("scaling", "two tasks ÷ one task", "ratio", 2, value_min=1.7, compared=False),
    Figure(
        "most", "what the cores allow: those there are ÷ those that one task keeps busy", "ratio", 2, compared=False
    ),
    Figure("one_cores", "cores that one task keeps busy, with the broker", "cores", 2),
    Figure("one_per_second", "records, one task", "1/s", 0),
    Figure("two_per_second", "records, two tasks", "1/s", 0),
    Figure("one_cpu_us", "CPU of the system, one task", "µs/record", 2),
    Figure("two_cpu_us", "CPU of the system, two tasks", "µs/record", 2),
    Figure("broker_cpu_us", "CPU of the broker, two tasks", "µs/record", 2),
    OTHER_CPU,
)
CONFIG = {
    **BARE,
    **TRANSFORMS,
    "transforms": "flatten,insert,replace,cast",
    "transforms.flatten.type": "org.apache.kafka.connect.transforms.Flatten$Value",
    "transforms.flatten.delimiter": "_",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Scaling:
    """Consumes the topic twice; a `RunOnce`.

    Attributes:
        kind: What the records are: see `load.KINDS`.
    """

    kind: str

    def __call__(self, site: Site, name: str, label: str, records: int) -> Outcome:
        """See `RunOnce`."""
        one, two = (
            Discard(CONFIG, kind=self.kind, tasks=tasks)(site, name, f"{label}-{tasks}", records) for tasks in (1, 2)
        )
        rate = one.figures["records_per_second"]
        cores = 1e-6 * rate * (one.figures["cpu_us"] + one.figures["broker_cpu_us"])
        figures = {
            "scaling": two.figures["records_per_second"] / rate,
            "most": (os.cpu_count() or 1) / cores,
            "one_cores": cores,
            "one_per_second": rate,
            "two_per_second": two.figures["records_per_second"],
            "one_cpu_us": one.figures["cpu_us"],
            "two_cpu_us": two.figures["cpu_us"],
            "broker_cpu_us": two.figures["broker_cpu_us"],
            "other_cpu_percent": max(one.figures["other_cpu_percent"], two.figures["other_cpu_percent"]),
        }
        return Outcome(figures, {"one": one.detail, "two": two.detail})


FLOW = dataclasses.replace(
    PLAIN,
    name="scaling",
    summary="JSON that nests and lacks members through Flatten, InsertField, ReplaceField and Cast: one task, then two",
    figures=FIGURES,
    records=3_000_000,
    warm_up_records=3_000_000,
    run_once=Scaling("irregular"),
)
ROWS_FLOW = dataclasses.replace(
    FLOW,
    name="scaling-rows",
    summary="the same with members in ever another order: one task, then two",
    records=600_000,
    warm_up_records=600_000,
    run_once=Scaling("shuffled"),
)
