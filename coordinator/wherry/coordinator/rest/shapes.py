"""Kafka Connect's JSON shapes of what a herder answers.

Generated clients decode these strictly: no field may be added, and everything in a status but `id` is a text.
"""

from __future__ import annotations

from typing import Any

from wherry.coordinator.api import (
    ConfigInfo,
    ConfigInfos,
    ConfigKeyInfo,
    ConnectorInfo,
    ConnectorStateInfo,
    ConnectorStatus,
    PluginInfo,
    TaskStatus,
)


def connector_info(info: ConnectorInfo) -> dict[str, Any]:
    """ConnectorInfo."""
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [task_id(info.name, task) for task in info.tasks],
        "type": info.type.value,
    }


def task_id(connector: str, task: int) -> dict[str, Any]:
    """ConnectorTaskId."""
    return {"connector": connector, "task": task}


def connector_state(info: ConnectorStateInfo) -> dict[str, Any]:
    """ConnectorStateInfo."""
    return {
        "name": info.name,
        "connector": _status(info.connector),
        "tasks": [task_state(task) for task in sorted(info.tasks, key=lambda task: task.id)],
        "type": info.type.value,
    }


def task_state(task: TaskStatus) -> dict[str, Any]:
    """TaskState."""
    return {"id": task.id, **_status(task)}


def plugin_info(plugin: PluginInfo) -> dict[str, Any]:
    """PluginInfo; a plugin without version shows none."""
    shape = {"class": plugin.class_name, "type": plugin.type}
    return shape if plugin.version is None else {**shape, "version": plugin.version}


def config_key(key: ConfigKeyInfo) -> dict[str, Any]:
    """ConfigKeyInfo."""
    return {
        "name": key.name,
        "type": key.type,
        "required": key.required,
        "default_value": key.default_value,
        "importance": key.importance,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order_in_group,
        "width": key.width,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def config_infos(infos: ConfigInfos) -> dict[str, Any]:
    """ConfigInfos."""
    return {
        "name": infos.name,
        "error_count": infos.error_count,
        "groups": list(infos.groups),
        "configs": [_config_info(config) for config in infos.configs],
    }


def _config_info(config: ConfigInfo) -> dict[str, Any]:
    value = config.value
    return {
        "definition": config_key(config.definition) if config.definition else None,
        "value": {
            "name": value.name,
            "value": value.value,
            "recommended_values": list(value.recommended_values),
            "errors": list(value.errors),
            "visible": value.visible,
        },
    }


def _status(status: ConnectorStatus | TaskStatus) -> dict[str, Any]:
    shape = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace:
        shape["trace"] = status.trace
    if status.version is not None:
        shape["version"] = status.version
    return shape
