"""From a name or a description to generators.

Two forms of description are understood: an Avro record schema with the `arg.properties` of Confluent's Avro random
generator (options, range, iteration, length, regex of the form `Prefix_[1-9]{0,1}`), and a plain JSON object
`{"fields": {"id": {"type": "long", "sequence": true}, "city": {"options": ["Bern", "Fès"]}}}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from wherry.contract.errors import ConfigError
from wherry_datagen.generators import (
    Choices,
    Flags,
    Generator,
    Instants,
    Lists,
    Numbered,
    Numbers,
    Records,
    Sequenced,
    Sometimes,
    Texts,
    choices,
)

EPOCH_MS = 1_767_225_600_000  # 2026-01-01, so that the same seed gives the same moments

TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "int32": pa.int32(),
    "long": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
}
BOUNDS = {"int": (0, 2**31 - 1), "int32": (0, 2**31 - 1), "long": (0, 2**53), "int64": (0, 2**53)}
_NUMBERED = re.compile(r"(?P<prefix>[\w -]*)\[(?P<low>\d)-(?P<high>\d)\](?:\{(?P<least>\d),(?P<most>\d)\})?")

NAMED: Mapping[str, Records] = {
    "orders": Records(
        {
            "ordertime": Instants(EPOCH_MS, 1_000),
            "orderid": Sequenced(pa.int32()),
            "itemid": Numbered("Item_", 1, 999),
            "orderunits": Numbers(pa.float64(), 0.1, 10.0),
            "address": Records(
                {
                    "city": Numbered("City_", 1, 99),
                    "state": Numbered("State_", 1, 99),
                    "zipcode": Numbers(pa.int64(), 10_000, 99_999),
                }
            ),
        }
    ),
    "users": Records(
        {
            "registertime": Instants(EPOCH_MS, 60_000),
            "userid": Numbered("User_", 1, 9),
            "regionid": Numbered("Region_", 1, 9),
            "gender": choices(["MALE", "FEMALE", "OTHER"]),
        }
    ),
    "pageviews": Records(
        {
            "viewtime": Sequenced(pa.int64(), 1, 10),
            "userid": Numbered("User_", 1, 9),
            "pageid": Numbered("Page_", 10, 99),
        }
    ),
    "stock_trades": Records(
        {
            "side": choices(["BUY", "SELL"]),
            "quantity": Numbers(pa.int32(), 1, 5_000),
            "symbol": choices(["ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"]),
            "price": Numbers(pa.int32(), 5, 1_000),
            "account": choices(["ABC123", "LMN456", "XYZ789"]),
            "userid": Numbered("User_", 1, 9),
        }
    ),
    "readings": Records(
        {
            "id": Sequenced(pa.int64()),
            "at": Instants(EPOCH_MS, 100),
            "device": Numbered("device-", 1, 2_000),
            "temperature": Numbers(pa.float64(), -20.0, 45.0),
            "ok": Flags(),
        }
    ),
}


def named(name: str) -> Records:
    """A schema by name, any case.

    Raises:
        ConfigError: There is none.
    """
    if found := NAMED.get(name.lower()):
        return found
    raise ConfigError(
        f"Invalid value {name} for configuration schema: no schema of that name; use {', '.join(NAMED)}, or describe "
        "one with schema.string",
        key="schema",
    )


def described(text: str) -> Records:
    """A schema from a description.

    Raises:
        ConfigError: It is neither Avro nor the plain form, or asks for what can't be made.
    """
    try:
        told = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _wrong(f"this is not JSON: {error}") from None
    if not isinstance(told, dict):
        raise _wrong("expected a JSON object")
    if told.get("type") == "record":
        return _avro_record(told)
    fields = told.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise _wrong('expected an Avro record, or {"fields": {name: {"type": …}}}')
    return Records({name: _plain(name, field) for name, field in fields.items()})


def _plain(name: str, field: Any) -> Generator:
    if isinstance(field, str):
        field = {"type": field}
    if not isinstance(field, dict):
        raise _wrong(f"field {name}: expected a type, or an object with one")
    if "fields" in field:
        made: Generator = Records({inner: _plain(f"{name}.{inner}", told) for inner, told in field["fields"].items()})
    else:
        made = _value(name, field.get("type", "string"), field)
    share = field.get("nulls", 0)
    return Sometimes(made, float(share)) if share else made


def _value(name: str, kind: str, how: Mapping[str, Any]) -> Generator:
    """A field of a simple type; `how` holds options, min, max, sequence, start, step, length, prefix."""
    if kind not in TYPES:
        raise _wrong(f"field {name}: unknown type {kind}; use {', '.join(TYPES)}")
    arrow = TYPES[kind]
    if "options" in how:
        return _options(name, how["options"], arrow if "type" in how else None)
    if kind == "boolean":
        return Flags()
    if kind == "timestamp":
        return Instants(int(how.get("start", EPOCH_MS)), int(how.get("step", 1_000)))
    if kind in ("string", "bytes"):
        shortest, longest = _length(how.get("length"))
        if "max" in how:
            return Numbered(str(how.get("prefix", "")), int(how.get("min", 0)), int(how["max"]))
        return Texts(arrow, shortest, longest, str(how.get("prefix", "")))
    if how.get("sequence"):
        return Sequenced(arrow, int(how.get("start", 0)), int(how.get("step", 1)))
    low, high = BOUNDS.get(kind, (0.0, 1.0))
    return Numbers(arrow, how.get("min", low), how.get("max", high))


def _avro_record(told: Mapping[str, Any]) -> Records:
    return Records({field["name"]: _avro(field["name"], field["type"]) for field in told["fields"]})


def _avro(name: str, told: Any) -> Generator:
    if isinstance(told, list):
        others = [kind for kind in told if kind != "null"]
        if len(others) != 1:
            raise _wrong(f"field {name}: a union may have one type beside null")
        return Sometimes(_avro(name, others[0]))
    if isinstance(told, str):
        return _value(name, told, {})
    kind, how = told.get("type"), told.get("arg.properties", {})
    if isinstance(kind, dict | list):
        return _avro(name, kind)
    match kind:
        case "record":
            return _avro_record(told)
        case "enum":
            return choices(told["symbols"], pa.string())
        case "array":
            return Lists(_avro(name, told["items"]))
    if str(told.get("logicalType", "")).startswith("timestamp"):
        kind = "timestamp"
    return _from_arguments(name, str(kind), how)


def _from_arguments(name: str, kind: str, how: Mapping[str, Any]) -> Generator:
    if (iteration := how.get("iteration")) is not None and kind != "timestamp":
        return Sequenced(TYPES.get(kind, pa.int64()), int(iteration.get("start", 0)), int(iteration.get("step", 1)))
    if options := how.get("options"):
        return _options(name, options, TYPES.get(kind))
    if span := how.get("range"):
        return _value(name, kind, {"type": kind, "min": span["min"], "max": span["max"]})
    if pattern := how.get("regex"):
        return _numbered(name, pattern)
    return _value(name, kind, {"length": how["length"]} if "length" in how else {})


def _numbered(name: str, pattern: str) -> Numbered:
    match = _NUMBERED.fullmatch(pattern)
    if match is None:
        raise _wrong(
            f"field {name}: regex {pattern} can't be made; only a prefix and digits can, such as User_[1-9]{{0,1}}"
        )
    digits = int(match["most"] or 1)
    return Numbered(match["prefix"], int(match["low"]), int(match["high"] * digits))


def _options(name: str, values: Any, arrow: pa.DataType | None) -> Choices:
    if not isinstance(values, list) or not values:
        raise _wrong(f"field {name}: options must be a list that isn't empty")
    try:
        return choices(values, arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _wrong(f"field {name}: options don't fit together: {error}") from None


def _length(told: Any) -> tuple[int, int]:
    if isinstance(told, dict):
        return int(told["min"]), int(told["max"])
    return (int(told), int(told)) if told is not None else (5, 15)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"Invalid value for configuration schema.string: {what}", key="schema.string")
