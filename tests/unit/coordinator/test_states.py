"""What the answer to a restart shows, by its two flags."""

from __future__ import annotations

import pytest

from wherry.coordinator.api import ConnectorStateInfo, ConnectorStatus, ConnectorType, State, TaskStatus
from wherry.coordinator.states import restarting, task_status_of
from wherry.coordinator.store import StoredStatus

BEFORE = ConnectorStateInfo(
    "c",
    ConnectorStatus(State.RUNNING, "w:1", "", "1"),
    (TaskStatus(0, State.RUNNING, "w:1", "", "1"), TaskStatus(1, State.FAILED, "w:1", "why", "1")),
    ConnectorType.SOURCE,
)
R, F, A = State.RUNNING, State.FAILED, State.RESTARTING


@pytest.mark.parametrize(
    ("include_tasks", "only_failed", "connector", "tasks"),
    [
        (False, False, A, (R, F)),
        (True, False, A, (A, A)),
        (False, True, R, (R, F)),
        (True, True, R, (R, A)),
    ],
)
def test_a_restart_shows_what_it_restarts_with_the_old_traces(
    include_tasks: bool, only_failed: bool, connector: State, tasks: tuple[State, ...]
) -> None:
    shown = restarting(BEFORE, include_tasks, only_failed)
    assert (shown.connector.state, tuple(task.state for task in shown.tasks)) == (connector, tasks)
    assert [task.trace for task in shown.tasks] == ["", "why"]


def test_a_tasks_status_is_shown_with_the_plugins_version() -> None:
    stored = StoredStatus("c", 1, State.FAILED, "w:1", 3, "why")
    assert task_status_of(stored, "2") == TaskStatus(1, State.FAILED, "w:1", "why", "2")
