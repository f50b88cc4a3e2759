"""Schemas of bodies, for the OpenAPI document: closed where Kafka Connect's clients decode strictly."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_NULLABLE = {"type": ["string", "null"]}
_INT = {"type": "integer"}
_NULLABLE_INT = {"type": ["integer", "null"]}
_BOOL = {"type": "boolean"}
_STATE = {"enum": ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]}
_TYPE = {"enum": ["source", "sink", "unknown"]}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _open(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_STATUS = {"state": _STATE, "worker_id": _TEXT, "trace": _TEXT, "version": _NULLABLE}
_STATUS_OPTIONAL = ("trace", "version")

SCHEMAS: dict[str, Any] = {
    "Error": _closed({"error_code": _INT, "message": _NULLABLE}),
    "Message": _closed({"message": _TEXT}),
    "Anything": {},
    "Names": _list(_TEXT),
    "ServerInfo": _closed({"version": _TEXT, "commit": _TEXT, "kafka_cluster_id": _NULLABLE}),
    "Health": _closed({"status": {"enum": ["healthy", "starting", "unhealthy"]}, "message": _TEXT}),
    "Config": _map(_TEXT),
    "ConfigChange": _map(_SCALAR),
    "CreateConnector": _closed(
        {
            "name": _TEXT,
            "config": _ref("ConfigChange"),
            "initial_state": {"enum": ["RUNNING", "PAUSED", "STOPPED", None]},
        },
        ("initial_state",),
    ),
    "TaskId": _closed({"connector": _TEXT, "task": _INT}),
    "ConnectorInfo": _closed({"name": _TEXT, "config": _ref("Config"), "tasks": _list(_ref("TaskId")), "type": _TYPE}),
    "ConnectorList": {
        "oneOf": [
            _ref("Names"),
            _map(_closed({"status": _ref("ConnectorState"), "info": _ref("ConnectorInfo")}, ("status", "info"))),
        ]
    },
    "ConnectorState": _closed(
        {
            "name": _TEXT,
            "connector": _closed(_STATUS, _STATUS_OPTIONAL),
            "tasks": _list(_ref("TaskState")),
            "type": _TYPE,
        }
    ),
    "TaskState": _closed({"id": _INT, **_STATUS}, _STATUS_OPTIONAL),
    "TaskList": _list(_closed({"id": _ref("TaskId"), "config": _ref("Config")})),
    "Topics": _map(_closed({"topics": _ref("Names")})),
    "Offset": _closed({"partition": _map(_SCALAR), "offset": {"oneOf": [_map(_SCALAR), {"type": "null"}]}}),
    "Offsets": _closed({"offsets": _list(_ref("Offset"))}),
    "OffsetsChange": _closed({"offsets": _list(_ref("Offset"))}),
    "Plugin": _closed(
        {
            "class": _TEXT,
            "type": {"enum": ["source", "sink", "converter", "header_converter", "transformation", "predicate"]},
            "version": _TEXT,
        },
        ("version",),
    ),
    "PluginList": _list(_ref("Plugin")),
    "ConfigKey": _closed(
        {
            "name": _TEXT,
            "type": {"enum": ["BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]},
            "required": _BOOL,
            "default_value": _NULLABLE,
            "importance": {"enum": ["HIGH", "MEDIUM", "LOW"]},
            "documentation": _NULLABLE,
            "group": _NULLABLE,
            "order_in_group": _INT,
            "width": {"enum": ["NONE", "SHORT", "MEDIUM", "LONG"]},
            "display_name": _TEXT,
            "dependents": _ref("Names"),
        }
    ),
    "ConfigKeys": _list(_ref("ConfigKey")),
    "ConfigValue": _closed(
        {
            "name": _TEXT,
            "value": _NULLABLE,
            "recommended_values": _ref("Names"),
            "errors": _ref("Names"),
            "visible": _BOOL,
        }
    ),
    "ConfigInfos": _closed(
        {
            "name": _TEXT,
            "error_count": _INT,
            "groups": _ref("Names"),
            "configs": _list(
                _closed({"definition": {"oneOf": [_ref("ConfigKey"), {"type": "null"}]}, "value": _ref("ConfigValue")})
            ),
        }
    ),
    "LoggerLevel": _closed({"level": _TEXT, "last_modified": _NULLABLE_INT}),
    "LoggerLevels": _map(_ref("LoggerLevel")),
    "LevelChange": {"type": "object", "properties": {"level": _TEXT}, "required": ["level"]},
    "Index": _open(version=_NULLABLE, kafka_api=_TEXT, paths=_ref("Names")),
    "TaskDetail": _open(
        id=_INT,
        state=_TEXT,
        parked=_BOOL,
        restarts=_INT,
        retry_in_ms=_NULLABLE_INT,
        in_state_ms=_NULLABLE_INT,
        failure=_TEXT,
        partitions=_ref("Names"),
        lag=_NULLABLE_INT,
        leases=_INT,
        records_read=_INT,
        records_written=_INT,
        errors=_INT,
        failures=_INT,
        skipped=_INT,
        retries=_INT,
        logged=_INT,
        dead_letters=_INT,
        dead_letter_failures=_INT,
        last_error_ms=_INT,
    ),
    "Detail": _open(
        name=_TEXT,
        state=_TEXT,
        generation=_INT,
        restarts=_INT,
        retry_in_ms=_NULLABLE_INT,
        failure=_TEXT,
        plan_wanted=_BOOL,
        next_plan_in_ms=_NULLABLE_INT,
        splits=_open(pending=_INT, active=_INT, failed=_INT),
        tasks=_list(_ref("TaskDetail")),
    ),
    "Details": _open(connectors=_list(_ref("Detail"))),
    "Leases": _open(
        leases=_list(
            _open(
                connector=_TEXT,
                task=_INT,
                generation=_INT,
                phase=_TEXT,
                worker=_TEXT,
                started_ms=_INT,
                splits=_ref("Names"),
                records=_INT,
                lag=_NULLABLE_INT,
                host=_TEXT,
                executor=_TEXT,
            )
        )
    ),
    "Restarts": _open(
        restarts=_list(
            _open(
                connector=_TEXT,
                task=_NULLABLE_INT,
                restarts=_INT,
                restarts_max=_INT,
                next_in_ms=_NULLABLE_INT,
                failure=_TEXT,
            )
        )
    ),
    "RestartHistory": _open(
        connector=_TEXT,
        history=_list(
            _open(
                at_ms=_INT,
                task=_NULLABLE_INT,
                happening={"type": "string", "enum": ["failed", "given up", "asked"]},
                error_class=_TEXT,
                message=_TEXT,
                attempt=_INT,
                wait_ms=_NULLABLE_INT,
            )
        ),
    ),
    "Overlaps": _open(overlaps=_list(_open(connectors=_ref("Names"), message=_TEXT))),
    "Parked": _open(
        parked=_list(_open(connector=_TEXT, task=_INT, in_state_ms=_NULLABLE_INT, partitions=_ref("Names")))
    ),
    "Lag": _open(lag=_list(_open(connector=_TEXT, task=_INT, lag=_INT))),
    "Sidecars": _open(
        sidecars=_list(
            _open(
                plugin=_TEXT,
                connector=_TEXT,
                generation=_INT,
                pid=_INT,
                endpoint=_TEXT,
                rss_bytes=_INT,
                cpu_seconds={"type": "number"},
                details=_map(_TEXT),
            )
        )
    ),
    "Versions": _open(wherry=_NULLABLE, kafka_api=_TEXT, python=_TEXT, libraries=_map(_TEXT), plugins=_map(_NULLABLE)),
}
