"""Each record of a random case alone comes to the same as all of them together: batches are only a way to be quick.

The cases are those of the differential peer, which compares with Kafka Connect; this compares us with ourselves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from tests.peer.differential.cases import Case, Record, cases

from wherry.contract.batch import HEADERS_TYPE, TIMESTAMP_TYPE, Batch, Constants
from wherry.contract.errors import ConfigError
from wherry.contract.java_text import java_texts
from wherry.contract.schema import schema_of
from wherry.worker.convert.registry import converters_of
from wherry.worker.convert.step import Step, ToConnect, WriteHeaders
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

SEED, COUNT, RECORDS = 7, 120, 15
STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING}
SINKS = [case for case in cases(SEED, COUNT, RECORDS) if case.is_sink]


def steps_of(case: Case) -> tuple[Step, ...]:
    converters = converters_of(case.config, WORKER)
    return ToConnect(converters), Transforms(chain_of(case.config, is_sink=True)), WriteHeaders(converters)


def batch_of(records: Sequence[Record], offset: int) -> Batch:
    columns = {
        "value": pa.array([record.value for record in records], pa.binary()),
        "key": pa.array([record.key for record in records], pa.binary()),
        "headers": pa.array([list(record.headers) or None for record in records], HEADERS_TYPE),
        "timestamp": pa.array([record.timestamp_ms for record in records], pa.int64()).cast(TIMESTAMP_TYPE),
    }
    records_of = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return Batch(records_of, Constants("d1", 0, offset))


def outcome(case: Case, batches: Sequence[Batch]) -> Counter[str]:
    steps, found = steps_of(case), Counter[str]()
    for batch in batches:
        parts = [(batch, batch)]
        for step in steps:
            done = [step.apply(*part) for part in parts if part[0].num_rows]
            for failure in (failure for stepped in done for failure in stepped.failures):
                offset = failure.raw.column("offset")
                assert offset is not None
                found[f"{offset[failure.row]} {failure.stage} {failure.executing} {failure.error}"] += 1
            parts = [piece for stepped in done for piece in stepped.pieces]
        found.update(row for part, _ in parts if part.num_rows for row in shown(part))
    return found


def shown(batch: Batch) -> Iterator[str]:
    rows = range(batch.num_rows)
    topics, headers = batch.column("topic"), batch.headers
    sides = [side_of(batch, "key"), side_of(batch, "value")]
    for row in rows:
        topic = None if topics is None else topics[row]
        yield f"{topic} {[side[row] for side in sides]} {(headers[row].as_py() if headers is not None else None) or []}"


def side_of(batch: Batch, name: str) -> list[str | None]:
    """The texts of values with their schemas; a null has none."""
    column = batch.stored(name)
    if column is None:
        return [None] * batch.num_rows
    field = batch.records.schema.field(name)
    loose = pa.types.is_null(field.type) or isinstance(field.type, pa.BaseExtensionType)
    schema = "" if loose else json.dumps(schema_of(field))
    return [
        None if null else f"{schema} {text}"
        for null, text in zip(column.is_null().to_pylist(), java_texts(column), strict=True)
    ]


@pytest.mark.parametrize("case", SINKS, ids=lambda case: str(case.number))
def test_records_alone_come_to_the_same_as_together(case: Case) -> None:
    try:
        steps_of(case)
    except ConfigError:
        return  # a setting that is wrong: nothing runs
    if any(key.endswith(".type") and f"{key[:-5]}.fields" not in case.config and "ValueToKey" in value
           for key, value in case.config.items()):  # fmt: skip
        return  # refused before anything runs
    together = outcome(case, [batch_of(case.records, 0)])
    alone = outcome(case, [batch_of([record], offset) for offset, record in enumerate(case.records)])
    assert together == alone
