"""The one error tree of the contract: a class says what happens next.

    WherryError
    ├── TransientError       the same call may succeed later: retried with back-off
    ├── ThrottledError       the other system asks for less: retried after `retry_after_ms`
    ├── ConfigError          a configuration value is wrong: fails until someone changes it
    ├── AuthError            credentials were refused: fails until someone changes them
    ├── OffsetLostError      the position asked for is gone: never skipped silently
    ├── SchemaError          the target can't take the schema: fails
    │   └── RecordRejectedError   one row can't be delivered: the others go on
    ├── FencedError          a newer generation has taken over: stop without alarm
    └── ConnectorBugError    the connector itself is at fault: restarted with back-off

Whoever acts on an error looks at its class only, never at its text. `reason` is a constant for people and dashboards.
"""

from __future__ import annotations

import enum
from typing import Final

import grpc


class ErrorClass(enum.IntEnum):
    """What the engine does about an error; the numbers are those of the proto enum of the same name."""

    TRANSIENT = 1
    THROTTLED = 2
    CONFIG = 3
    AUTH = 4
    OFFSET_LOST = 5
    SCHEMA = 6
    FENCED = 7
    BUG = 8


class WherryError(Exception):
    """Base of every error of the contract.

    Attributes:
        error_class: What happens next; constant for a class, but for `RecordRejectedError`.
        reason: Upper-case constant, such as CONNECTION_REFUSED; by default the name of the error class.
    """

    error_class: ErrorClass = ErrorClass.BUG
    reason: str

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or self.error_class.name

    @property
    def message(self) -> str:
        """The text, one sentence for a person."""
        return str(self)


class TransientError(WherryError):
    """The same call may succeed later."""

    error_class = ErrorClass.TRANSIENT


class ThrottledError(WherryError):
    """The other system asks for less.

    Attributes:
        retry_after_ms: When to try again, in ms from now; 0 if unknown.
    """

    error_class = ErrorClass.THROTTLED

    def __init__(self, message: str, *, retry_after_ms: int = 0, reason: str = "") -> None:
        super().__init__(message, reason=reason)
        self.retry_after_ms = retry_after_ms


class ConfigError(WherryError):
    """A configuration value is wrong.

    Attributes:
        key: Name of the key at fault; None when it isn't a single one.
    """

    error_class = ErrorClass.CONFIG

    def __init__(self, message: str, *, key: str | None = None, reason: str = "") -> None:
        super().__init__(message, reason=reason)
        self.key = key


class AuthError(WherryError):
    """Credentials were refused."""

    error_class = ErrorClass.AUTH


class OffsetLostError(WherryError):
    """The position asked for is gone: retention, a truncated log, a deleted file."""

    error_class = ErrorClass.OFFSET_LOST


class SchemaError(WherryError):
    """The target can't take the schema."""

    error_class = ErrorClass.SCHEMA


class RecordRejectedError(SchemaError):
    """One row can't be delivered; the rest of the batch goes on.

    Attributes:
        error_class: Class reported with the row; TRANSIENT asks the engine to offer the row once more.
        field_path: Field at fault as a dotted path; empty when the whole row is.
        raw: Bytes that could not be understood; sources only.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "RECORD_REJECTED",
        field_path: str = "",
        error_class: ErrorClass = ErrorClass.SCHEMA,
        raw: bytes = b"",
    ) -> None:
        self.error_class = error_class
        super().__init__(message, reason=reason)
        self.field_path = field_path
        self.raw = raw


class FencedError(WherryError):
    """A newer generation has taken over."""

    error_class = ErrorClass.FENCED


class ConnectorBugError(WherryError):
    """The connector itself is at fault."""

    error_class = ErrorClass.BUG


GRPC_CODES: Final[dict[ErrorClass, grpc.StatusCode]] = {
    ErrorClass.TRANSIENT: grpc.StatusCode.UNAVAILABLE,
    ErrorClass.THROTTLED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorClass.CONFIG: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorClass.AUTH: grpc.StatusCode.UNAUTHENTICATED,
    ErrorClass.OFFSET_LOST: grpc.StatusCode.OUT_OF_RANGE,
    ErrorClass.SCHEMA: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorClass.FENCED: grpc.StatusCode.ABORTED,
    ErrorClass.BUG: grpc.StatusCode.INTERNAL,
}

# What a status without our ErrorInfo means: the peer, or gRPC itself, speaks. Codes not named here are BUG.
KILLED: Final = "KILLED"
"""Reason of the error about a process that was killed from outside while it was started."""
STOPPED: Final = "STOPPED"
"""Reason of the error about a process that was wanted no more while it was started."""

ERROR_CLASSES_BY_CODE: Final[dict[grpc.StatusCode, ErrorClass]] = {
    **{code: error_class for error_class, code in GRPC_CODES.items()},
    grpc.StatusCode.DEADLINE_EXCEEDED: ErrorClass.TRANSIENT,
    grpc.StatusCode.CANCELLED: ErrorClass.TRANSIENT,
    grpc.StatusCode.PERMISSION_DENIED: ErrorClass.AUTH,
    grpc.StatusCode.NOT_FOUND: ErrorClass.CONFIG,
    grpc.StatusCode.ALREADY_EXISTS: ErrorClass.CONFIG,
    grpc.StatusCode.UNKNOWN: ErrorClass.BUG,
    grpc.StatusCode.UNIMPLEMENTED: ErrorClass.BUG,
    grpc.StatusCode.DATA_LOSS: ErrorClass.BUG,
}

ERROR_TYPES: Final[dict[ErrorClass, type[WherryError]]] = {
    ErrorClass.TRANSIENT: TransientError,
    ErrorClass.THROTTLED: ThrottledError,
    ErrorClass.CONFIG: ConfigError,
    ErrorClass.AUTH: AuthError,
    ErrorClass.OFFSET_LOST: OffsetLostError,
    ErrorClass.SCHEMA: SchemaError,
    ErrorClass.FENCED: FencedError,
    ErrorClass.BUG: ConnectorBugError,
}


def error_for(error_class: ErrorClass | int, message: str, *, reason: str = "") -> WherryError:
    """Makes the error of a class.

    Args:
        error_class: The class; a number that is none (a newer peer's, or 0) counts as BUG.
        message: One sentence.
        reason: Upper-case constant; by default the name of the class.

    Returns:
        An instance of the matching subclass.
    """
    try:
        known = ErrorClass(error_class)
    except ValueError:
        known = ErrorClass.BUG
    return ERROR_TYPES[known](message, reason=reason)
