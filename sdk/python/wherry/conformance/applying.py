"""The engine's side of an Apply stream, which watches the rules of the contract at every message.

As of the other streams, these checks are made whatever a case is about: an answer for each frame, in their order, with
a lineage that fits its rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from wherry.conformance.failure import Failure
from wherry.conformance.rows import Row, rows_of
from wherry.conformance.streams import RECEIVE_DEADLINE_S, Closed, Stream, read_frame, told
from wherry.conformance.wire import Wire
from wherry.connector.v1 import common_pb2, transform_pb2
from wherry.contract.batch import Batch
from wherry.contract.frame import Encoding, FrameReader, FrameWriter


@dataclass(slots=True)
class Answer:
    """What became of one frame.

    Attributes:
        rows: The new rows.
        lineage: For each the index of the row it came from.
        failed: Rows that failed.
    """

    rows: list[Row] = field(default_factory=list)
    lineage: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


class Applying(Stream):
    """An Apply stream.

    Attributes:
        answers: What became of the frames answered so far.
    """

    def __init__(self, wire: Wire, opening: transform_pb2.ApplyOpen) -> None:
        super().__init__(wire, "TransformService.Apply", transform_pb2.ApplyRequest(open=opening))
        self.answers: list[Answer] = []
        self._opened: transform_pb2.ApplyOpened | None = None
        self._asked = list(opening.encodings)
        self._writer = FrameWriter()
        self._reader = FrameReader()
        self._sent: list[tuple[int, int]] = []
        self._answer = Answer()

    def send_batch(self, batch: Batch, within_s: float = RECEIVE_DEADLINE_S) -> None:
        """Sends a batch, once the sidecar has chosen an encoding.

        Raises:
            Failure: It hasn't in time.
        """
        deadline = time.monotonic() + within_s
        while self._opened is None:
            self._step(deadline, "`opened`")
        frames = list(self._writer.frames(batch))
        for frame in frames:
            self.send(transform_pb2.ApplyRequest(frame=frame))
        if batch.num_rows:
            self._sent.append((frames[-1].seq, batch.num_rows))

    def wait_for_answers(self, within_s: float = RECEIVE_DEADLINE_S) -> list[Answer]:
        """Waits until every frame is answered; returns the answers since the last time.

        Raises:
            Failure: An answer didn't come, or breaks a rule.
        """
        deadline = time.monotonic() + within_s
        while self._sent:
            self._step(deadline, f"the answer to frame {self._sent[0][0]}")
        answers, self.answers = self.answers, []
        return answers

    def look_at(self, message: transform_pb2.ApplyResponse) -> None:
        """Checks a message."""
        kind = message.WhichOneof("message")
        if kind == "opened":
            self._open(message.opened)
        elif kind == "frame":
            self._take(message.frame)
        elif kind != "heartbeat":
            raise Failure("A message on the Apply stream has neither opened, frame nor heartbeat.")

    def _open(self, opened: transform_pb2.ApplyOpened) -> None:
        if self._opened is not None:
            raise Failure("The Apply stream was opened twice.")
        if opened.encoding not in self._asked:
            name = common_pb2.Encoding.Name(opened.encoding) if opened.encoding in range(4) else str(opened.encoding)
            raise Failure(f"The sidecar chose the encoding {name}, which was not offered.")
        self._opened = opened
        self._writer = FrameWriter(Encoding(opened.encoding))

    def _take(self, message: transform_pb2.TransformedFrame) -> None:
        if self._opened is None:
            raise Failure("A frame came before `opened`.")
        if not self._sent:
            raise Failure("An answer came to which there is no frame.")
        seq, rows = self._sent[0]
        answer = self._answer
        batch = read_frame(self._reader, message.frame)
        if batch is not None and batch.num_rows:
            lineage = list(message.lineage) or list(range(batch.num_rows))
            if len(lineage) != batch.num_rows or (not message.lineage and batch.num_rows != rows):
                raise Failure(
                    f"The answer to frame {seq} has {batch.num_rows} rows and {len(message.lineage)} origins."
                )
            answer.rows += rows_of(batch)
            answer.lineage += lineage
        answer.failed += [error.row for error in message.row_errors]
        if any(not error.error_class or not error.message for error in message.row_errors):
            raise Failure(f"A row error of frame {seq} lacks its class or message.")
        if not message.answers_seq:
            return
        if message.answers_seq != seq:
            raise Failure(f"Frame {message.answers_seq} was answered; frame {seq} was due.")
        if answer.lineage != sorted(answer.lineage):
            raise Failure(f"The lineage of the answer to frame {seq} falls.")
        if any(row >= rows for row in (*answer.lineage, *answer.failed)):
            raise Failure(f"The answer to frame {seq} names a row beyond its {rows} rows.")
        if set(answer.failed) & set(answer.lineage) or len(set(answer.failed)) < len(answer.failed):
            raise Failure(f"The answer to frame {seq} has a row that failed twice, or failed and was changed.")
        self._sent.pop(0)
        self.answers.append(answer)
        self._answer = Answer()

    def _step(self, deadline: float, awaited: str) -> None:
        message: Any = self.get(deadline)
        if message is None:
            raise Failure(f"{awaited[0].upper()}{awaited[1:]} did not come in time.")
        if isinstance(message, Closed):
            how = "well" if message.error is None else f"with {told(message.error)}"
            raise Failure(f"The Apply stream ended {how} while {awaited} was awaited.")
        self.look_at(message)
