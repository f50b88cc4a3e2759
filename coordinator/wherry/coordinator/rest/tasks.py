"""`/connectors/{c}/tasks`: tasks of a connector."""

from __future__ import annotations

from starlette.responses import Response

from wherry.coordinator.rest.routing import Call, Route, json_response
from wherry.coordinator.rest.shapes import task_id, task_state


def _list(call: Call) -> Response:
    configs = call.herder.task_configs(call.name)
    tasks = [{"id": task_id(call.name, number), "config": config} for number, config in enumerate(configs)]
    return json_response(tasks)


def _status(call: Call) -> Response:
    return json_response(task_state(call.herder.task_status(call.name, call.task)))


def _restart(call: Call) -> Response:
    call.herder.restart_task(call.name, call.task)
    return Response(status_code=204)


_ALL = "/connectors/{connector}/tasks"

ROUTES = (
    Route("GET", _ALL, _list),
    Route("GET", f"{_ALL}/{{task}}/status", _status),
    Route("POST", f"{_ALL}/{{task}}/restart", _restart),
)
