"""What is told of restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wherry.contract.errors import ErrorClass
from wherry.coordinator.api import RestartInfo, State
from wherry.coordinator.events import Failure, RestartPolicy
from wherry.coordinator.retries import of, told
from wherry.coordinator.task import Task

POLICY = RestartPolicy(restarts_max=3)
BROKEN = Task(0, failure=Failure(ErrorClass.BUG, "it broke", "at line 1"), restarts=2, retry_at_ms=5_000)


@pytest.mark.parametrize(
    ("task", "policy", "shown", "text"),
    [
        (Task(0), POLICY, State.RUNNING, ""),
        (BROKEN, POLICY, State.RESTARTING,
         "it broke\nat line 1\nIt is started again by itself, restart 2 of 3 in a row."),
        (BROKEN, RestartPolicy(restarts_max=-1), State.RESTARTING,
         "it broke\nat line 1\nIt is started again by itself, restart 2 in a row."),
        (replace(BROKEN, retry_at_ms=None, restarts=3), POLICY, State.FAILED,
         "it broke\nat line 1\nIt was given up after 3 restarts in a row (wherry.restart.max)."),
        (replace(BROKEN, retry_at_ms=None, restarts=3), POLICY, State.UNASSIGNED, "it broke\nat line 1"),
        (replace(BROKEN, retry_at_ms=None, restarts=0), RestartPolicy(enabled=False), State.FAILED,
         "it broke\nat line 1"),
    ],
)  # fmt: skip
def test_a_trace_says_whether_and_how_often_it_is_tried_again(
    task: Task, policy: RestartPolicy, shown: State, text: str
) -> None:
    assert told(task, policy, shown) == text


def test_a_restart_that_is_due_is_told_with_the_time_until_then() -> None:
    assert of("c", 0, BROKEN, POLICY, 1_000) == RestartInfo("c", 0, 2, 3, 4_000, "it broke")
    assert of("c", 0, BROKEN, POLICY, 9_000) == RestartInfo("c", 0, 2, 3, 0, "it broke")


def test_what_runs_again_is_told_without_failure_until_it_is_healthy_and_what_never_failed_not_at_all() -> None:
    again = Task(1, restarts=2)
    assert of("c", 1, again, POLICY, 0) == RestartInfo("c", 1, 2, 3, None, "")
    assert of("c", 1, Task(1), POLICY, 0) is None
