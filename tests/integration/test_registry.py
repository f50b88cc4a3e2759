"""Converters against a real schema registry: what one writes another reads, and what it refuses fails the rows."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from wherry.coordinator.dev.registry import LocalRegistry
from wherry.worker.convert import Converter
from wherry.worker.convert.registry import factory_of

CLASSES = (
    "io.confluent.connect.avro.AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
)


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


def made(class_name: str, registry: LocalRegistry, **config: str) -> Converter:
    factory = factory_of(class_name)
    assert factory is not None
    settings = {"schema.registry.url": registry.url} | {key.replace("_", "."): value for key, value in config.items()}
    converter: Converter = factory(settings, is_key=False)
    return converter


def column(**fields: list[Any]) -> tuple[pa.Field, pa.Array]:
    records = pa.StructArray.from_arrays([pa.array(values) for values in fields.values()], names=list(fields))
    return pa.field("value", records.type), records


@pytest.mark.parametrize("class_name", CLASSES)
def test_what_one_converter_writes_another_reads(class_name: str, registry: LocalRegistry, topic: str) -> None:
    field, rows = column(a=[1, 2, 3], b=["x", "é", ""])
    written = made(class_name, registry).from_connect(topic, field, rows)
    assert written.failures == ()
    read = made(class_name, registry).to_connect(topic, written.runs[0].column)
    assert read.failures == ()
    assert read.runs[0].column.to_pylist() == rows.to_pylist()
    assert (read.runs[0].field.metadata or {}).get(b"connect.version") in {b"1", None}


@pytest.mark.parametrize("class_name", CLASSES)
def test_an_id_that_nobody_has_fails_its_row_alone(class_name: str, registry: LocalRegistry, topic: str) -> None:
    field, rows = column(a=[1])
    [good] = made(class_name, registry).from_connect(topic, field, rows).runs[0].column.to_pylist()
    data = pa.array([b"\0\x7f\xff\xff\xff\0", good], pa.binary())
    read = made(class_name, registry).to_connect(topic, data)
    assert [failure.row for failure in read.failures] == [0]
    assert "404" in str(read.failures[0].error)
    assert read.runs[0].column.to_pylist() == [{"a": 1}]


def test_a_schema_that_is_not_compatible_fails_the_rows(registry: LocalRegistry, topic: str) -> None:
    converter = made(CLASSES[0], registry)
    converter.from_connect(topic, *column(a=[1]))
    httpx2.put(f"{registry.url}/config/{topic}-value", json={"compatibility": "BACKWARD"}).raise_for_status()
    field = pa.field("value", pa.struct([pa.field("z", pa.string(), nullable=False)]))
    [failure] = converter.from_connect(topic, field, pa.array([{"z": "x"}], field.type)).failures
    assert failure.error.reason == "INCOMPATIBLE_SCHEMA"
    assert "409" in str(failure.error)


def test_a_schema_finds_its_references_in_the_registry(registry: LocalRegistry, topic: str) -> None:
    inner = '{"type":"record","name":"x.Inner","fields":[{"name":"n","type":"int"}]}'
    outer = '{"type":"record","name":"x.Outer","fields":[{"name":"i","type":"x.Inner"}]}'
    subjects = f"{registry.url}/subjects"
    httpx2.post(f"{subjects}/inner-{topic}/versions", json={"schema": inner}).raise_for_status()
    reference = {"name": "x.Inner", "subject": f"inner-{topic}", "version": 1}
    answer = httpx2.post(f"{subjects}/{topic}-value/versions", json={"schema": outer, "references": [reference]})
    number = answer.raise_for_status().json()["id"]
    data = pa.array([b"\0" + number.to_bytes(4, "big") + b"\x0a"], pa.binary())
    read = made(CLASSES[0], registry).to_connect(topic, data)
    assert read.failures == ()
    assert read.runs[0].column.to_pylist() == [{"i": {"n": 5}}]


def test_records_are_written_with_the_latest_schema_when_asked(registry: LocalRegistry, topic: str) -> None:
    schema = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"int","default":7}]}'
    httpx2.post(f"{registry.url}/subjects/{topic}-value/versions", json={"schema": schema}).raise_for_status()
    converter = made(CLASSES[0], registry, use_latest_version="true", auto_register_schemas="false")
    written = converter.from_connect(topic, *column(a=[1]))
    assert converter.to_connect(topic, written.runs[0].column).runs[0].column.to_pylist() == [{"a": 1, "b": 7}]
