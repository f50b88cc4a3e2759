"""gRPC's edge: channels, errors as statuses and back, retries by error class.

The one place that knows how an error of the contract travels: a gRPC code that fits, and in the status details a
google.rpc.ErrorInfo of the domain "wherry.dev" whose reason is the name of the error class.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf import duration_pb2  # type: ignore[import-untyped]  # its types are a package of their own
from google.rpc import error_details_pb2, status_pb2

from wherry.contract.errors import (
    ERROR_CLASSES_BY_CODE,
    GRPC_CODES,
    ConfigError,
    ConnectorBugError,
    ErrorClass,
    ThrottledError,
    WherryError,
    error_for,
)
from wherry.contract.limits import (
    CONNECT_TIMEOUT_MS,
    MESSAGE_BYTES_MAX,
    RECONNECT_BACKOFF_INITIAL_MS,
    RECONNECT_BACKOFF_MAX_MS,
    RETRY_ATTEMPTS_MAX,
    RETRY_WAIT_INITIAL_S,
    RETRY_WAIT_MAX_S,
    STATUS_MESSAGE_BYTES_MAX,
)
from wherry.contract.texts import cut_text

if TYPE_CHECKING:
    import tenacity

PROBE_TIMEOUT_S: Final = 1.0
ERROR_DOMAIN: Final = "wherry.dev"
DETAILS_KEY: Final = "grpc-status-details-bin"
# Room for what gRPC itself puts around a message that is just as large as allowed.
_MESSAGE_SLACK_BYTES: Final = 64 * 1024
_RETRIED: Final = frozenset({ErrorClass.TRANSIENT, ErrorClass.THROTTLED})


def channel_options(message_bytes_max: int = MESSAGE_BYTES_MAX) -> list[tuple[str, int]]:
    """Returns the options of every channel: sizes, quick reconnection, no proxy, nothing shared with other channels."""
    size = message_bytes_max + _MESSAGE_SLACK_BYTES
    return [
        ("grpc.max_send_message_length", size),
        ("grpc.max_receive_message_length", size),
        ("grpc.initial_reconnect_backoff_ms", RECONNECT_BACKOFF_INITIAL_MS),
        # Not a wait, whatever it is called: an attempt to connect is given up after this time.
        ("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_BACKOFF_MAX_MS),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
    ]


def server_options(message_bytes_max: int = MESSAGE_BYTES_MAX) -> list[tuple[str, int]]:
    """Returns the options of every server."""
    size = message_bytes_max + _MESSAGE_SLACK_BYTES
    return [
        ("grpc.max_send_message_length", size),
        ("grpc.max_receive_message_length", size),
        ("grpc.so_reuseport", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def channel(
    endpoint: str,
    *,
    message_bytes_max: int = MESSAGE_BYTES_MAX,
    credentials: grpc.ChannelCredentials | None = None,
) -> grpc.Channel:
    """Makes a channel. Nothing is connected before the first call; never call this before a fork.

    Args:
        endpoint: `unix:///path` or `host:port`.
        message_bytes_max: Largest message, both ways.
        credentials: For TLS; None means plain text, which is right for Unix sockets only.
    """
    options = channel_options(message_bytes_max)
    if credentials is None:
        return grpc.insecure_channel(endpoint, options=options)
    return grpc.secure_channel(endpoint, credentials, options=options)


class StatusOf(grpc.Status):  # type: ignore[misc]  # grpc publishes no types
    """A gRPC status with details, for `ServicerContext.abort_with_status`."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing_metadata: Sequence[tuple[str, bytes]]) -> None:
        self.code = code
        self.details = details
        self.trailing_metadata = tuple(trailing_metadata)


