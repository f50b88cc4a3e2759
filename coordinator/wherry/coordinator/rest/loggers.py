"""`/admin/loggers`: levels of this process's loggers, under Kafka's names of levels.

Logger names are Python's; `root` is the root. One worker makes the cluster in standalone mode, so that scope=cluster
sets the same loggers and only answers differently.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from starlette.responses import Response

from wherry.coordinator.api import BadRequestError, NotFoundError
from wherry.coordinator.rest.bodies import BodyError, loads, optional_text, string_map
from wherry.coordinator.rest.routing import Call, Route, json_response

_ROOT = "root"
LEVELS: Mapping[str, int] = {
    "OFF": 100,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}


class Loggers:
    """Reads and sets levels, and remembers when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modified_ms: dict[str, int] = {}

    def levels(self) -> dict[str, dict[str, object]]:
        """All loggers whose level is not OFF, sorted by name."""
        names = [_ROOT, *(name for name, found in _known().items() if found)]
        shapes = {name: self._shape(name) for name in sorted(names)}
        return {name: shape for name, shape in shapes.items() if shape["level"] != "OFF"}

    def level(self, name: str) -> dict[str, object]:
        """One logger. Raises NotFoundError for a name no logger has."""
        if name != _ROOT and not _known().get(name):
            raise NotFoundError(f"Logger {name} not found.")
        return self._shape(name)

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Set a logger and all below it; answers the names of those whose level changed."""
        number = LEVELS[level]
        with self._lock:
            names = sorted(_affected(namespace))
            # Looked at before anything is set, since children inherit.
            changed = [name for name in names if _logger(name).getEffectiveLevel() != number]
            for name in names:
                _logger(name).setLevel(number)
            self._modified_ms.update(dict.fromkeys(changed, int(time.time() * 1000)))
            return changed

    def _shape(self, name: str) -> dict[str, object]:
        return {"level": _level_name(_logger(name).getEffectiveLevel()), "last_modified": self._modified_ms.get(name)}


def routes(loggers: Loggers) -> tuple[Route, ...]:
    """The routes of a set of loggers."""

    def get_all(call: Call) -> Response:
        return json_response(loggers.levels())

    def get(call: Call) -> Response:
        return json_response(loggers.level(call.path["logger"]))

    def put(call: Call) -> Response:
        level = _wanted_level(call)
        changed = loggers.set_level(call.path["logger"], level)
        if call.query.get("scope", [""])[0].lower() == "cluster":
            return Response(status_code=204)
        return json_response(changed)

    path = "/admin/loggers/{logger}"
    return (
        Route("GET", "/admin/loggers", get_all),
        Route("GET", path, get),
        Route("PUT", path, put, takes_body=True),
    )


def _wanted_level(call: Call) -> str:
    value = loads(call.body, exact_numbers=True) if call.body.strip() else None
    if value is None:
        raise BodyError('The request body is missing: {"level": …} is expected.')
    text = optional_text(string_map(value, "body").get("level"), "level")
    if text is None:
        raise BadRequestError("Desired 'level' parameter was not specified in request.")
    if not text:
        raise BodyError('"level" is empty: one of ' + ", ".join(LEVELS) + " is expected.")
    if text.upper() not in LEVELS:
        raise NotFoundError(f"invalid log level '{text}'.")
    return text.upper()


def _known() -> dict[str, bool]:
    """Names of loggers; False for a mere stem of names."""
    return {name: isinstance(found, logging.Logger) for name, found in logging.root.manager.loggerDict.items()}


def _affected(namespace: str) -> list[str]:
    if namespace == _ROOT:
        return [_ROOT, *(name for name, found in _known().items() if found)]
    below = [name for name, found in _known().items() if found and name.startswith(f"{namespace}.")]
    return [namespace, *below]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == _ROOT else logging.getLogger(name)


def _level_name(number: int) -> str:
    """The nearest of Kafka's levels that is not less grave than the number says."""
    return min(LEVELS, key=lambda name: (abs(LEVELS[name] - number), LEVELS[name]))
