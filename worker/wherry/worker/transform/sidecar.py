"""Transformations that a sidecar runs: batches out on an Apply stream, answers back, one after another.

What it decides: which rows an answer is about, and what becomes of an error. A row that fails is a row error, as of any
transformation. An error of the whole batch that may pass (TRANSIENT, THROTTLED) goes the way of `errors.retry.*`: the
batch is offered again on another stream. A sidecar that is not there any more, or does not answer in time, is for the
lease to replace: its pipeline is made anew and goes on from the positions that are durable, so that nothing is lost.

Offsets and, once typed, headers never leave the engine; they follow the rows by their lineage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from wherry.contract import from_proto
from wherry.contract.batch import Batch, RowError
from wherry.contract.client import SidecarClient
from wherry.contract.data import DataError
from wherry.contract.errors import ConnectorBugError, ErrorClass, TransientError, WherryError
from wherry.contract.frame import Encoding, FrameReader, FrameWriter
from wherry.contract.headers import is_typed
from wherry.contract.limits import STREAM_OPEN_DEADLINE_S
from wherry.contract.stream import ApplyStream
from wherry.contract.transforming import TIMEOUT_KEY, TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX
from wherry.contract.wire import WireFrame
from wherry.worker.retry import BrokenOffError
from wherry.worker.transform.columns import Positions
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.own import whole_number
from wherry.worker.transform.rows import Loose, Rows, batch_of, side_of

# How often a wait looks whether the lease is to end, and how long an answer may still take then.
WAIT_SLICE_S: Final = 0.25
INTERRUPTED_GRACE_S: Final = 1.0


class SidecarGoneError(WherryError):
    """The sidecar is not there, or does not answer: no further attempt helps before it is replaced."""

    error_class = ErrorClass.TRANSIENT


class RefusedRowError(DataError):
    """A row that the sidecar could not transform."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.DataException"


