"""What Write and Apply streams have in common: frames come in, the author's code works on them, answers go out.

Three threads: one receives and decodes, so that the next frame comes in while the author's code has the last; one runs
the author's code, message after message; the stream's own sends answers and heartbeats. What waits between them is
bounded by the credit given.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from wherry.connector.v1 import common_pb2
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.handover import Handover
from wherry.contract.limits import HEARTBEAT_INTERVAL_S, STREAM_SILENCE_MAX_S
from wherry.sdk._intake import Failure, told
from wherry.sdk.sink import Sink
from wherry.sdk.transform import Transform

# Messages waiting between the threads, beyond the frames that credit allows.
QUEUE_MAX: Final = 1024
LAST_WORD_TIMEOUT_S: Final = 1.0
_END: Final = object()
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Conversation(ABC, Generic[_Request, _Response]):
    """Serves one stream.

    Args:
        plugin: The author's object, opened by `open`; it is closed when the stream ends.
        name: What the stream does, for names of threads.
    """

    def __init__(self, plugin: Sink[Any] | Transform[Any], name: str) -> None:
        self._plugin = plugin
        self._name = name
        self._incoming: Handover[Any] = Handover(QUEUE_MAX)
        self._outgoing: Handover[Any] = Handover(QUEUE_MAX)
        self._heard_at = time.monotonic()
        self._gone = False

    def run(self, requests: Iterator[_Request]) -> Iterator[_Response]:
        """Yields what goes to the engine.

        Raises:
            WherryError: What the author's code raised, or a broken rule.
        """
        threading.Thread(target=self._listen, args=(requests,), name=f"{self._name} requests", daemon=True).start()
        threading.Thread(target=self._work, name=self._name, daemon=True).start()
        try:
            while True:
                try:
                    message = self._outgoing.get(timeout=HEARTBEAT_INTERVAL_S)
                except queue.Empty:
                    if time.monotonic() - self._heard_at > STREAM_SILENCE_MAX_S:
                        raise TransientError(
                            f"The engine has been silent for {STREAM_SILENCE_MAX_S:.0f} s.", reason="SILENT"
                        ) from None
                    message = self.beat(common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))
                if message is _END:
                    return
                if isinstance(message, Failure):
                    raise told(message.error)
                yield message
        finally:
            self._leave()

    def end(self) -> None:
        """Tells the author's code to end and refuses further frames."""
        self._incoming.put(Failure(TransientError("The sidecar is stopping.", reason="STOPPING")))
        self._plugin.end()

    @abstractmethod
    def beat(self, heartbeat: common_pb2.Heartbeat) -> _Response:
        """Returns the answer that carries a heartbeat."""

    @abstractmethod
    def receive(self, request: _Request) -> None:
        """Decodes a request and gives what is to be worked on to `self._incoming`. On the receiving thread."""

    @abstractmethod
    def open(self) -> None:
        """Opens the author's object and answers so. On the author's thread."""

    @abstractmethod
    def work(self, message: Any) -> None:
        """Does what one message asks for. On the author's thread."""

    def _leave(self) -> None:
        self._gone = True
        # Both queues may be full and their threads waiting on them.
        _drop(self._incoming)
        with suppress(queue.Full):
            self._incoming.put(_END, timeout=LAST_WORD_TIMEOUT_S)
        _drop(self._outgoing)

    def _listen(self, requests: Iterator[_Request]) -> None:
        last: Any = _END
        try:
            for request in requests:
                self._heard_at = time.monotonic()
                self.receive(request)
                if self._gone:
                    return
        except Exception as error:  # a broken frame; or gRPC says in its own way that the call is over
            last = Failure(error) if isinstance(error, ConnectorBugError) else _END
        if not self._gone:
            self._incoming.put(last)

    def _work(self) -> None:
        try:
            self.open()
            while (message := self._incoming.get()) is not _END:
                if isinstance(message, Failure):
                    raise message.error
                self.work(message)
        except Exception as error:
            self._outgoing.put(Failure(error))
        finally:
            try:
                self._plugin.close()
            except Exception as error:
                self._plugin.log.warning("close failed", error=error)
            self._outgoing.put(_END)


def _drop(waiting: Handover[Any]) -> None:
    while True:
        try:
            waiting.get_nowait()
        except queue.Empty:
            return
