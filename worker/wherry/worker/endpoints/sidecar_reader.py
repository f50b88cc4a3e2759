"""Reads from a sidecar's Read stream: credit out, frames in.

The sidecar may send what its credit allows; a batch's credit goes back when the pump asks for the next one, which is
when the batch has been passed on. So what lies between sidecar and destination is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from wherry.connector.v1 import common_pb2, frame_pb2, source_pb2
from wherry.contract import to_proto
from wherry.contract.batch import Batch
from wherry.contract.client import SidecarClient
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.frame import FrameReader
from wherry.contract.limits import STREAM_OPEN_DEADLINE_S
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.contract.wire import WireFrame

# Answers a sidecar's question for stored positions, one per partition.
Lookup = Callable[[Sequence[str]], Sequence[Position]]

MILLISECONDS: Final = 1000


class SidecarReader:
    """A `Reader` of one task or split."""

    def __init__(
        self,
        client: SidecarClient,
        work: Work,
        positions: Sequence[Position],
        *,
        generation: int,
        task: int,
        split: bool,
        lookup: Lookup,
    ) -> None:
        self._lookup = lookup
        self._frames = FrameReader()
        self._spent_frames = 0
        self._spent_bytes = 0
        self._caught_up = False
        self._finished = False
        self._drain_by: float | None = None
        self._closed = False
        self._stream = client.read(generation=generation, task=task, work=work, split=split, positions=positions)
        self._await_opened()

    def poll(self, timeout_s: float) -> Batch | None:
        """See `Reader.poll`."""
        self._return_credit()
        deadline = time.monotonic() + timeout_s
        while not self._finished:
            message = self._stream.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                if self._stream.ended:
                    raise TransientError("The sidecar has ended its Read stream without saying so.")
                return None
            if isinstance(message, WireFrame):
                batch = self._frames.feed(message)
                if message.header.kind == frame_pb2.FRAME_KIND_BATCH:
                    # The chunks of one batch are one frame.
                    self._spent_frames = 1
                    self._spent_bytes += message.body.size
                if batch is not None:
                    self._caught_up = False
                    return batch
            else:
                self._hear(message)
        return None

    def committed(self, positions: Sequence[Position]) -> None:
        """See `Reader.committed`."""
        if not self._stream.ended:
            message = source_pb2.Committed(positions=to_proto.positions(positions))
            self._stream.send(source_pb2.ReadRequest(committed=message))

    def rewind(self, positions: Sequence[Position]) -> None:
        """Not possible on a running stream: the lease opens a new one from the durable positions."""
        raise TransientError(
            "The destination asks to go back; the source is opened again from the last durable positions."
        )

    def pause(self, partitions: Sequence[str]) -> None:
        """Not by partition: a sidecar that gets no credit rests as a whole."""

    def drain(self, deadline_s: float) -> None:
        """See `Reader.drain`."""
        if self._finished or self._stream.ended:
            self._finished = True
            return
        message = common_pb2.Drain(deadline_ms=int(deadline_s * MILLISECONDS))
        self._stream.send(source_pb2.ReadRequest(drain=message))

    def close(self) -> None:
        """See `Reader.close`."""
        if self._closed:
            return
        self._closed = True
        if self._finished:
            # In good order: the sidecar may still settle what it has been told is committed.
            self._stream.half_close()
        else:
            self._stream.cancel()

    @property
    def finished(self) -> bool:
        """See `Reader.finished`."""
        return self._finished

    @property
    def caught_up(self) -> bool:
        """See `Reader.caught_up`."""
        return self._caught_up or self._finished

    @property
    def lag(self) -> int | None:
        """Unknown: only the sidecar could tell."""
        return None

    @property
    def trouble(self) -> str:
        """Never any: trouble ends the stream."""
        return ""

    def _await_opened(self) -> None:
        deadline = time.monotonic() + STREAM_OPEN_DEADLINE_S
        while True:
            message = self._stream.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                self._stream.cancel()
                raise TransientError(f"The sidecar did not open its Read stream within {STREAM_OPEN_DEADLINE_S:.0f} s.")
            if isinstance(message, WireFrame):
                self._stream.cancel()
                raise ConnectorBugError("The sidecar sent a frame before it said that the stream is open.")
            if message.HasField("opened"):
                return
            self._hear(message)

    def _hear(self, message: source_pb2.ReadResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "caught_up":
            self._caught_up = True
        elif kind == "end":
            self._finished = True
        elif kind == "offset_query":
            query = message.offset_query
            answer = source_pb2.OffsetAnswer(
                id=query.id, positions=to_proto.positions(self._lookup(tuple(query.partitions_json)))
            )
            self._stream.send(source_pb2.ReadRequest(offset_answer=answer))

    def _return_credit(self) -> None:
        """Gives back the credit of the batch before: it has been passed on."""
        if self._spent_frames and not self._finished and not self._stream.ended:
            credit = common_pb2.Credit(frames=self._spent_frames, bytes=self._spent_bytes)
            self._spent_frames = self._spent_bytes = 0
            self._stream.send(source_pb2.ReadRequest(credit=credit))


def position_lookup(known: dict[str, Position]) -> Lookup:
    """Returns a lookup over positions that are kept up to date by their owner."""

    def lookup(partitions: Sequence[str]) -> Sequence[Position]:
        return [known.get(partition) or Position(partition, None) for partition in partitions]

    return lookup
