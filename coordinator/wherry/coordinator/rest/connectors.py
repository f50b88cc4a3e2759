"""`/connectors`: configurations, states and the verbs on connectors."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from wherry.contract.java import BLANKS
from wherry.coordinator.api import BadRequestError, NotFoundError, TargetState
from wherry.coordinator.rest.bodies import BodyError, known_fields, loads, optional_text, string_map
from wherry.coordinator.rest.routing import Call, Route, json_response
from wherry.coordinator.rest.shapes import connector_info, connector_state

_log = logging.getLogger(__name__)

_CREATE_FIELDS = ("name", "config", "initial_state")
_TARGET_BY_INITIAL_STATE = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


def initial_state(text: str | None) -> TargetState | None:
    """The target state an `initial_state` names, in any case.

    Raises:
        BodyError: It names none.
    """
    if text is None:
        return None
    found = _TARGET_BY_INITIAL_STATE.get(text.upper())
    if found is None:
        raise BodyError(f"Invalid initial_state '{text}': one of {', '.join(_TARGET_BY_INITIAL_STATE)} is expected.")
    return found


def with_name(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    """The configuration with the connector's name in it.

    Raises:
        BadRequestError: It holds another name.
    """
    included = config.get("name")
    if included is None:  # left out, or null
        return {**config, "name": name}
    if included != name:
        raise BadRequestError(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return config


def _list(call: Call) -> Response:
    names = call.herder.connectors()
    if "expand" not in call.query:
        return json_response(names)
    expanded = {}
    for name in names:
        try:
            expanded[name] = _expand(call, name)
        except NotFoundError:
            _log.debug("connector %s was deleted while the list was made", name)
    return json_response(expanded)


def _expand(call: Call, name: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for wanted in call.query["expand"]:
        if wanted == "status":
            parts["status"] = connector_state(call.herder.status(name))
        elif wanted == "info":
            parts["info"] = connector_info(call.herder.connector(name))
    return parts


def _create(call: Call) -> Response:
    body = known_fields(_required_body(call), "CreateConnectorRequest", _CREATE_FIELDS)
    state = initial_state(optional_text(body.get("initial_state"), "initial_state"))
    name = (optional_text(body.get("name"), "name") or "").strip(BLANKS)
    if body.get("config") is None:
        raise BodyError('The request body has no "config": {"name": …, "config": {…}} is expected.')
    config = with_name(name, string_map(body["config"], "config"))
    _, info = call.herder.put_config(name, config, initial_state=state, create_only=True)
    return json_response(connector_info(info), 201, _location(call, name))


def _get(call: Call) -> Response:
    return json_response(connector_info(call.herder.connector(call.name)))


def _get_config(call: Call) -> Response:
    return json_response(dict(call.herder.connector(call.name).config))


def _put_config(call: Call) -> Response:
    config = with_name(call.name, string_map(_required_body(call), "config"))
    created, info = call.herder.put_config(call.name, config)
    if created:
        return json_response(connector_info(info), 201, _location(call, call.name))
    return json_response(connector_info(info))


def _patch_config(call: Call) -> Response:
    if loads(call.body.strip() or b"null") is None:
        call.herder.connector(call.name)  # that it exists is looked at before what is missing
    patch = string_map(_required_body(call), "config")
    return json_response(connector_info(call.herder.patch_config(call.name, patch)))


def _delete(call: Call) -> Response:
    call.herder.delete(call.name)
    return Response(status_code=204)


def _status(call: Call) -> Response:
    return json_response(connector_state(call.herder.status(call.name)))


def _restart(call: Call) -> Response:
    plan = call.herder.restart(call.name, include_tasks=call.flag("includeTasks"), only_failed=call.flag("onlyFailed"))
    return Response(status_code=204) if plan is None else json_response(connector_state(plan), 202)


def _pause(call: Call) -> Response:
    call.herder.pause(call.name)
    return Response(status_code=202)


def _resume(call: Call) -> Response:
    call.herder.resume(call.name)
    return Response(status_code=202)


def _stop(call: Call) -> Response:
    call.herder.stop(call.name)
    return Response(status_code=204)


def _topics(call: Call) -> Response:
    return json_response({call.name: {"topics": call.herder.topics(call.name)}})


def _reset_topics(call: Call) -> Response:
    call.herder.reset_topics(call.name)
    return Response(status_code=202)


def _required_body(call: Call) -> Any:
    value = loads(call.body, exact_numbers=True) if call.body.strip() else None
    if value is None:
        raise BodyError("The request body is missing: a JSON object is expected.")
    return value


def _location(call: Call, name: str) -> dict[str, str]:
    return {"Location": f"{call.base_url}/connectors/{quote(name, safe='')}"}


_ONE = "/connectors/{connector}"

ROUTES = (
    Route("GET", "/connectors", _list),
    Route("POST", "/connectors", _create, takes_body=True),
    Route("GET", _ONE, _get),
    Route("DELETE", _ONE, _delete),
    Route("GET", f"{_ONE}/config", _get_config),
    Route("PUT", f"{_ONE}/config", _put_config, takes_body=True),
    Route("PATCH", f"{_ONE}/config", _patch_config, takes_body=True),
    Route("GET", f"{_ONE}/status", _status),
    Route("POST", f"{_ONE}/restart", _restart),
    Route("PUT", f"{_ONE}/pause", _pause),
    Route("PUT", f"{_ONE}/resume", _resume),
    Route("PUT", f"{_ONE}/stop", _stop),
    Route("GET", f"{_ONE}/topics", _topics),
    Route("PUT", f"{_ONE}/topics/reset", _reset_topics),
)
