"""What the machine knows of a connector beyond the states that Kafka Connect shows: for `/wherry/v1`.

Only looks, in the machine's own thread, and hands out copies. Times are spans, since the machine's clock has no date.
"""

from __future__ import annotations

from typing import Final

from wherry.coordinator import api
from wherry.coordinator.book import Book
from wherry.coordinator.figures import LeaseFigures, Totals
from wherry.coordinator.lease import Lease
from wherry.coordinator.task import Task, TaskState

LOCAL_EXECUTOR: Final = "driver"
"""How Spark itself calls what runs beside the driver."""


def detail(book: Book, totals: dict[int, Totals], lags: dict[int, int | None], now_ms: int) -> api.ConnectorDetail:
    """Everything about one connector.

    Args:
        book: What the machine keeps of it.
        totals: What its tasks have counted.
        lags: Records that live leases have still to read, by task; None where it is not known.
        now_ms: The machine's time.
    """
    handout, connector = book.handout, book.connector
    tasks = tuple(
        _task(handout.tasks[number], totals.get(number), lags.get(number), now_ms) for number in sorted(handout.tasks)
    )
    return api.ConnectorDetail(
        name=book.name,
        state=connector.state.value,
        generation=handout.generation,
        restarts=connector.restarts,
        retry_in_ms=_span(connector.retry_at_ms, now_ms),
        failure=connector.failure.message if connector.failure else "",
        plan_wanted=book.plan_wanted or book.plan_deadline_ms is not None,
        next_plan_in_ms=_span(book.replan_at_ms, now_ms),
        splits=api.SplitCounts(len(handout.splits.pending), len(handout.splits.active), len(handout.splits.failures)),
        tasks=tasks,
    )


def lease_info(lease: Lease, figures: LeaseFigures | None) -> api.LeaseInfo:
    """A lease, with what it has counted if it has reported yet."""
    host = lease.worker.rpartition(":")[0]
    return api.LeaseInfo(
        lease.connector,
        lease.task,
        lease.generation,
        figures.phase if figures else lease.phase.value,
        lease.worker,
        figures.started_ms if figures else 0,
        () if lease.split is None else (lease.split,),
        max(figures.records_read, figures.records_written) if figures else 0,
        figures.lag if figures else None,
        host,
        (lease.executor or LOCAL_EXECUTOR) if host else "",
    )


def _task(task: Task, totals: Totals | None, lag: int | None, now_ms: int) -> api.TaskDetail:
    counted = totals or Totals()
    return api.TaskDetail(
        id=task.number,
        state=task.state.value,
        parked=task.state is TaskState.PARKED,
        restarts=task.restarts,
        retry_in_ms=_span(task.retry_at_ms, now_ms),
        in_state_ms=max(now_ms - task.since_ms, 0) if task.since_ms else None,
        failure=task.failure.message if task.failure else "",
        partitions=() if task.work is None else tuple(task.work.partitions),
        lag=lag,
        leases=counted.leases,
        records_read=counted.records_read,
        records_written=counted.records_written,
        errors=counted.errors,
        failures=counted.failures,
        skipped=counted.skipped,
        retries=counted.retries,
        logged=counted.logged,
        dead_letters=counted.dead_letters,
        dead_letter_failures=counted.dead_letter_failures,
        last_error_ms=counted.last_error_ms,
    )


def _span(at_ms: int | None, now_ms: int) -> int | None:
    return None if at_ms is None else max(at_ms - now_ms, 0)
