"""One task, then two, of the same work on the same records: how much of the second core becomes records.

The work is bound by a task's own thread: records whose members differ from one to the next, which no engine can take as
columns, through three transforms. Where a task already uses more than one core by itself (reading, sidecar and broker
run beside it), two of them cannot have twice as much on two cores, whatever the engine.
"""

from __future__ import annotations

import dataclasses

from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.discard import BARE, PLAIN, TRANSFORMS, Discard
from tests.bench.flows.flow import Outcome
from tests.bench.site import Site

FIGURES = (
    Figure("scaling", "two tasks ÷ one task", "ratio", 2, value_min=1.7, compared=False),
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


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Consumes the topic twice."""
    one, two = (
        Discard(CONFIG, kind="irregular", tasks=tasks)(site, name, f"{label}-{tasks}", records) for tasks in (1, 2)
    )
    figures = {
        "scaling": two.figures["records_per_second"] / one.figures["records_per_second"],
        "one_per_second": one.figures["records_per_second"],
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
    summary="irregular JSON through Flatten, InsertField, ReplaceField and Cast: one task, then two",
    figures=FIGURES,
    records=600_000,
    warm_up_records=600_000,
    run_once=run_once,
)
