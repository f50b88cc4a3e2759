"""Steps about transformations: Apply streams, and what comes of rows."""

from __future__ import annotations

from wherry.conformance.applying import Answer, Applying
from wherry.conformance.failure import Failure
from wherry.conformance.rows import SHORT_TEXT, sample_batch
from wherry.conformance.running import Running
from wherry.conformance.streams import encodings
from wherry.connector.v1 import transform_pb2
from wherry.contract.batch import mark_only


def open_apply(run: Running, stream: str = "apply", *, shift: int = 0, encoding: list[str] | None = None) -> None:
    """Opens an Apply stream."""
    opening = transform_pb2.ApplyOpen(generation=run.generation + shift, encodings=encodings(encoding))
    run.keep(stream, Applying(run.session.wire, opening))


def apply(run: Running, stream: str = "apply", *, frames: int = 1, rows: int = 10, first: int = 0) -> None:
    """Sends frames of sample rows, numbered from `first`; each is answered, and each row is answered for alike."""
    applying = run.applying(stream)
    for index in range(frames):
        applying.send_batch(
            sample_batch(run.subject, run.variables, first=first + index * rows, count=rows, text=SHORT_TEXT)
        )
    answers = applying.wait_for_answers()
    if any(answer.failed for answer in answers):
        raise Failure(f"Rows of the sample failed: {answers[0].failed[:10]}.")
    run.answers[stream] = answers


def apply_with_bad_row(run: Running, stream: str = "apply", *, row: int, rows: int) -> None:
    """One row is bad: it alone fails, and the others fare as they do without it."""
    applying = run.applying(stream)
    for bad_row in (-1, row):
        applying.send_batch(
            sample_batch(run.subject, run.variables, first=0, count=rows, text=SHORT_TEXT, bad_row=bad_row)
        )
    good, bad = applying.wait_for_answers()
    if bad.failed != [row]:
        raise Failure(f"Row {row} is bad; errors were told of the rows {bad.failed}.")
    if _others(good, row) != _others(bad, row):
        raise Failure("The rows beside the bad one were changed otherwise than without it.")


def same_answers(run: Running, stream: str = "apply", *, as_of: str) -> None:
    """The last answers on two streams are the same: an answer depends on its frame alone."""
    mine, other = ([(answer.rows, answer.lineage) for answer in run.answers[name]] for name in (stream, as_of))
    if mine != other:
        raise Failure("The same frames were answered otherwise on another stream.")


def apply_nothing(run: Running, stream: str = "apply") -> None:
    """A MARK frame is not answered, and takes a number all the same."""
    run.applying(stream).send_batch(mark_only())


def close_apply(run: Running, stream: str = "apply", *, within_s: float = 10.0) -> None:
    """The stream ends well when the engine half-closes it."""
    applying = run.applying(stream)
    applying.half_close()
    applying.expect_end([], within_s)


def _others(answer: Answer, row: int) -> list[tuple[int, object]]:
    return [(origin, made) for origin, made in zip(answer.lineage, answer.rows, strict=True) if origin != row]
