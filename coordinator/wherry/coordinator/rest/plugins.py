"""`/connector-plugins`: classes, their keys, and validation."""

from __future__ import annotations

from starlette.responses import Response

from wherry.coordinator.rest.bodies import BodyError, loads, string_map
from wherry.coordinator.rest.routing import Call, Route, json_response
from wherry.coordinator.rest.shapes import config_infos, config_key, plugin_info


def _list(call: Call) -> Response:
    # Absent and empty mean "true"; any other text than true means "all kinds".
    connectors_only = call.query.get("connectorsOnly", [""])[0].lower() in ("", "true")
    plugins = call.herder.plugins(connectors_only=connectors_only)
    return json_response([plugin_info(plugin) for plugin in plugins])


def _config(call: Call) -> Response:
    version = call.query.get("version", [None])[0]
    return json_response([config_key(key) for key in call.herder.plugin_config(call.path["plugin"], version)])


def _validate(call: Call) -> Response:
    value = loads(call.body, exact_numbers=True) if call.body.strip() else None
    if value is None:
        raise BodyError("The request body is missing: a JSON object of configuration values is expected.")
    return json_response(config_infos(call.herder.validate(call.path["plugin"], string_map(value, "config"))))


ROUTES = (
    Route("GET", "/connector-plugins", _list),
    Route("GET", "/connector-plugins/{plugin}/config", _config),
    Route("PUT", "/connector-plugins/{plugin}/config/validate", _validate, takes_body=True),
)
