"""States as REST shows them: of what is stored, and of what a restart is about to do."""

from __future__ import annotations

from wherry.coordinator import api
from wherry.coordinator.store import StoredStatus


def task_status_of(status: StoredStatus, version: str | None) -> api.TaskStatus:
    """A stored status of a task as REST shows it."""
    assert status.task is not None, "a task's status has its number"
    return api.TaskStatus(status.task, status.state, status.worker_id, status.trace, version)


def restarting(before: api.ConnectorStateInfo, include_tasks: bool, only_failed: bool) -> api.ConnectorStateInfo:
    """The answer to a restart: what is restarted shows RESTARTING, its old trace stays."""

    def affected(state: api.State) -> bool:
        return state is api.State.FAILED if only_failed else True

    connector = before.connector
    if affected(connector.state):
        connector = api.ConnectorStatus(api.State.RESTARTING, connector.worker_id, connector.trace, connector.version)
    tasks = tuple(
        api.TaskStatus(task.id, api.State.RESTARTING, task.worker_id, task.trace, task.version)
        if include_tasks and affected(task.state)
        else task
        for task in before.tasks
    )
    return api.ConnectorStateInfo(before.name, connector, tasks, before.type)
