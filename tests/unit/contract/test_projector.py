"""SchemaProjector: what Kafka Connect's own class answered, for single values and for columns alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DataError, Kind, Schema
from wherry.contract.payload import from_payload, to_payload
from wherry.contract.projector import SchemaProjectorError, project, project_column
from wherry.contract.schema import field_of, from_form
from wherry.worker.convert.json import JsonConverter

CASES = json.loads((Path(__file__).parents[2] / "cases/projector.json").read_text())
PLAIN = {"replace.null.with.default": "false"}


def told(error: DataError, case: dict[str, Any]) -> None:
    assert error.java_class == "org.apache.kafka.connect.errors.SchemaProjectorException"
    assert str(error).startswith(case["error"])
    assert str(error).endswith(case.get("cause", case["error"]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_value_is_read_as_the_real_class_does(case: dict[str, Any]) -> None:
    source, target = from_form(case["source"]), from_form(case["target"])
    value = from_payload(source, case["value"])
    if "error" in case:
        with pytest.raises(SchemaProjectorError) as refused:
            project(source, value, target)
        told(refused.value, case)
        return
    found = project(source, value, target)
    payload = None if found is None else to_payload(target, found, defaults=False)
    wanted = case["projected"]
    if target.kind is Kind.FLOAT32 and isinstance(wanted, float):
        # As Java 17 prints a float, which is not always the shortest.
        assert pa.scalar(payload, pa.float32()) == pa.scalar(wanted, pa.float32())
    else:
        assert payload == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("extra", [0, 2])
def test_a_column_is_read_as_the_real_class_does(case: dict[str, Any], extra: int) -> None:
    """`extra` rows of null stand before and behind where null may stand; a slice takes them out of sight again."""
    source, target = field_of(case["source"]), field_of(case["target"])
    payloads = [case["value"]] * 2
    if source.nullable:
        payloads = [None] * extra + payloads + [None] * extra
    column = column_of(case["source"], payloads)
    if "error" in case:
        with pytest.raises(SchemaProjectorError) as refused:
            project_column(source, column, target)
        told(refused.value, case)
        return
    whole = project_column(source, column, target)
    cut = extra if source.nullable else 0
    assert whole.type.equals(target.type, check_metadata=True)
    whole.validate(full=True)
    sliced = project_column(source, column.slice(cut, 2), target)
    for found in (whole.slice(cut, 2), sliced):
        assert [payload_of(target, found, row) for row in range(2)] == [expected(case)] * 2


def expected(case: dict[str, Any]) -> Any:
    wanted = case["projected"]
    single = case["target"]["type"] == "float" and isinstance(wanted, float)
    return pa.scalar(wanted, pa.float32()).as_py() if single else wanted


def column_of(schema: dict[str, Any], payloads: list[Any]) -> pa.Array:
    texts = [json.dumps({"schema": schema, "payload": payload}).encode() for payload in payloads]
    converted = JsonConverter(PLAIN, is_key=False).to_connect("t", pa.array(texts, pa.binary()))
    assert not converted.failures
    return converted.runs[0].column


def payload_of(field: pa.Field, column: pa.Array, row: int) -> Any:
    if not column[row].is_valid:
        return None
    if field.type == pa.float32():
        return column[row].as_py()
    converted = JsonConverter(PLAIN, is_key=False).from_connect("t", field, column.slice(row, 1))
    assert not converted.failures
    return json.loads(converted.runs[0].column[0].as_py())["payload"]


def test_what_has_no_schema_is_refused() -> None:
    with pytest.raises(DataError, match="has no schema"):
        project_column(pa.field("v", JSON_TYPE), pa.nulls(1, JSON_TYPE), pa.field("v", pa.int8()))


NUMBERS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64)
ARROW = dict(zip(NUMBERS, (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()), strict=True))


@given(
    st.lists(st.none() | st.integers(-128, 127), min_size=1, max_size=5),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_columns_and_single_values_are_read_alike(
    values: list[int | None], before: Kind, after: Kind, optional: bool, default: bool
) -> None:
    inner = Schema(after, optional=optional, **({"default": 5} if default else {}))  # type: ignore[arg-type]
    source = Schema(Kind.ARRAY, value=Schema(before, optional=True))
    target = Schema(Kind.ARRAY, value=inner)
    metadata = {"connect.default": "5"} if default else None
    item = pa.field("item", ARROW[after], nullable=optional, metadata=metadata)
    plain = [None if value is None else (float(value) if before.rank > 3 else value) for value in values]
    found: list[Any] = []
    for read in (
        lambda: project(source, plain, target),
        lambda: project_column(
            pa.field("v", pa.list_(pa.field("item", ARROW[before]))),
            pa.array([plain], pa.list_(ARROW[before])),
            pa.field("v", pa.list_(item)),
        ).to_pylist()[0],
    ):
        try:
            found.append(read())
        except SchemaProjectorError as error:
            found.append(str(error))
    assert found[0] == found[1]
