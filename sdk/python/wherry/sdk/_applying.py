"""One Apply stream: frames to the author's transformation, answers back.

Invariant: each BATCH frame is answered once, in order, and each row of it is answered for:
something came from it, it failed, or it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from wherry.connector.v1 import common_pb2, transform_pb2
from wherry.contract import to_proto
from wherry.contract.batch import JSON_TYPE, KEY, VALUE, RowError, mark_only
from wherry.contract.batch import Batch as ContractBatch
from wherry.contract.errors import ConnectorBugError, ErrorClass, RecordRejectedError, WherryError
from wherry.contract.frame import Encoding, FrameReader, FrameWriter
from wherry.contract.limits import Limits
from wherry.contract.wire import WireFrame
from wherry.sdk import _columns
from wherry.sdk._conversation import Conversation
from wherry.sdk.records import Batch, Record
from wherry.sdk.transform import Transform, Transformed

_NO_SCHEMA: Final = frozenset({JSON_TYPE, pa.string(), pa.binary(), pa.null()})
# New rows of an answer, with the rows they came from; None for each from that of its own index.
_Part = tuple[ContractBatch, Sequence[int] | None]


class Applying(Conversation[transform_pb2.ApplyRequest | WireFrame, transform_pb2.ApplyResponse]):
    """Serves one Apply stream."""

    def __init__(
        self, transform: Transform[Any], opening: transform_pb2.ApplyOpen, limits: Limits, encoding: Encoding
    ) -> None:
        super().__init__(transform, f"apply {opening.task}")
        self._transform = transform
        self._opening = opening
        self._limits = limits
        self._encoding = encoding
        self._reader = FrameReader(body_bytes_max=limits.row_bytes_max + limits.message_bytes_max)
        # Half of a message is left for the lineage.
        self._writer = FrameWriter(encoding, message_bytes_max=limits.message_bytes_max // 2)

    def beat(self, heartbeat: common_pb2.Heartbeat) -> transform_pb2.ApplyResponse:
        """Returns the answer that carries a heartbeat."""
        return transform_pb2.ApplyResponse(heartbeat=heartbeat)

    def receive(self, request: transform_pb2.ApplyRequest | WireFrame) -> None:
        """Decodes a frame."""
        if isinstance(request, WireFrame):
            batch = self._reader.feed(request)
            if batch is not None and batch.num_rows:
                self._incoming.put((request.header.seq, Batch.of(batch)))

    # The author's thread.

    def open(self) -> None:
        """Opens the transformation."""
        self._transform.open(self._opening.task)
        credit = common_pb2.Credit(frames=self._limits.frames_unacked_max, bytes=self._limits.bytes_unacked_max)
        opened = transform_pb2.ApplyOpened(encoding=int(self._encoding), credit=credit)  # type: ignore[arg-type]
        self._outgoing.put(transform_pb2.ApplyResponse(opened=opened))

    def work(self, message: tuple[int, Batch]) -> None:
        """Answers a frame."""
        self._answer(*message)

    def _answer(self, seq: int, batch: Batch) -> None:
        parts, errors = apply(self._transform, batch)
        _check(parts, errors, batch.num_rows)
        messages = [
            message for part, lineage in parts or [(mark_only(), None)] for message in self._part(part, lineage)
        ]
        messages[-1].row_errors.extend(map(to_proto.row_error, errors))
        messages[-1].answers_seq = seq
        for message in messages:
            self._outgoing.put(transform_pb2.ApplyResponse(frame=message))

    def _part(self, part: ContractBatch, lineage: Sequence[int] | None) -> list[transform_pb2.TransformedFrame]:
        frames = self._writer.wire(replace(part, marks=(), row_errors=()))
        messages = [transform_pb2.TransformedFrame(frame=frame.message()) for frame in frames]
        if lineage is not None:
            messages[-1].lineage.extend(lineage)
        return messages


def apply(transform: Transform[Any], batch: Batch) -> tuple[list[_Part], list[RowError]]:
    """Has the author's code transform a batch.

    Returns:
        The new rows, as batches of one schema each, and the rows that failed.
    """
    answer = transform.transform_batch(batch)
    if answer is NotImplemented:
        return _apply_rows(transform, batch)
    if isinstance(answer, Transformed):
        parts: list[_Part] = [(answer.batch, [int(row) for row in answer.lineage])] if answer.batch.num_rows else []
        return parts, list(answer.row_errors)
    if answer.num_rows != batch.num_rows:
        raise ConnectorBugError(
            f"The transformation made {answer.num_rows} rows of {batch.num_rows} without saying which came from which; "
            "Transformed says it.",
            reason="BAD_LINEAGE",
        )
    return [(answer, None)], []


def _apply_rows(transform: Transform[Any], batch: Batch) -> tuple[list[_Part], list[RowError]]:
    made: list[Record] = []
    lineage: list[int] = []
    errors: list[RowError] = []
    schemas = [_schema(batch.value), None if batch.key is None else _schema(batch.key)]
    for row, record in enumerate(_columns.rows_of(batch)):
        record.schema, record.key_schema = schemas
        try:
            answer = transform.transform_record(record)
            several = [] if answer is None else [answer] if isinstance(answer, Record) else list(answer)
            for each in several:
                _check_fields(each)
        except RecordRejectedError as error:
            errors.append(RowError.of(row, error))
        else:
            made += several
            lineage += [row] * len(several)
    built, unfit = _built(made)
    if unfit:
        bad = {lineage[place]: error for place, error in reversed(unfit.items())}
        kept = [place for place, row in enumerate(lineage) if row not in bad]
        made, lineage = [made[place] for place in kept], [lineage[place] for place in kept]
        errors += [RowError(row, ErrorClass.SCHEMA, "BAD_ROW", message=str(error)) for row, error in bad.items()]
        built, _ = _built(made)
    parts: list[_Part] = []
    start = 0
    for part in built:
        parts.append((_with_fields(part, batch), lineage[start : start + part.num_rows]))
        start += part.num_rows
    if len(parts) == 1 and lineage == list(range(batch.num_rows)):
        parts = [(parts[0][0], None)]
    return parts, errors


def _built(made: Sequence[Record]) -> tuple[list[ContractBatch], dict[int, WherryError]]:
    """Makes batches of rows; or, where that can't be done, says which rows are to blame."""
    try:
        return list(_columns.batches(made, None)) if made else [], {}
    except WherryError:
        unfit: dict[int, WherryError] = {}
        for place, record in enumerate(made):
            try:
                list(_columns.batches([record], None))
            except WherryError as error:
                unfit[place] = error
        if not unfit:
            raise
        return [], unfit


