"""The author's API: a connector is a class of these, its process one call of `serve`. See sdk/python/README.md."""

from __future__ import annotations

import os

# Arrow takes its allocator when it is loaded: one heap for all a sidecar holds is smaller than two.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, TIMESTAMP_TYPE, RowError
from wherry.contract.config import Secret
from wherry.contract.description import SinkClass, SourceClass
from wherry.contract.errors import (
    AuthError,
    ConfigError,
    ConnectorBugError,
    ErrorClass,
    FencedError,
    OffsetLostError,
    RecordRejectedError,
    SchemaError,
    ThrottledError,
    TransientError,
    WherryError,
)
from wherry.contract.position import Position
from wherry.contract.target import Target
from wherry.sdk.config import Config, key
from wherry.sdk.plan import Offsets, Plan, Split, Task, Work
from wherry.sdk.plugin import Context, Findings
from wherry.sdk.records import Batch, CaughtUp, Mark, Record
from wherry.sdk.server import serve
from wherry.sdk.sink import Flushed, Sink, SinkTask
from wherry.sdk.source import Source
from wherry.sdk.transform import Transform, Transformed

__all__ = [
    "HEADERS_TYPE",
    "JSON_TYPE",
    "TIMESTAMP_TYPE",
    "AuthError",
    "Batch",
    "CaughtUp",
    "Config",
    "ConfigError",
    "ConnectorBugError",
    "Context",
    "ErrorClass",
    "FencedError",
    "Findings",
    "Flushed",
    "Mark",
    "OffsetLostError",
    "Offsets",
    "Plan",
    "Position",
    "Record",
    "RecordRejectedError",
    "RowError",
    "SchemaError",
    "Secret",
    "Sink",
    "SinkClass",
    "SinkTask",
    "Source",
    "SourceClass",
    "Split",
    "Target",
    "Task",
    "ThrottledError",
    "Transform",
    "Transformed",
    "TransientError",
    "WherryError",
    "Work",
    "key",
    "serve",
]
