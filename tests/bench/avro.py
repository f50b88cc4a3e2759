"""The records in Avro, as a Confluent producer writes them: framed with the id of a schema that a registry holds.

Also what an application without an engine would do with them, decode record by record in Python: the yardstick of a
columnar decoder.
"""

from __future__ import annotations

import functools
import io
import json
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import fastavro
import httpx2
from confluent_kafka import Consumer, TopicPartition
from tests.bench import load
from tests.bench.processes import BenchError

MAGIC = b"\0"
REGISTER_SECONDS = 30.0
DECODER_SECONDS = 300.0
CONSUME_ROWS = 10_000
_TYPES = {"int64": "long", "int32": "int", "double": "double", "boolean": "boolean", "string": "string"}


def schema() -> dict[str, Any]:
    """The records' schema in Avro."""
    fields: list[dict[str, Any]] = []
    for field in load.RECORD_FIELDS:
        plain: Any = _TYPES[str(field["type"])]
        if field.get("name") == load.TIMESTAMP:
            plain = {"type": plain, "logicalType": "timestamp-millis"}
        fields.append({"name": field["field"], "type": ["null", plain] if field["optional"] else plain})
    return {"type": "record", "name": "Order", "namespace": "bench", "fields": fields}


def register(registry_url: str, topic: str) -> int:
    """Registers the schema for a topic's values; gives its id."""
    answer = httpx2.post(
        f"{registry_url}/subjects/{topic}-value/versions", json={"schema": json.dumps(schema())},
        timeout=REGISTER_SECONDS,
    )  # fmt: skip
    answer.raise_for_status()
    return int(answer.json()["id"])


def encoder(schema_id: int) -> Callable[[int], bytes]:
    """What makes the bytes of a record, by its index."""
    parsed = fastavro.parse_schema(schema())
    head = MAGIC + schema_id.to_bytes(4, "big")

    def encode(index: int) -> bytes:
        out = io.BytesIO()
        out.write(head)
        fastavro.schemaless_writer(out, parsed, json.loads(load.record(index)))
        return out.getvalue()

    return encode


def decode_in_python(bootstrap: str, topic: str, partitions: int, records: int) -> float:
    """Reads the topic with a process for each partition that decodes record by record; gives the records per second."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(partitions) as pool:
        work = functools.partial(_decode_partition, bootstrap, topic, records // partitions)
        spans = pool.map_async(work, range(partitions)).get(DECODER_SECONDS)
    return records / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def _decode_partition(bootstrap: str, topic: str, records: int, partition: int) -> tuple[float, float]:
    """Gives the times at which the first and the last record were decoded."""
    parsed = fastavro.parse_schema(schema())
    consumer = Consumer({**load.CLIENT, "bootstrap.servers": bootstrap, "group.id": "bench-decoder"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    begun, decoded = 0.0, 0
    deadline = time.time() + DECODER_SECONDS
    read = fastavro.schemaless_reader
    while decoded < records:
        if time.time() > deadline:
            raise BenchError(f"The Python decoder read {decoded} of {records} records in {DECODER_SECONDS:.0f} s.")
        for message in consumer.consume(CONSUME_ROWS, 1.0):
            value = message.value()
            if message.error() is None and value is not None:
                begun = begun or time.time()
                read(io.BytesIO(value[5:]), parsed)
                decoded += 1
    consumer.close()
    return begun, time.time()
