"""What exactly once costs a source: the same file copied by a worker without and by one with transactions.

Records and positions are written in one transaction at the boundaries of polls. A reader of committed records counts;
the markers that end transactions take offsets as well, a few in a thousand. Each system is compared with itself; every
run is checked line by line.
"""

from __future__ import annotations

from tests.bench import load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows import file_kafka
from tests.bench.flows.flow import Flow, Outcome, detail
from tests.bench.site import Site
from tests.bench.systems import WorkerSettings

TRANSACTIONS = "transactions"

FIGURES = (
    Figure("share", "exactly once ÷ at least once", "ratio", 2, value_min=0.85, compared=False),
    Figure("at_least_per_second", "lines at least once, first to last offset", "1/s", 0),
    Figure("lines_per_second", "lines exactly once, first to last offset", "1/s", 0),
    Figure("at_least_cpu_us", "CPU of the system, at least once", "µs/line", 2),
    Figure("cpu_us", "CPU of the system, exactly once", "µs/line", 2),
    Figure("broker_cpu_us", "CPU of the broker, exactly once", "µs/line", 2),
    Figure("first_record_seconds", "creation to first record, exactly once", "s", 2),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Copies the file twice."""
    copied = {}
    for variant in ("", TRANSACTIONS):
        topic = f"lines-{label}-{variant or 'plain'}"
        copied[variant] = file_kafka.copy(site, site.running(name, variant), f"{label}{variant}", topic, records)
        load.delete_topic(site.bootstrap, topic)
    plain, exact = copied[""].figures, copied[TRANSACTIONS].figures
    figures = {
        **exact,
        "share": exact["lines_per_second"] / plain["lines_per_second"],
        "at_least_per_second": plain["lines_per_second"],
        "at_least_cpu_us": plain["cpu_us"],
        "other_cpu_percent": max(plain["other_cpu_percent"], exact["other_cpu_percent"]),
    }
    return Outcome(figures, {name or "plain": detail(found.sampler, found.points) for name, found in copied.items()})


FLOW = Flow(
    name="exactly-once",
    summary="a file of 200 B lines into one partition, with transactions and without, each system beside itself",
    figures=FIGURES,
    records=2_000_000,
    warm_up_records=1_000_000,
    settings=WorkerSettings(extra=file_kafka.SETTINGS, distributed=True),
    variants={
        TRANSACTIONS: WorkerSettings(
            extra={**file_kafka.SETTINGS, "exactly.once.source.support": "enabled"}, distributed=True
        )
    },
    run_once=run_once,
)
