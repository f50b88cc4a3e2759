"""The engine's ends of a sidecar's streams.

A stream sends what it is given, says a heartbeat after 10 s without anything else, hands out what comes, and treats
60 s of silence as the end. Two threads serve it: gRPC's own, which takes what is to be sent, and one that receives, so
that a caller can wait with a time limit. Frames come as `WireFrame`, their body a view into the message received.
Heartbeats of the peer are not handed out.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar

import grpc

from wherry.connector.v1 import common_pb2, sink_pb2, source_pb2, transform_pb2
from wherry.contract import rpc, trace, wire
from wherry.contract.errors import TransientError, WherryError
from wherry.contract.handover import Handover
from wherry.contract.limits import HEARTBEAT_INTERVAL_S, STREAM_SILENCE_MAX_S
from wherry.contract.wire import WireFrame

# Messages that may wait to be sent. Frames are bounded by credit long before; this bounds everything else.
SEND_QUEUE_MAX: Final = 4096
# Messages received and not yet taken. gRPC stops reading beyond, and so does the peer.
RECEIVE_QUEUE_MAX: Final = 64
_SEND_TIMEOUT_S: Final = STREAM_SILENCE_MAX_S

_Request = TypeVar("_Request")
_Received = TypeVar("_Received")
_CLOSE: Final = object()


class SidecarStream(Generic[_Request, _Received]):
    """One bidirectional stream to a sidecar.

    `send` may be called from any thread, `receive` and iteration from one.

    Args:
        channel: The channel.
        opening: The first message.
        peer: Who is called, for sentences.
    """

    _method: ClassVar[str]
    _request_type: ClassVar[Any]
    _response_type: ClassVar[Any]
    _late_sends_matter: ClassVar[bool] = True
    # Whether frames come back; field 2 of a response is a frame then, and something else otherwise.
    _brings_frames: ClassVar[bool] = True

    def __init__(self, channel: grpc.Channel, opening: _Request, peer: str) -> None:
        self._peer = f"{self._method.rsplit('/', 1)[1]} of the sidecar at {peer}"
        self._outgoing: Handover[Any] = Handover(SEND_QUEUE_MAX)
        self._outgoing.put(opening)
        self._received: deque[Any] = deque()
        self._condition = threading.Condition()
        self._ended = False
        self._cancelled = False
        self._error: WherryError | None = None
        self._heard_at = time.monotonic()
        call = channel.stream_stream(
            self._method,
            request_serializer=wire.serializer,
            response_deserializer=(
                wire.deserializer(self._response_type.FromString)
                if self._brings_frames
                else self._response_type.FromString
            ),
        )
        self._call = call(self._requests(), metadata=trace.metadata())
        threading.Thread(target=self._receive_all, name=f"receive {self._method}", daemon=True).start()

    def send(self, message: _Request | WireFrame) -> None:
        """Sends a message or a frame, in the order of the calls; it returns as soon as the message is queued.

        Raises:
            WherryError: The stream has ended, or nothing was sent for a minute. A Read stream that has ended well is no
                error: what the engine says (credit, committed) may cross with the sidecar's `end`.
        """
        if self._ended:
            if self._error is None and not self._late_sends_matter:
                return
            raise self._error or TransientError(f"{self._peer} has ended.", reason="STREAM_ENDED")
        try:
            self._outgoing.put(message, timeout=_SEND_TIMEOUT_S)
        except queue.Full:
            self.cancel()
            raise TransientError(f"{self._peer} takes no messages.", reason="STREAM_STUCK") from None

    def receive(self, timeout_s: float | None = None) -> _Received | WireFrame | None:
        """Waits for the next message.

        Args:
            timeout_s: How long to wait at most; None means until the stream is silent for too long.

        Returns:
            A message or frame; None when none came in time or the stream has ended well (see `ended`).

        Raises:
            WherryError: The stream has ended with an error, or the peer was silent for too long.
        """
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        with self._condition:
            while not self._received:
                if self._ended:
                    if self._error:
                        raise self._error
                    return None
                now = time.monotonic()
                silent_at = self._heard_at + STREAM_SILENCE_MAX_S
                if now >= silent_at:
                    break
                if ends is not None and now >= ends:
                    return None
                self._condition.wait(min(silent_at, ends if ends is not None else silent_at) - now)
            else:
                message: _Received | WireFrame = self._received.popleft()
                if len(self._received) == RECEIVE_QUEUE_MAX - 1:
                    self._condition.notify_all()
                return message
        self.cancel()
        raise TransientError(f"{self._peer} has been silent for {STREAM_SILENCE_MAX_S:.0f} s.", reason="SILENT")

    def __iter__(self) -> Iterator[_Received | WireFrame]:
        while True:
            message = self.receive()
            if message is None:
                return
            yield message

    @property
    def ended(self) -> bool:
        """Whether the stream has ended and everything that came has been taken."""
        return self._ended and not self._received

    def half_close(self) -> None:
        """Says that nothing more will be sent; the peer then ends the stream."""
        if not self._ended:
            self._outgoing.put(_CLOSE, timeout=_SEND_TIMEOUT_S)

    def cancel(self) -> None:
        """Ends the stream at once."""
        self._cancelled = True
        self._call.cancel()

    def _requests(self) -> Iterator[Any]:
        while not self._ended:
            try:
                message = self._outgoing.get(timeout=HEARTBEAT_INTERVAL_S)
            except queue.Empty:
                message = self._request_type(heartbeat=common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))
            if message is _CLOSE:
                return
            yield message

    def _receive_all(self) -> None:
        error: WherryError | None = None
        try:
            for message in self._call:
                beats = not isinstance(message, WireFrame) and message.HasField("heartbeat")
                with self._condition:
                    self._heard_at = time.monotonic()
                    if beats:
                        continue
                    self._received.append(message)
                    self._condition.notify_all()
                    while len(self._received) >= RECEIVE_QUEUE_MAX and not self._cancelled:
                        self._condition.wait(1.0)
        except grpc.RpcError as failure:
            if not (self._cancelled and failure.code() is grpc.StatusCode.CANCELLED):
                error = rpc.from_rpc_error(failure, self._peer)
        except Exception as failure:
            error = TransientError(f"{self._peer} broke off: {failure}.", reason="STREAM_BROKEN")
        with self._condition:
            self._error = error
            self._ended = True
            self._condition.notify_all()
        # Wakes gRPC's sending thread, which would otherwise wait for the next heartbeat.
        with contextlib.suppress(queue.Full):
            self._outgoing.put_nowait(_CLOSE)


class ReadStream(SidecarStream[source_pb2.ReadRequest, source_pb2.ReadResponse]):
    """A Read stream; see the comment of SourceService for its life."""

    _method = "/wherry.connector.v1.SourceService/Read"
    _request_type = source_pb2.ReadRequest
    _response_type = source_pb2.ReadResponse
    _late_sends_matter = False


class WriteStream(SidecarStream[sink_pb2.WriteRequest, sink_pb2.WriteResponse]):
    """A Write stream; see the comment of SinkService for its life."""

    _method = "/wherry.connector.v1.SinkService/Write"
    _request_type = sink_pb2.WriteRequest
    _response_type = sink_pb2.WriteResponse
    _brings_frames = False


class ApplyStream(SidecarStream[transform_pb2.ApplyRequest, transform_pb2.ApplyResponse]):
    """An Apply stream; see the comment of TransformService for its life."""

    _method = "/wherry.connector.v1.TransformService/Apply"
    _request_type = transform_pb2.ApplyRequest
    _response_type = transform_pb2.ApplyResponse
    # A TransformedFrame is in field 2 there.
    _brings_frames = False
