"""What stands between an author's generator and its stream: a bounded queue, filled by a thread of its own."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from wherry.contract import batch as contract
from wherry.contract.errors import ConnectorBugError, WherryError
from wherry.contract.limits import FRAME_BYTES_TARGET
from wherry.sdk.records import Record

ROWS_QUEUED_MAX: Final = 8192
BYTES_QUEUED_MAX: Final = 2 * FRAME_BYTES_TARGET
# What a row takes in memory beside its text or bytes, and one of another kind altogether, about.
ROW_OVERHEAD_BYTES: Final = 256
ROW_OBJECT_BYTES: Final = 2048
# Until the first frame has shown how large rows are.
ROWS_QUEUED_FIRST: Final = 64
# The generator has come to its end by itself; it was told to end.
DONE: Final = object()
STOPPED: Final = object()
SIZED: Final = frozenset({str, bytes})


class Failure:
    """An exception on its way from the generator's thread."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Intake:
    """The bounded queue between the generator and the stream.

    Each counter has one writer: `bytes_put` the generator's thread, `bytes_taken` the stream's.
    """

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.condition = threading.Condition()
        self.rows_max = ROWS_QUEUED_FIRST
        self.bytes_max = BYTES_QUEUED_MAX
        self.bytes_put = 0
        self.bytes_taken = 0
        self.waiting = False
        self.closed = False

    def run(self, generator: Iterator[Any]) -> None:
        """Moves what the generator yields into the queue, until it ends or the queue is closed."""
        try:
            for item in generator:
                self.put(item)
                if self.closed:
                    break
        except Exception as error:
            self.put(Failure(error))
        else:
            # NB: a split that was told to end must never count as read to its end, whatever made its generator return.
            self.put(STOPPED if self.closed else DONE)
        finally:
            close = getattr(generator, "close", None)
            if close is not None:
                quietly(close)

    def put(self, item: Any) -> None:
        """Adds an item; waits while the queue is full."""
        kind = type(item)
        if kind is Record:
            value = item.value
            # The true size of a dict isn't known here; rows_max follows the size of earlier ones.
            size = len(value) + ROW_OVERHEAD_BYTES if type(value) in SIZED else ROW_OBJECT_BYTES
        else:
            size = item.nbytes if isinstance(item, contract.Batch) else 0
        self.items.append(item)
        self.bytes_put += size
        if self.waiting:
            with self.condition:
                self.condition.notify_all()
        if len(self.items) >= self.rows_max or self.bytes_put - self.bytes_taken >= self.bytes_max:
            self._wait_for_room()

    def _wait_for_room(self) -> None:
        with self.condition:
            self.condition.notify_all()
            while not self.closed and (
                len(self.items) >= self.rows_max or self.bytes_put - self.bytes_taken >= self.bytes_max
            ):
                self.condition.wait(1.0)

    def fail(self, error: BaseException) -> None:
        """Adds a failure that comes from another thread than the generator's."""
        self.items.append(Failure(error))
        with self.condition:
            self.condition.notify_all()

    def taken(self, size: int) -> None:
        """Says that bytes were taken out."""
        self.bytes_taken += size
        with self.condition:
            self.condition.notify_all()

    def close(self) -> None:
        """Lets the generator end at its next yield."""
        with self.condition:
            self.closed = True
            self.condition.notify_all()


def told(error: BaseException) -> WherryError:
    """Returns what the engine is told of an exception: itself, or a BUG that names its type and place."""
    if isinstance(error, WherryError):
        return error
    where = traceback.extract_tb(error.__traceback__)
    place = f" (at {where[-1].filename.rsplit('/', 1)[-1]}:{where[-1].lineno})" if where else ""
    made = ConnectorBugError(f"{type(error).__name__}: {error}{place}", reason="UNEXPECTED_EXCEPTION")
    made.__cause__ = error
    return made


def quietly(call: Callable[[], Any]) -> None:
    """Runs an author's code at the end of things, where an exception can only be printed."""
    try:
        call()
    except Exception:
        traceback.print_exc()
