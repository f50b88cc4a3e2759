"""How this process logs: lines that people and log shippers of Kafka Connect know, or one JSON object a line.

Standard logging only: whatever a library logs comes out in the same form. Lines go to standard output, as Kafka
Connect's do.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
from typing import Any, TextIO

_QUIET = {"py4j": logging.WARNING, "uvicorn": logging.WARNING, "asyncio": logging.WARNING}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LEVEL_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def setup(*, form: str = "text", level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send all logging to a stream, by default standard output.

    Args:
        form: text or json.
        level: Of the root logger; `/admin/loggers` changes it later.
        stream: Where to write.
    """
    logging.addLevelName(5, "TRACE")
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, quiet in _QUIET.items():
        logging.getLogger(name).setLevel(quiet)
    logging.captureWarnings(True)


class TextFormatter(logging.Formatter):
    """`[2026-01-31 12:00:00,123] INFO [orders|task-0] message (logger)`, as Kafka Connect's own layout."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, with its traceback on the lines below."""
        time = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S")
        context = _context(record)
        head = f"[{time},{int(record.msecs):03d}] {_level(record)} {context}{record.getMessage()} ({record.name})"
        return head if record.exc_info is None else f"{head}\n{self.formatException(record.exc_info)}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: timestamp, level, logger, message, exception, and whatever the record carries besides."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        shown: dict[str, Any] = {
            "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": _level(record),
            "logger": record.name,
            "message": record.getMessage(),
        }
        shown |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info is not None:
            shown["exception"] = self.formatException(record.exc_info)
        return json.dumps(shown, ensure_ascii=False, default=str)


def _level(record: logging.LogRecord) -> str:
    return _LEVEL_NAMES.get(record.levelname, record.levelname)


def _context(record: logging.LogRecord) -> str:
    """The connector and task a record is about, as Kafka Connect's `connector.context`."""
    connector = getattr(record, "connector", None)
    if not connector:
        return ""
    task = getattr(record, "task", None)
    return f"[{connector}] " if task is None else f"[{connector}|task-{task}] "
