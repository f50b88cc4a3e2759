"""Wherry's own keys for records that fail: checked when a connector is created, shown only when they are given.

Kafka Connect's own `errors.*` keys are in `connectorkeys.py`. These begin with `wherry.`, so that a configuration which
uses them still runs on Kafka Connect, which passes over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wherry.contract.config import ConfigDef, ConfigKey, ConfigType, PatternValidator, RangeValidator
from wherry.contract.description import Role

STOP_FAILURES: Final = "wherry.errors.stop.failures"
STOP_RECORDS: Final = "wherry.errors.stop.records"
_STOP_RECORDS_DEFAULT: Final = 1_000
_QUEUE: Final = "wherry.errors.deadletterqueue."
_TOPIC: Final = r"[a-zA-Z0-9._-]{1,249}"

KEYS: Final = (
    ConfigKey(
        STOP_FAILURES,
        ConfigType.INT,
        "0",
        documentation="So many failed records among the last wherry.errors.stop.records fail the task; 0 never does.",
        validators=(RangeValidator(min=0),),
    ),
    ConfigKey(
        STOP_RECORDS,
        ConfigType.INT,
        str(_STOP_RECORDS_DEFAULT),
        documentation="Among how many records wherry.errors.stop.failures counts.",
        validators=(RangeValidator(min=1),),
    ),
)
SOURCE_KEYS: Final = (
    ConfigKey(
        f"{_QUEUE}topic.name",
        documentation="Topic for records of a source that cannot be delivered.",
        validators=(PatternValidator(_TOPIC),),
    ),
    ConfigKey(
        f"{_QUEUE}topic.replication.factor",
        ConfigType.SHORT,
        "3",
        documentation="Replication factor of that topic when it is created; -1 leaves it to the broker.",
    ),
    ConfigKey(
        f"{_QUEUE}context.headers.enable",
        ConfigType.BOOLEAN,
        "false",
        documentation="Whether such records get headers that tell what went wrong.",
    ),
)


def problems(config: Mapping[str, str | None], role: Role) -> dict[str, list[str]]:
    """What is wrong with these keys, by key; keys that are not given are left out."""
    keys = KEYS + (SOURCE_KEYS if role is Role.SOURCE else ())
    found: dict[str, list[str]] = {}
    for key in keys:
        if key.name in config:
            found[key.name] = list(ConfigDef((key,)).validate(config)[key.name])
    if role is Role.SINK:
        for name in config:
            if name.startswith(_QUEUE):
                found[name] = [f"{name} is for sources; a sink's key is {name.removeprefix('wherry.')}."]
    if not any(found.values()):
        failures = int(config.get(STOP_FAILURES) or 0)
        records = int(config.get(STOP_RECORDS) or _STOP_RECORDS_DEFAULT)
        if failures > records:
            found[STOP_FAILURES] = [
                f"{STOP_FAILURES}={failures} can never be reached among the last {records} records; "
                f"{STOP_RECORDS} must not be less."
            ]
    return {name: errors for name, errors in found.items() if errors}
