"""`/` and `/health`."""

from __future__ import annotations

from starlette.responses import Response

from wherry.coordinator.rest.routing import Call, Route, json_response

_STATUS_BY_HEALTH = {"healthy": 200, "starting": 503}


def _server_info(call: Call) -> Response:
    info = call.herder.server_info()
    return json_response({"version": info.version, "commit": info.commit, "kafka_cluster_id": info.kafka_cluster_id})


def _health(call: Call) -> Response:
    health = call.herder.health()
    body = {"status": health.status, "message": health.message}
    return json_response(body, _STATUS_BY_HEALTH.get(health.status, 500))


ROUTES = (Route("GET", "/", _server_info), Route("GET", "/health", _health))
