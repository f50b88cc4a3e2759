"""Records of a registry: cut by the id of their schema, put back in order, each failing by itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE
from wherry.contract.errors import AuthError, ConfigError, ErrorClass, TransientError
from wherry.worker.convert.registered.avro import AvroConverter
from wherry.worker.convert.registered.client import SCHEMAS_KNOWN_MAX, UNKNOWN_FOR_S, Known, Registry, RegistrySettings

URL = {"schema.registry.url": "mock://registry"}


def converter(**config: str) -> AvroConverter:
    return AvroConverter(URL | {key.replace("_", "."): value for key, value in config.items()}, is_key=False)


def struct(**fields: pa.DataType) -> pa.Field:
    return pa.field("value", pa.struct([pa.field(name, kind) for name, kind in fields.items()]))


def written(this: AvroConverter, field: pa.Field, rows: list[Any]) -> list[bytes | None]:
    converted = this.from_connect("t", field, pa.array(rows, field.type))
    assert converted.failures == ()
    data: list[bytes | None] = converted.runs[0].column.to_pylist()
    return data


def test_rows_of_several_schemas_come_back_in_their_order() -> None:
    this = converter()
    one = written(this, struct(a=pa.int32()), [{"a": index} for index in range(20)])
    two = written(this, struct(a=pa.int32(), b=pa.string()), [{"a": index, "b": "x"} for index in range(20)])
    mixed: list[bytes | None] = [*one[:10], two[0], None, two[1], *one[10:], None, *two[2:]]
    converted = this.to_connect("t", pa.array(mixed, pa.binary()))
    assert converted.failures == ()
    assert [len(run.column) for run in converted.runs] == [10, 3, 11, 18]
    assert converted.runs[1].column.to_pylist() == [{"a": 0, "b": "x"}, None, {"a": 1, "b": "x"}]
    assert converted.runs[3].column.to_pylist()[-1] == {"a": 19, "b": "x"}


def test_poison_fails_alone_whatever_it_is() -> None:
    this = converter()
    good = written(this, struct(a=pa.int32()), [{"a": 1}, {"a": 2}, None])
    rows = [b"", good[0], b"\0\0\0\0", b"\1" + good[0][1:], good[2], b"\0\0\0\x09\x09x", good[0][:-1], good[1]]  # type: ignore[index]
    converted = this.to_connect("t", pa.array(rows, pa.binary()))
    assert [failure.row for failure in converted.failures] == [0, 2, 3, 5, 6]
    assert [run.column.to_pylist() for run in converted.runs] == [[{"a": 1}, None, {"a": 2}]]
    messages = [str(failure.error) for failure in converted.failures]
    assert messages[0].startswith("Failed to deserialize data for topic t to Avro: Unknown magic byte!")
    assert "schema 2313" in messages[3]
    assert "404" in messages[3]
    assert "it ends too early" in messages[4]


def test_a_column_of_tombstones_needs_no_registry() -> None:
    this = AvroConverter({"schema.registry.url": "http://127.0.0.1:1"}, is_key=True)
    nulls = pa.nulls(3, pa.binary())
    assert this.to_connect("t", nulls).runs[0].column.null_count == 3
    assert (
        this.from_connect("t", struct(a=pa.int8()), pa.nulls(2, struct(a=pa.int8()).type)).runs[0].column.null_count
        == 2
    )


def test_a_registry_that_does_not_answer_is_tried_again_later() -> None:
    this = AvroConverter({"schema.registry.url": "http://user:secret@127.0.0.1:1"}, is_key=False)
    with pytest.raises(TransientError, match=r"The schema registry at http://127.0.0.1:1 doesn't answer") as caught:
        this.to_connect("t", pa.array([b"\0\0\0\0\1\2"], pa.binary()))
    assert caught.value.error_class is ErrorClass.TRANSIENT
    assert "secret" not in str(caught.value)


def test_a_row_that_does_not_fit_the_latest_schema_fails_alone() -> None:
    this = converter(use_latest_version="true")
    writer = converter()
    writer._registry = this._registry
    field = struct(a=pa.int32())
    registry = this._registry
    registry._client().register_schema(
        "t-value", _schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
    )
    converted = this.from_connect("t", field, pa.array([{"a": 1}, {"a": None}, None, {"a": 3}], field.type))
    assert [failure.row for failure in converted.failures] == [1]
    assert "value.a: null value for a required field" in str(converted.failures[0].error)
    assert [None if data is None else data[5:] for data in converted.runs[0].column.to_pylist()] == [b"\2", None, b"\6"]


def test_a_schema_that_must_not_be_registered_and_is_not_there_fails_the_rows() -> None:
    this = converter(auto_register_schemas="false")
    converted = this.from_connect("t", struct(a=pa.int32()), pa.array([{"a": 1}, None], struct(a=pa.int32()).type))
    assert [failure.row for failure in converted.failures] == [0]
    assert "404" in str(converted.failures[0].error)
    assert converted.runs[0].column.to_pylist() == [None]


def test_values_without_a_schema_are_refused_in_a_sentence() -> None:
    texts = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(["1"], pa.string()))
    [failure] = converter().from_connect("t", pa.field("value", JSON_TYPE), texts).failures
    assert "without a schema can't be written as Avro" in str(failure.error)


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("TopicNameStrategy", "t-key"), ("RecordNameStrategy", "x.R"), ("TopicRecordNameStrategy", "t-x.R")],
)
def test_subjects_are_named_by_strategy(strategy: str, subject: str) -> None:
    named = f"io.confluent.kafka.serializers.subject.{strategy}"
    settings = RegistrySettings.of(URL | {"key.subject.name.strategy": named}, is_key=True)
    assert settings.subject("t", "x.R") == subject


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({}, "schema.registry.url"),
        (URL | {"value.subject.name.strategy": "Mine"}, "value.subject.name.strategy"),
    ],
)
def test_settings_that_cannot_be_used_are_told_by_key(config: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RegistrySettings.of(config, is_key=False)
    assert caught.value.key == key


class Answering:
    """A client of which one call is looked at."""

    def __init__(self, status: int) -> None:
        self.status, self.calls = status, 0

    def get_schema(self, *_: Any) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        self.calls += 1
        raise SchemaRegistryError(self.status, self.status * 100, "no")


@pytest.mark.parametrize(("status", "error"), [(401, AuthError), (503, TransientError), (429, TransientError)])
def test_what_the_registry_answers_decides_what_is_done(status: int, error: type[Exception]) -> None:
    registry = Registry(RegistrySettings.of(URL, is_key=False))
    registry._made = Answering(status)
    with pytest.raises(error):
        registry.schema(1, "s")


def test_an_unknown_id_is_asked_for_again_only_after_a_while() -> None:
    now = [0.0]
    registry = Registry(RegistrySettings.of(URL, is_key=False), clock=lambda: now[0])
    registry._made = client = Answering(404)
    now[0] = 1.0
    for _ in range(5):
        with pytest.raises(Exception, match="404"):
            registry.schema(1, "s")
    assert client.calls == 1
    now[0] += UNKNOWN_FOR_S
    with pytest.raises(Exception, match="404"):
        registry.schema(1, "s")
    assert client.calls == 2


def test_ten_thousand_schemas_are_not_all_kept() -> None:
    known: Known[int, int] = Known()
    for number in range(10_000):
        known.get(number, lambda: 0)
    assert len(known) == SCHEMAS_KNOWN_MAX
    assert known.get(9_999, lambda: 1) == 0
    assert known.get(0, lambda: 1) == 1


def _schema(text: str) -> Any:
    from confluent_kafka.schema_registry import Schema

    return Schema(text, "AVRO")
