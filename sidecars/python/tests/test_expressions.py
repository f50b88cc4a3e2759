"""Expressions over records and over columns; what fails is the record and not its neighbours."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Constants, of_value
from wherry.contract.errors import ConfigError
from wherry.sdk import Record
from wherry.sdk.testing import run_transform, sidecar
from wherry_python.expressions import PythonTransform


def run(given: Any, **config: str) -> Any:
    keys = {key.replace("__", "."): text for key, text in config.items()}
    records = [Record(value) for value in given] if isinstance(given, list) else [given]
    return run_transform(PythonTransform, keys, records)


def values(made: Any) -> list[Any]:
    return [record.value for record in made.records]


def test_the_expression_makes_the_value_and_the_filter_leaves_records_out() -> None:
    made = run(
        [{"a": 1}, {"a": 2}, {"a": 3}], expression="{**value, 'b': math.sqrt(value['a'])}", filter="value['a'] != 2"
    )
    assert values(made) == [{"a": 1, "b": 1.0}, {"a": 3, "b": 3**0.5}]
    assert made.lineage == [0, 2]


def test_key_and_topic_have_expressions_of_their_own() -> None:
    record = Record({"id": 7}, key="k", topic="t", headers=[("h", b"x")], timestamp_ms=5, kafka_partition=3)
    made = run_transform(
        PythonTransform,
        {
            "expression": "[timestamp_ms, partition, dict(headers)['h'].decode()]",
            "key.expression": "f\"{key}-{value['id']}\"",
            "topic.expression": "topic.upper()",
        },
        [record],
    )
    (found,) = made.records
    assert (found.value, found.key, found.topic, found.headers) == ([5, 3, "x"], "k-7", "T", [("h", b"x")])


def test_names_are_seen_in_comprehensions_and_lambdas() -> None:
    assert values(
        run([[1, 2]], expression="[x for x in value if (lambda y: y in value)(x) and re.match('.', key or 'a')]")
    ) == [[1, 2]]


def test_what_an_expression_raises_is_the_failure_of_its_record() -> None:
    made = run([{"a": 1}, {}, {"a": "x"}], expression="value['a'] + 1")
    assert values(made) == [2]
    assert [(error.row, error.reason, error.message) for error in made.row_errors] == [
        (1, "EXPRESSION", "KeyError: 'a'"),
        (2, "EXPRESSION", 'TypeError: can only concatenate str (not "int") to str'),
    ]


def test_a_result_that_is_neither_text_bytes_nor_json_fails_its_record_alone() -> None:
    made = run([1, 2], expression="value if value == 1 else {1, 2}.__class__")
    assert values(made) == [1]
    assert [(error.row, error.reason) for error in made.row_errors] == [(1, "BAD_ROW")]


def test_a_topic_that_is_no_text_fails_the_record() -> None:
    assert "which is no text" in run([1], topic__expression="value").row_errors[0].message


KIND = pa.struct([pa.field("n", pa.int16()), pa.field("t", pa.string())])


def typed(*rows: Any) -> Any:
    return of_value(pa.array(rows, KIND), constants=Constants("t", 0, 5))


def test_a_schema_stays_while_the_fields_do() -> None:
    made = run(typed({"n": 1, "t": "a"}), expression="{**value, 'n': value['n'] + 1}")
    assert made.batches[0].value.type == KIND
    made = run(typed({"n": 1, "t": "a"}), expression="{'m': value['n']}")
    assert values(made) == [{"m": 1}]
    assert run(typed({"n": 1, "t": "a"}), expression="{**value, 'n': 'x'}").row_errors[0].reason == "BAD_ROW"


def test_columns_are_changed_by_arrow() -> None:
    made = run(
        typed({"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3, "t": "c"}),
        mode="arrow",
        filter="pc.not_equal(pc.struct_field(value, 'n'), 2)",
        expression="pc.utf8_upper(pc.struct_field(value, 't'))",
        topic__expression="pa.scalar('other')",
    )
    assert values(made) == ["A", "C"]
    assert made.lineage == [0, 2]
    assert {record.topic for record in made.records} == {"other"}


def test_records_that_fail_among_columns_are_found() -> None:
    rows = [{"n": row, "t": "x" if row in (3, 6) else str(row)} for row in range(9)]
    made = run(typed(*rows), mode="arrow", expression="pc.cast(pc.struct_field(value, 't'), pa.int32())")
    assert values(made) == [0, 1, 2, 4, 5, 7, 8]
    assert made.lineage == [0, 1, 2, 4, 5, 7, 8]
    assert [error.row for error in made.row_errors] == [3, 6]


def test_json_goes_through_columns_as_text_and_stays_json_where_it_is_only_filtered() -> None:
    made = run([{"a": 1}, {"a": 2}], mode="arrow", filter="pc.match_substring(value, '2')")
    assert values(made) == [{"a": 2}]


def test_columns_of_the_wrong_length_are_failures() -> None:
    made = run([1, 2], mode="arrow", expression="[1]")
    assert "expression must give an Arrow array of 1 rows, not a list" in made.row_errors[0].message


@pytest.mark.parametrize(
    ("config", "name", "told"),
    [
        ({"expression": "value +"}, "expression", "expression is no expression in Python: invalid syntax"),
        ({"filter": "x = 1"}, "filter", "filter is no expression in Python"),
        ({"imports": "nosuchmodule"}, "imports", "The module nosuchmodule can't be imported"),
        ({"mode": "fast"}, "mode", "String must be one of: row, arrow"),
    ],
)
def test_settings_that_can_not_work_are_told_by_validation(config: dict[str, str], name: str, told: str) -> None:
    with sidecar(PythonTransform) as client:
        found = client.validate_config("wherry.transforms.Python", config).errors
    assert list(found) == [name]
    assert told in found[name][0]


def test_settings_that_can_not_work_are_refused_when_they_are_taken() -> None:
    with pytest.raises(ConfigError), sidecar(PythonTransform, config={"expression": "value +"}):
        pass
