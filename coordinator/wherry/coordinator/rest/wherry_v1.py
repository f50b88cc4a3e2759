"""`/wherry/v1/…`: what Kafka Connect's API has no place for; fields may be added here, never there."""

from __future__ import annotations

import dataclasses

from starlette.responses import Response

from wherry.coordinator.rest.routing import Call, Route, json_response


def _leases(call: Call) -> Response:
    return json_response({"leases": [dataclasses.asdict(lease) for lease in call.herder.leases()]})


def _sidecars(call: Call) -> Response:
    return json_response({"sidecars": [dataclasses.asdict(sidecar) for sidecar in call.herder.sidecars()]})


def _restarts(call: Call) -> Response:
    return json_response({"restarts": [dataclasses.asdict(retry) for retry in call.herder.restarts()]})


def _overlaps(call: Call) -> Response:
    return json_response({"overlaps": [dataclasses.asdict(overlap) for overlap in call.herder.overlaps()]})


ROUTES = (
    Route("GET", "/wherry/v1/leases", _leases),
    Route("GET", "/wherry/v1/overlaps", _overlaps),
    Route("GET", "/wherry/v1/restarts", _restarts),
    Route("GET", "/wherry/v1/sidecars", _sidecars),
)
