"""The OpenAPI document of all that REST serves: Kafka Connect's calls and our own.

One table of operations; a test holds it to the routes. Schemas are strict where clients decode strictly.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from wherry.coordinator.api import KAFKA_VERSION
from wherry.coordinator.rest.schemas import SCHEMAS

_JSON = "application/json"
_CONNECTOR = {
    "name": "connector",
    "in": "path",
    "required": True,
    "description": "Name of the connector.",
    "schema": {"type": "string", "minLength": 1},
}
_TASK = {
    "name": "task",
    "in": "path",
    "required": True,
    "description": "Number of the task, from 0.",
    "schema": {"type": "integer", "format": "int32", "minimum": 0},
}
_PLUGIN = {
    "name": "plugin",
    "in": "path",
    "required": True,
    "description": "Class: its full name, its simple name, or a short form of it.",
    "schema": {"type": "string", "minLength": 1},
}
_LOGGER = {
    "name": "logger",
    "in": "path",
    "required": True,
    "description": "Name of the logger; root is the root.",
    "schema": {"type": "string", "minLength": 1},
}
_BY_NAME = {"connector": _CONNECTOR, "task": _TASK, "plugin": _PLUGIN, "logger": _LOGGER}


def _query(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


_FLAG = {"type": "boolean", "default": False}
_EXPAND = _query(
    "expand",
    "What to add to each name; both may be asked for.",
    {"type": "array", "items": {"type": "string", "enum": ["status", "info"]}},
)
_RESTART = [
    _query("includeTasks", "Whether the tasks restart, too.", _FLAG),
    _query("onlyFailed", "Whether only what failed restarts.", _FLAG),
]
_SCOPE = _query("scope", "Whose loggers.", {"type": "string", "enum": ["worker", "cluster"], "default": "worker"})
_ONLY = _query("connectorsOnly", "Whether converters and the like are left out.", {"type": "boolean", "default": True})
_VERSION = _query("version", "A version or a Maven range of versions.", {"type": "string", "default": "latest"})

_ONE = "/connectors/{connector}"
_KEYS = "/connector-plugins/{plugin}/config"
# method, path, tag, summary, success {status: schema or None}, errors, body schema, query parameters
_OPERATIONS: tuple[tuple[Any, ...], ...] = (
    ("get", "/", "worker", "Versions, and the Kafka cluster", {200: "ServerInfo"}, (), None, ()),
    ("get", "/health", "worker", "Whether the worker does its work",
     {200: "Health", 500: "Health", 503: "Health"}, (), None, ()),
    ("get", "/connectors", "connectors", "All connectors", {200: "ConnectorList"}, (), None, (_EXPAND,)),
    ("post", "/connectors", "connectors", "Create a connector",
     {201: "ConnectorInfo"}, (400, 409), "CreateConnector", ()),
    ("get", _ONE, "connectors", "A connector", {200: "ConnectorInfo"}, (404,), None, ()),
    ("delete", _ONE, "connectors", "Delete a connector; its offsets stay", {204: None}, (404, 409), None, ()),
    ("get", _ONE + "/config", "connectors", "Its configuration", {200: "Config"}, (404,), None, ()),
    ("put", _ONE + "/config", "connectors", "Create it, or change its configuration",
     {200: "ConnectorInfo", 201: "ConnectorInfo"}, (400, 409), "ConfigChange", ()),
    ("patch", _ONE + "/config", "connectors", "Change single keys; null removes one",
     {200: "ConnectorInfo"}, (400, 404, 409), "ConfigChange", ()),
    ("get", _ONE + "/status", "connectors", "States of it and its tasks", {200: "ConnectorState"}, (404,), None, ()),
    ("post", _ONE + "/restart", "connectors", "Restart it",
     {202: "ConnectorState", 204: None}, (404, 409), None, _RESTART),
    ("put", _ONE + "/pause", "connectors", "Pause it; tasks stay", {202: None}, (404, 409), None, ()),
    ("put", _ONE + "/resume", "connectors", "Let it run", {202: None}, (404, 409), None, ()),
    ("put", _ONE + "/stop", "connectors", "Stop it; tasks end", {204: None}, (404, 409), None, ()),
    ("get", _ONE + "/tasks", "tasks", "Its tasks and their configurations", {200: "TaskList"}, (404,), None, ()),
    ("get", _ONE + "/tasks/{task}/status", "tasks", "State of a task", {200: "TaskState"}, (404,), None, ()),
    ("post", _ONE + "/tasks/{task}/restart", "tasks", "Restart a task", {204: None}, (404, 409), None, ()),
    ("get", _ONE + "/topics", "topics", "Topics it has used", {200: "Topics"}, (403,), None, ()),
    ("put", _ONE + "/topics/reset", "topics", "Forget these topics", {202: None}, (403,), None, ()),
    ("get", _ONE + "/offsets", "offsets", "How far it has come", {200: "Offsets"}, (404,), None, ()),
    ("patch", _ONE + "/offsets", "offsets", "Set where it goes on; it must be stopped",
     {200: "Message"}, (400, 404, 409), "OffsetsChange", ()),
    ("delete", _ONE + "/offsets", "offsets", "Let it begin anew; it must be stopped",
     {200: "Message"}, (400, 404, 409), None, ()),
    ("get", "/connector-plugins", "plugins", "Classes that are installed", {200: "PluginList"}, (), None, (_ONLY,)),
    ("get", _KEYS, "plugins", "Keys of a class", {200: "ConfigKeys"}, (400, 404), None, (_VERSION,)),
    ("put", _KEYS + "/validate", "plugins", "Check a configuration",
     {200: "ConfigInfos"}, (400,), "ConfigChange", ()),
    ("get", "/admin/loggers", "loggers", "Levels of all loggers", {200: "LoggerLevels"}, (), None, ()),
    ("get", "/admin/loggers/{logger}", "loggers", "Level of a logger", {200: "LoggerLevel"}, (404,), None, ()),
    ("put", "/admin/loggers/{logger}", "loggers", "Set the level of a logger and those below it",
     {200: "Names", 204: None}, (400, 404), "LevelChange", (_SCOPE,)),
    ("get", "/wherry/v1", "wherry", "What there is here", {200: "Index"}, (), None, ()),
    ("get", "/wherry/v1/connectors", "wherry", "Connectors, their waits and splits", {200: "Details"}, (), None, ()),
    ("get", "/wherry/v1/connectors/{connector}", "wherry", "One of them", {200: "Detail"}, (404,), None, ()),
    ("get", "/wherry/v1/connectors/{connector}/restarts", "wherry", "Its last failures and restarts, oldest first",
     {200: "RestartHistory"}, (404,), None, ()),
    ("get", "/wherry/v1/leases", "wherry", "Leases running now", {200: "Leases"}, (), None, ()),
    ("get", "/wherry/v1/restarts", "wherry", "What failed lately", {200: "Restarts"}, (), None, ()),
    ("get", "/wherry/v1/overlaps", "wherry", "Sinks in one another's way", {200: "Overlaps"}, (), None, ()),
    ("get", "/wherry/v1/parked", "wherry", "Tasks that wait for something to do", {200: "Parked"}, (), None, ()),
    ("get", "/wherry/v1/lag", "wherry", "Records still to read, by task", {200: "Lag"}, (), None, ()),
    ("get", "/wherry/v1/sidecars", "wherry", "Sidecars running now", {200: "Sidecars"}, (503,), None, ()),
    ("get", "/wherry/v1/versions", "wherry", "Versions of everything", {200: "Versions"}, (), None, ()),
    ("get", "/wherry/v1/openapi.json", "wherry", "This document", {200: "Anything"}, (), None, ()),
    ("get", "/wherry/v1/docs", "wherry", "This document as a page", {200: "Page"}, (), None, ()),
)  # fmt: skip
_TAGS = {
    "worker": "The worker itself.",
    "connectors": "Connectors: configurations, states, and the verbs on them.",
    "tasks": "Tasks of connectors.",
    "topics": "Topics that connectors use.",
    "offsets": "Positions.",
    "plugins": "Classes, their keys, and checks of configurations.",
    "loggers": "Levels of loggers; served elsewhere or nowhere when admin.listeners says so.",
    "wherry": "What Kafka Connect has no place for. Fields may be added here.",
}


@cache
def document() -> dict[str, Any]:
    """The document; do not change it."""
    paths: dict[str, Any] = {}
    for method, path, tag, summary, successes, errors, body, query in _OPERATIONS:
        names = [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]
        operation: dict[str, Any] = {
            "tags": [tag],
            "summary": summary,
            "operationId": _operation_id(method, path),
            "parameters": [*(_BY_NAME[name] for name in names), *query],
            "responses": {
                **{str(status): {"$ref": "#/components/responses/Error"} for status in (*errors, 500)},
                **{str(status): _response(status, schema) for status, schema in successes.items()},
            },
        }
        if body is not None:
            operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": _ref(body)}}}
        paths.setdefault(path, {})[method] = operation
    error = {"description": "What was wrong.", "content": {_JSON: {"schema": _ref("Error")}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Wherry",
            "version": KAFKA_VERSION,
            "description": "Kafka Connect's REST API, and Wherry's own calls under /wherry/v1. The version is that of "
            "the API. Whoever asks wrongly gets an error body; 500 stands for a body that is no JSON or of another "
            "shape, as clients of Kafka Connect know it.",
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "responses": {"Error": error}},
    }


def operations() -> list[tuple[str, str]]:
    """Method and path of each operation."""
    return [(str(entry[0]).upper(), str(entry[1])) for entry in _OPERATIONS]


def _response(status: int, schema: str | None) -> dict[str, Any]:
    told = {201: "Created.", 202: "Will be done.", 204: "Done.", 500: "No.", 503: "Not yet."}.get(status, "The answer.")
    if schema is None:
        return {"description": told}
    if schema == "Page":
        return {"description": told, "content": {"text/html": {"schema": {"type": "string"}}}}
    found: dict[str, Any] = {"description": told, "content": {_JSON: {"schema": _ref(schema)}}}
    if status == 201:
        found["headers"] = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
    return found


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _operation_id(method: str, path: str) -> str:
    words = [word.strip("{}").replace(".", "-") for word in path.split("/") if word]
    return "-".join([method, *(words or ["root"])])