def is_served(endpoint: str) -> bool:
    """Tells whether anybody listens at a Unix socket; the socket of a process that has ended stays, and is dead."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        try:
            probe.connect(endpoint.removeprefix("unix:").removeprefix("//"))
        except OSError:
            return False
    return True


def status_of(error: BaseException) -> StatusOf:
    """Makes the status of an error; one that isn't of the contract is a BUG that names its type."""
    if not isinstance(error, WherryError):
        error = ConnectorBugError(f"{type(error).__name__}: {error}", reason="UNEXPECTED_EXCEPTION")
    code = GRPC_CODES[error.error_class]
    text = cut_text(str(error) or type(error).__name__, STATUS_MESSAGE_BYTES_MAX)
    values = {"reason": error.reason}
    if isinstance(error, ConfigError) and error.key:
        values["key"] = error.key
    status = status_pb2.Status(code=code.value[0], message=text)
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(domain=ERROR_DOMAIN, reason=error.error_class.name, metadata=values)
    )
    if isinstance(error, ThrottledError) and error.retry_after_ms:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(error.retry_after_ms)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return StatusOf(code, text, [(DETAILS_KEY, status.SerializeToString())])


def abort(context: grpc.ServicerContext, error: BaseException) -> None:
    """Ends a call on the server's side with the status of an error; never returns."""
    context.abort_with_status(status_of(error))


def from_rpc_error(error: grpc.RpcError, peer: str = "") -> WherryError:
    """Makes the error of a failed call.

    Args:
        error: What the call raised.
        peer: Who was called, for the sentence when gRPC itself and not the peer speaks.
    """
    code = error.code() if callable(getattr(error, "code", None)) else grpc.StatusCode.UNKNOWN
    details = (error.details() if callable(getattr(error, "details", None)) else "") or str(code)
    told = _told(error)
    if told is not None:
        return told
    error_class = ERROR_CLASSES_BY_CODE.get(code, ErrorClass.BUG)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        details = "it didn't answer in time"
    elif code is grpc.StatusCode.UNAVAILABLE:
        details = f"it can't be reached ({details})"
    made = error_for(error_class, f"{peer}: {details}" if peer else details, reason=code.name)
    made.__cause__ = error
    return made


def is_told(error: grpc.RpcError) -> bool:
    """Tells whether the peer itself has said what failed, so that it lives and could be reached."""
    return _told(error) is not None


def _told(error: grpc.RpcError) -> WherryError | None:
    """Returns the error that the peer itself put into the status details."""
    trailing = error.trailing_metadata() if callable(getattr(error, "trailing_metadata", None)) else None
    packed = next((value for key, value in trailing or () if key == DETAILS_KEY), None)
    if packed is None:
        return None
    try:
        status = status_pb2.Status.FromString(packed)
    except Exception:  # a peer's damaged details are no reason to lose its code and text
        return None
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    if not any(detail.Unpack(info) and info.domain == ERROR_DOMAIN for detail in status.details):
        return None
    error_class = ErrorClass.__members__.get(info.reason, ErrorClass.BUG)
    made = error_for(error_class, status.message, reason=info.metadata.get("reason", ""))
    if isinstance(made, ConfigError):
        made.key = info.metadata.get("key")
    if isinstance(made, ThrottledError) and any(detail.Unpack(retry) for detail in status.details):
        made.retry_after_ms = retry.retry_delay.ToMilliseconds()
    return made


def retrying(
    deadline_s: float,
    *,
    sleep: Callable[[float], Any] = time.sleep,
    attempts_max: int = RETRY_ATTEMPTS_MAX,
    in_vain: Callable[[WherryError], bool] = lambda error: False,
) -> tenacity.Retrying:
    """Makes the policy for calls that may be repeated; use it as tenacity tells, with `for` and `with`.

    TRANSIENT and THROTTLED errors are tried again, with growing, jittered pauses (or the pause asked for), until the
    deadline or the attempts are used up; then the last error is raised as it is. All others are raised at once.

    Args:
        deadline_s: Time for all attempts together.
        sleep: How to wait; tests pass their own.
        attempts_max: Most attempts.
        in_vain: Tells of an error that would be tried again that this can't help; it is raised at once.
    """
    import tenacity  # here, because servers never retry and shouldn't load it

    grow = tenacity.wait_random_exponential(multiplier=RETRY_WAIT_INITIAL_S, max=RETRY_WAIT_MAX_S)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, ThrottledError) and error.retry_after_ms:
            return error.retry_after_ms / 1000
        return float(grow(state))

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, WherryError) and error.error_class in _RETRIED and not in_vain(error)
        ),
        wait=wait,
        stop=tenacity.stop_any(tenacity.stop_before_delay(deadline_s), tenacity.stop_after_attempt(attempts_max)),
        sleep=sleep,
        reraise=True,
    )