class SidecarTransform:
    """A `Transform` in another process.

    Args:
        endpoint: Where the sidecar listens.
        class_name: The class it runs.
        config: The settings of the transformation; the engine's own are among them.
        generation: Generation of the lease.
        task: Number of the task.
        interrupted: Whether the lease is to end.
    """

    def __init__(
        self,
        endpoint: str,
        class_name: str,
        config: Mapping[str, str],
        *,
        generation: int,
        task: int,
        interrupted: Callable[[], bool],
    ) -> None:
        self.class_name = class_name
        self._timeout_s = whole_number(config, TIMEOUT_KEY, TIMEOUT_MS_DEFAULT, 1, TIMEOUT_MS_MAX) / 1000
        self._client = SidecarClient(endpoint)
        self._generation = generation
        self._task = task
        self._interrupted = interrupted
        self._stream: ApplyStream | None = None
        self._reader = FrameReader()
        self._writer = FrameWriter()

    def close(self) -> None:
        """Ends the stream."""
        self._drop()
        self._client.close()

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`; only for an answer of one schema."""
        runs = self.apply_runs(rows)
        if len(runs) != 1:
            raise ConnectorBugError(f"The answer of {self.class_name} has {len(runs)} schemas.")
        return runs[0]

    def apply_runs(self, rows: Rows) -> list[Rows]:
        """Returns what takes the place of rows, as runs of one schema each.

        Raises:
            RowsFailedError: Some rows failed; it has what became of the others.
        """
        headers = rows.rest.headers
        kept = headers if headers is not None and is_typed(headers) else None
        batch = batch_of(rows if kept is None else replace(rows, rest=rows.rest.with_columns(headers=None)))
        try:
            parts, errors = self._exchange(batch)
        except BaseException:
            # What is under way on the stream would be taken for the answer to the next batch.
            self._drop()
            raise
        runs = [self._run(rows, part, lineage, kept) for part, lineage in parts if part.num_rows]
        _check_lineage(len(rows), parts, errors)
        if errors:
            failures = {error.row: self._failure(error) for error in errors}
            raise RowsFailedError(failures, others=tuple(runs))
        return runs or [rows.take(np.zeros(0, np.int64))]

    def _failure(self, error: RowError) -> DataError:
        message = error.message or error.reason or "The sidecar says no more than that it failed."
        made = RefusedRowError(message, reason=error.reason or "ROW_REFUSED", error_class=error.error_class)
        made.field_path = error.field_path
        return made

    # The stream.

    def _exchange(self, batch: Batch) -> tuple[list[tuple[Batch, Positions | None]], list[RowError]]:
        stream = self._stream or self._open()
        frames = self._writer.wire(batch)
        for frame in frames:
            stream.send(frame)
        seq = int(frames[-1].header.seq)
        parts: list[tuple[Batch, Positions | None]] = []
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._receive(stream, deadline).frame
            part = self._reader.feed(answer.frame)
            if part is not None:
                lineage = np.asarray(answer.lineage, np.int64) if answer.lineage else None
                parts.append((part, lineage))
            if answer.answers_seq:
                if answer.answers_seq != seq:
                    raise self._broken(f"answers frame {answer.answers_seq}, while {seq} was due")
                return parts, [from_proto.row_error(error) for error in answer.row_errors]

    def _open(self) -> ApplyStream:
        self._reader = FrameReader()
        stream = self._client.apply(generation=self._generation, task=self._task)
        try:
            message = self._receive(stream, time.monotonic() + STREAM_OPEN_DEADLINE_S, "opened")
        except TransientError as error:
            stream.cancel()
            # Somebody who answers tells why; nobody does when the process is gone.
            if error.reason in {"UNAVAILABLE", "STREAM_BROKEN"}:
                raise SidecarGoneError(f"The sidecar of {self.class_name} is gone: {error}") from error
            raise
        encoding = from_proto.known(Encoding, message.opened.encoding, None)
        if encoding is None:
            stream.cancel()
            raise self._broken(f"chose encoding {message.opened.encoding}, which is none of the contract's")
        self._writer = FrameWriter(encoding)
        self._stream = stream
        return stream

    def _receive(self, stream: ApplyStream, deadline: float, wanted: str = "frame") -> Any:
        interrupted_at: float | None = None
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise SidecarGoneError(
                    f"The sidecar of {self.class_name} did not answer within {self._timeout_s:g} s "
                    f"({TIMEOUT_KEY}); it gets the batch again."
                )
            message = stream.receive(min(WAIT_SLICE_S, deadline - now))
            if message is not None:
                if isinstance(message, WireFrame) or message.WhichOneof("message") != wanted:
                    raise self._broken(f"spoke out of turn: {wanted} was due")
                return message
            if stream.ended:
                raise TransientError(f"The sidecar of {self.class_name} has ended its stream.", reason="STREAM_ENDED")
            if self._interrupted():
                interrupted_at = interrupted_at or now
                if now - interrupted_at > INTERRUPTED_GRACE_S:
                    raise BrokenOffError

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    def _broken(self, what: str) -> ConnectorBugError:
        return ConnectorBugError(f"The sidecar of {self.class_name} {what}.", reason="PROTOCOL")

    # Answers.

    def _run(self, rows: Rows, part: Batch, lineage: Positions | None, headers: pa.Array | None) -> Rows:
        """Makes rows of a batch that came back, with what never left."""
        origins = np.arange(part.num_rows) if lineage is None else lineage
        if len(origins) != part.num_rows or (len(origins) and not 0 <= origins.min() <= origins.max() < len(rows)):
            raise self._broken(f"made {part.num_rows} rows whose origins don't fit the {len(rows)} rows it was given")
        given = rows.take(origins)
        schema, count = part.records.schema, part.num_rows
        columns: dict[str, pa.Array | None] = {
            "key": None,
            "value": pa.nulls(count),
            "offset": given.rest.column("offset"),
        }
        if headers is not None:
            columns["headers"] = given.rest.headers
        if part.column("partition") is None:
            columns["partition"] = given.rest.column("partition")
        rest = part.with_columns(**columns).with_marks()
        key = Loose.nulls(count) if part.key is None else side_of(schema.field("key"), part.key)
        return Rows(given.index, key, side_of(schema.field("value"), part.value), rest)


def _check_lineage(count: int, parts: Sequence[tuple[Batch, Positions | None]], errors: Sequence[RowError]) -> None:
    """Refuses an answer that puts rows out of order, or leaves rows both failed and changed."""
    made = [np.arange(part.num_rows) if lineage is None else lineage for part, lineage in parts if part.num_rows]
    origins = np.concatenate(made) if made else np.zeros(0, np.int64)
    failed = {error.row for error in errors}
    ordered = not len(origins) or bool((np.diff(origins) >= 0).all())
    if not ordered or failed & set(origins.tolist()) or any(row >= count for row in failed):
        raise ConnectorBugError(
            "The sidecar of a transformation answered with rows out of order, or with rows from those that failed.",
            reason="BAD_LINEAGE",
        )
