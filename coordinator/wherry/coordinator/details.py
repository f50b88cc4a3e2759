"""What the machine knows of a connector beyond the states that Kafka Connect shows: for `/wherry/v1`.

Only looks, in the machine's own thread, and hands out copies. Times are spans, since the machine's clock has no date.
"""

from __future__ import annotations

from wherry.coordinator import api
from wherry.coordinator.book import Book
from wherry.coordinator.figures import Totals
from wherry.coordinator.task import Task, TaskState


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


def _task(task: Task, totals: Totals | None, lag: int | None, now_ms: int) -> api.TaskDetail:
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
        leases=totals.leases if totals else 0,
        records_read=totals.records_read if totals else 0,
        records_written=totals.records_written if totals else 0,
        errors=totals.errors if totals else 0,
    )


def _span(at_ms: int | None, now_ms: int) -> int | None:
    return None if at_ms is None else max(at_ms - now_ms, 0)