def _schema(column: pa.Array) -> pa.DataType | None:
    return None if column.type in _NO_SCHEMA else column.type


def _check_fields(record: Record) -> None:
    """Refuses a field that the schema doesn't have, which Arrow would leave out without a word."""
    for value, schema in ((record.value, record.schema), (record.key, record.key_schema)):
        if type(value) is dict and isinstance(schema, pa.StructType):
            strange = next((name for name in value if schema.get_field_index(name) < 0), None)
            if strange is not None:
                raise RecordRejectedError(
                    f"The field {strange} is not in the record's schema; set another schema, or None for none.",
                    reason="FIELD_WITHOUT_SCHEMA",
                    field_path=strange,
                )


def _with_fields(part: ContractBatch, given: Batch) -> ContractBatch:
    """Gives columns whose type is as it was the name, version and documentation that they had."""
    schema = part.records.schema
    fields = list(schema)
    for name in (KEY, VALUE):
        place, before = schema.get_field_index(name), given.records.schema.get_field_index(name)
        if place >= 0 and before >= 0 and fields[place].type == given.records.schema.field(before).type:
            fields[place] = given.records.schema.field(before).with_nullable(True)
    records = pa.RecordBatch.from_arrays(part.records.columns, schema=pa.schema(fields))
    return ContractBatch(records, part.constants)


def _check(parts: Iterable[_Part], errors: Sequence[RowError], rows: int) -> None:
    failed = [error.row for error in errors]
    last, sound = 0, len(set(failed)) == len(failed) and all(0 <= row < rows for row in failed)
    gone = set(failed)
    for part, lineage in parts:
        if lineage is None:
            sound = sound and part.num_rows == rows and not gone
            continue
        sound = sound and len(lineage) == part.num_rows
        for row in lineage:
            sound = sound and last <= row < rows and row not in gone
            last = row
    if not sound:
        raise ConnectorBugError(
            f"The transformation's lineage doesn't fit its batch of {rows} rows: each new row names the row it came "
            "from, in rising order, and nothing comes from a row that failed.",
            reason="BAD_LINEAGE",
        )
