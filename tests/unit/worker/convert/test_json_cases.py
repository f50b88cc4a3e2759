"""JsonConverter: its tables, recorded from Kafka Connect 4.3.1, played alone, as one of many, and all in one column."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support import json_cases as cases
from tests.support.json_cases import Group

from wherry.contract.errors import ConfigError
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.json_read import BISECT_ROWS_MIN

pytestmark = pytest.mark.usefixtures("both_ways")

READ = cases.groups("read")
WRITE = cases.groups("write")
REFUSED = json.loads((cases.FOLDER / "refused.json").read_text())
MANY = BISECT_ROWS_MIN + 8
NUMBER = re.compile(r"\d+\.\d+E-?\d+")
UNFIT = re.compile(r'"type":"(string|double|bytes|boolean|int8|int16|int32)","name":"org.apache.kafka.connect.data.')


def wanted(row: list[Any]) -> dict[str, Any]:
    return row[1] if isinstance(row[1], dict) and "error" in row[1] else {"schema": row[1], "value": row[2]}


def reason(row: list[Any], real: dict[str, Any], mine: dict[str, Any]) -> str | None:
    """Why a difference is accepted; None when it is a fault."""
    text = row[0] if isinstance(row[0], str) else ""
    if row[0] is None and mine.get("value", 0) is None:
        return "null stands in a column, which has a schema"
    if "Decimal" in text and '"scale":"2"' in text and '"type":"bytes"' not in text:
        return "a decimal that isn't held in bytes is what its type says"
    if "Decimal" in text:
        return decimal_reason(real, mine)
    if UNFIT.search(text) and "error" in real:
        return "a date that isn't held in an integer is what its type says"
    if "Float" in json.dumps(real.get("value")) and same_floats(real, mine):
        return "Java 17 prints some floats with a digit more than is needed"
    if '"error"' in json.dumps(mine) and "[null,null]" in text:
        return "the keys of an Arrow map can't be null"
    return None


def decimal_reason(real: dict[str, Any], mine: dict[str, Any]) -> str | None:
    if "error" in mine:
        told = mine["error"][1]
        if "more than" in told and "error" not in real:
            return "a decimal that its schema has no place for fails instead of breaking its sink"
        if "scale parameter not found" in told:
            return "a schema without a good scale is told at once"
        return None
    if Decimal(real["value"]["decimal"]) == Decimal(mine["value"]["decimal"]):
        return "a decimal has the scale of its schema, and the scale is written as a number"
    return None


def same_floats(real: dict[str, Any], mine: dict[str, Any]) -> bool:
    found = [each["value"].get("Float") for each in (real, mine)]
    return None not in found and np.float32(found[0]) == np.float32(found[1])


def differences(group: Group, found: list[dict[str, Any]]) -> list[str]:
    return [
        f"{row[0]}\nwanted {real}\ngot    {mine}"
        for row, mine in zip(group.rows, found, strict=True)
        if (real := wanted(row)) != mine and reason(row, real, mine) is None
    ]


def converter(settings: dict[str, str]) -> JsonConverter:
    return JsonConverter(settings, is_key=False)


@pytest.mark.parametrize("group", READ, ids=str)
def test_a_record_is_read_as_in_kafka_connect(group: Group) -> None:
    this = converter(group.settings)
    found = []
    for row in group.rows:
        found += cases.outcomes(this.to_connect("t", pa.array([cases.bytes_of(row[0])], pa.binary())), 1)
    assert not differences(group, found), "\n".join(differences(group, found))


@pytest.mark.parametrize("group", READ, ids=str)
def test_many_of_the_same_fare_as_one(group: Group) -> None:
    this = converter(group.settings)
    found = []
    for row in group.rows:
        column = pa.array([cases.bytes_of(row[0])] * MANY, pa.binary())
        outcomes = cases.outcomes(this.to_connect("t", column), MANY)
        assert all(outcome == outcomes[0] for outcome in outcomes)
        found.append(outcomes[-1])
    assert not differences(group, found), "\n".join(differences(group, found))


@pytest.mark.parametrize("group", READ, ids=str)
def test_records_in_one_column_do_not_touch_one_another(group: Group) -> None:
    column = pa.array([cases.bytes_of(row[0]) for row in group.rows], pa.binary())
    found = cases.outcomes(converter(group.settings).to_connect("t", column), len(column))
    for row, outcome in zip(group.rows, found, strict=True):
        if outcome.get("value", 0) is None and wanted(row).get("value", 0) is None:
            # A null without a schema belongs to what stands beside it.
            outcome["schema"] = wanted(row)["schema"]
    assert not differences(group, found), "\n".join(differences(group, found))


@pytest.mark.parametrize("rows", [1, MANY], ids=["one row", "many rows"])
@pytest.mark.parametrize("group", WRITE, ids=str)
def test_a_value_is_written_as_in_kafka_connect(group: Group, rows: int) -> None:
    this = JsonConverter(group.settings, is_key=False)
    wrong = []
    for schema, value, real in group.rows:
        if unheld(schema, value):
            continue
        column = cases.column_of(schema, value, rows)
        converted = this.from_connect("t", *column)
        mine = [{"error": [failure.error.java_class, str(failure.error)]} for failure in converted.failures]
        mine += [None if data is None else data.decode() for data in converted.runs[0].column.to_pylist()]
        assert len(mine) == rows
        if set(map(str, mine)) != {str(real)} and not same_text(real, mine[-1]):
            wrong.append(f"{schema} {value}\nwanted {real}\ngot    {mine[-1]}")
    assert not wrong, "\n".join(wrong)


def unheld(schema: dict[str, Any] | None, value: Any) -> bool:
    """Whether no column can hold such a value, so that there is nothing to compare."""
    if schema is None:
        return isinstance(value, dict) and any(not isinstance(key, str) for key, _ in value.get("map", ()))
    if value is None:
        # A null in a column is a tombstone. Kafka Connect writes one only where there is no schema either.
        return True
    if isinstance(value, list):
        return any(unheld(schema["items"], item) for item in value)
    if not isinstance(value, dict):
        return False
    if "decimal" in value:
        return Decimal(value["decimal"]).as_tuple().exponent != -int(schema["parameters"]["scale"])
    if schema.get("name", "").endswith(".Date"):
        return bool(value["ms"] % cases.DAY_MS)
    return schema.get("name", "").endswith(".Time") and not 0 <= value["ms"] < cases.DAY_MS


def same_text(real: Any, mine: Any) -> bool:
    """Whether two texts differ only in how Java 17 and 19 print a number."""
    if not isinstance(real, str) or not isinstance(mine, str) or NUMBER.sub("#", real) != NUMBER.sub("#", mine):
        return False
    pairs = zip(NUMBER.findall(real), NUMBER.findall(mine), strict=True)
    return all(float(one) == float(other) or np.float32(one) == np.float32(other) for one, other in pairs)


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_settings_that_kafka_connect_refuses_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message.rstrip(": "))):
        converter(settings)
