"""`/wherry/v1/…`: what Kafka Connect's API has no place for; fields may be added here, never there."""

from __future__ import annotations

import dataclasses
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from starlette.responses import Response

from wherry.coordinator.api import KAFKA_VERSION
from wherry.coordinator.rest.openapi import document
from wherry.coordinator.rest.page import page
from wherry.coordinator.rest.routing import Call, Route, json_response

_LIBRARIES = ("pyspark", "pyarrow", "confluent-kafka", "grpcio", "polars", "starlette", "uvicorn")
# Nothing of the page comes from elsewhere, and nothing on it may run but what is written into it.
_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _index(call: Call) -> Response:
    paths = [route.path for route in ROUTES if "{" not in route.path]
    return json_response({"version": _version("wherry"), "kafka_api": KAFKA_VERSION, "paths": paths})


def _connectors(call: Call) -> Response:
    return json_response({"connectors": [dataclasses.asdict(each) for each in call.herder.details()]})


def _connector(call: Call) -> Response:
    (found,) = call.herder.details(call.name)
    return json_response(dataclasses.asdict(found))


def _parked(call: Call) -> Response:
    parked = [
        {"connector": each.name, "task": task.id, "in_state_ms": task.in_state_ms, "partitions": task.partitions}
        for each in call.herder.details()
        for task in each.tasks
        if task.parked
    ]
    return json_response({"parked": parked})


def _lag(call: Call) -> Response:
    lags = [
        {"connector": each.name, "task": task.id, "lag": task.lag}
        for each in call.herder.details()
        for task in each.tasks
        if task.lag is not None
    ]
    return json_response({"lag": lags})


def _leases(call: Call) -> Response:
    return json_response({"leases": [dataclasses.asdict(lease) for lease in call.herder.leases()]})


def _sidecars(call: Call) -> Response:
    return json_response({"sidecars": [dataclasses.asdict(sidecar) for sidecar in call.herder.sidecars()]})


def _restarts(call: Call) -> Response:
    return json_response({"restarts": [dataclasses.asdict(retry) for retry in call.herder.restarts()]})


def _restart_history(call: Call) -> Response:
    found = call.herder.restart_history(call.name)
    return json_response({"connector": call.name, "history": [dataclasses.asdict(note) for note in found]})


def _overlaps(call: Call) -> Response:
    return json_response({"overlaps": [dataclasses.asdict(overlap) for overlap in call.herder.overlaps()]})


def _versions(call: Call) -> Response:
    plugins = {plugin.class_name: plugin.version for plugin in call.herder.plugins(connectors_only=True)}
    libraries = {name: found for name in _LIBRARIES if (found := _version(name))}
    return json_response(
        {
            "wherry": _version("wherry"),
            "kafka_api": KAFKA_VERSION,
            "python": platform.python_version(),
            "libraries": libraries,
            "plugins": plugins,
        }
    )


def _openapi(call: Call) -> Response:
    return json_response(document())


def _page(call: Call) -> Response:
    return Response(page(document()), media_type="text/html", headers={"Content-Security-Policy": _PAGE_POLICY})


@cache
def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


ROUTES: tuple[Route, ...] = (
    Route("GET", "/wherry/v1", _index),
    Route("GET", "/wherry/v1/connectors", _connectors),
    Route("GET", "/wherry/v1/connectors/{connector}", _connector),
    Route("GET", "/wherry/v1/connectors/{connector}/restarts", _restart_history),
    Route("GET", "/wherry/v1/leases", _leases),
    Route("GET", "/wherry/v1/overlaps", _overlaps),
    Route("GET", "/wherry/v1/restarts", _restarts),
    Route("GET", "/wherry/v1/parked", _parked),
    Route("GET", "/wherry/v1/lag", _lag),
    Route("GET", "/wherry/v1/sidecars", _sidecars),
    Route("GET", "/wherry/v1/versions", _versions),
    Route("GET", "/wherry/v1/openapi.json", _openapi),
    Route("GET", "/wherry/v1/docs", _page, produces="text/html"),
)
