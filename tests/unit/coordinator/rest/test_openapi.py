"""The document lists what is served, no more and no less, and what is served has the shapes it tells."""

from __future__ import annotations

import re
from typing import Any

import pytest

from wherry.coordinator.rest import app, loggers, openapi
from wherry.coordinator.rest.page import page

DOCUMENT = openapi.document()
TEXT_BY_STATUS = {"200": 200, "201": 201, "202": 202}


def served() -> set[tuple[str, str]]:
    routes = [*app.MAIN_ROUTES, *loggers.routes(loggers.Loggers())]
    return {(route.method, route.path) for route in routes if not route.internal}


def test_every_route_has_an_operation_and_every_operation_a_route() -> None:
    assert set(openapi.operations()) == served()


def test_operations_have_names_of_their_own() -> None:
    names = [each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names)


def test_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    wanted = set(re.findall(r"#/components/schemas/(\w+)", str(DOCUMENT)))
    assert wanted <= schemas.keys()
    assert schemas.keys() - wanted <= {"Anything"}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is what a schema says; as much of JSON Schema as the document uses."""
    if "$ref" in schema:
        return fits(value, DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return sum(fits(value, each) for each in schema["oneOf"]) == 1
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
        "object": dict,
        "array": list,
    }
    wanted = schema.get("type")
    if wanted is None:
        return True
    names = wanted if isinstance(wanted, list) else [wanted]
    if not any(isinstance(value, kinds[name]) and (name == "boolean" or value is not True) for name in names):
        return False
    if isinstance(value, list):
        return all(fits(each, schema["items"]) for each in value)
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not set(schema.get("required", ())) <= value.keys():
            return False
        rest = {key: item for key, item in value.items() if key not in properties}
        known = all(fits(item, properties[key]) for key, item in value.items() if key in properties)
        return known and (more is True or (not rest if more is False else all(fits(i, more) for i in rest.values())))
    return True


@pytest.mark.parametrize(
    ("method", "path", "target", "body"),
    [
        ("GET", "/", "/", None),
        ("GET", "/health", "/health", None),
        ("GET", "/connectors", "/connectors", None),
        ("GET", "/connectors", "/connectors?expand=status&expand=info", None),
        ("POST", "/connectors", "/connectors", {"name": "n", "config": {"a": "b"}}),
        ("GET", "/connectors/{connector}", "/connectors/c", None),
        ("PUT", "/connectors/{connector}/config", "/connectors/c/config", {"a": "b"}),
        ("GET", "/connectors/{connector}/status", "/connectors/c/status", None),
        ("POST", "/connectors/{connector}/restart", "/connectors/c/restart?includeTasks=true", None),
        ("GET", "/connectors/{connector}/tasks", "/connectors/c/tasks", None),
        ("GET", "/connectors/{connector}/tasks/{task}/status", "/connectors/c/tasks/0/status", None),
        ("GET", "/connectors/{connector}/topics", "/connectors/c/topics", None),
        ("GET", "/connectors/{connector}/offsets", "/connectors/c/offsets", None),
        ("DELETE", "/connectors/{connector}/offsets", "/connectors/c/offsets", None),
        ("GET", "/connector-plugins", "/connector-plugins?connectorsOnly=false", None),
        ("GET", "/connector-plugins/{plugin}/config", "/connector-plugins/B/config", None),
        ("PUT", "/connector-plugins/{plugin}/config/validate", "/connector-plugins/B/config/validate", {"a": "b"}),
        ("GET", "/admin/loggers", "/admin/loggers", None),
        ("GET", "/admin/loggers/{logger}", "/admin/loggers/root", None),
        ("GET", "/wherry/v1", "/wherry/v1", None),
        ("GET", "/wherry/v1/connectors", "/wherry/v1/connectors", None),
        ("GET", "/wherry/v1/connectors/{connector}", "/wherry/v1/connectors/c", None),
        ("GET", "/wherry/v1/connectors/{connector}/restarts", "/wherry/v1/connectors/c/restarts", None),
        ("GET", "/wherry/v1/leases", "/wherry/v1/leases", None),
        ("GET", "/wherry/v1/restarts", "/wherry/v1/restarts", None),
        ("GET", "/wherry/v1/overlaps", "/wherry/v1/overlaps", None),
        ("GET", "/wherry/v1/parked", "/wherry/v1/parked", None),
        ("GET", "/wherry/v1/lag", "/wherry/v1/lag", None),
        ("GET", "/wherry/v1/sidecars", "/wherry/v1/sidecars", None),
        ("GET", "/wherry/v1/versions", "/wherry/v1/versions", None),
        ("GET", "/wherry/v1/openapi.json", "/wherry/v1/openapi.json", None),
    ],
)
def test_an_answer_has_the_shape_the_document_tells(ask, method, path, target, body) -> None:
    answer = ask(method, target, body)
    response = DOCUMENT["paths"][path][method.lower()]["responses"][str(answer.status)]
    schema = response["content"]["application/json"]["schema"]
    assert fits(answer.json, schema), answer.json


def test_a_shape_that_is_another_does_not_fit() -> None:
    state = {"$ref": "#/components/schemas/ConnectorState"}
    good = {"name": "c", "connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": [], "type": "source"}
    assert fits(good, state)
    assert not fits({**good, "more": 1}, state)
    assert not fits({**good, "connector": {"state": "LAZY", "worker_id": "w"}}, state)


def test_the_page_shows_every_operation_and_needs_nothing_from_elsewhere(ask) -> None:
    answer = ask("GET", "/wherry/v1/docs", accept="text/html,application/xhtml+xml,*/*;q=0.8")
    text = answer.body.decode()
    assert answer.headers["content-type"].startswith("text/html")
    assert all(f'id="{each["operationId"]}"' in text for m in DOCUMENT["paths"].values() for each in m.values())
    assert not re.findall(r"https?://|<script", text)


def test_what_a_document_says_cannot_break_the_page() -> None:
    changed = {**DOCUMENT, "info": {**DOCUMENT["info"], "description": "<script>x</script>"}}
    assert "<script>" not in page(changed)


def test_a_connector_nobody_knows_has_no_details(ask) -> None:
    answer = ask("GET", "/wherry/v1/connectors/nobody")
    assert (answer.status, answer.message) == (404, "Connector nobody not found")
