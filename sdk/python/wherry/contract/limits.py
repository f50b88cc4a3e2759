"""Every named limit of the sidecar contract, in one place.

Sizes are defaults that Hello may lower (the smaller of both sides' holds); times are fixed by the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Revisions of the contract that this code speaks.
REVISION_MIN: Final = 1
REVISION_MAX: Final = 1

# Sizes, stated in Hello.
MESSAGE_BYTES_MAX: Final = 16 * MIB
FRAME_BYTES_TARGET: Final = 2 * MIB
ROW_BYTES_MAX: Final = 64 * MIB
FRAMES_UNACKED_MAX: Final = 8
BYTES_UNACKED_MAX: Final = 16 * MIB
FRAME_CHUNKS_MAX: Final = 1024

# What one frame may carry beside rows.
ROW_ERROR_MESSAGE_BYTES_MAX: Final = KIB
ROW_ERROR_RAW_BYTES_MAX: Final = MIB
SCHEMAS_PER_STREAM_MAX: Final = 256

DESCRIPTOR_BYTES_MAX: Final = 64 * KIB
TOKEN_BYTES_MAX: Final = 64 * KIB
# gRPC sends a status in HTTP/2 headers, which peers bound to 8 KiB.
STATUS_MESSAGE_BYTES_MAX: Final = 2 * KIB

# Times.
HEARTBEAT_INTERVAL_S: Final = 10.0
STREAM_SILENCE_MAX_S: Final = 60.0
UNARY_DEADLINE_S: Final = 30.0
HELLO_DEADLINE_S: Final = 5.0
STOP_DEADLINE_S: Final = 5.0
STREAM_OPEN_DEADLINE_S: Final = 30.0
RECONNECT_BACKOFF_INITIAL_MS: Final = 50
RECONNECT_BACKOFF_MAX_MS: Final = 1000
CONNECT_TIMEOUT_MS: Final = 5000
"""For one attempt to connect, up to the other side's first word: on a busy machine a TLS handshake takes a second.
A refused attempt ends at once all the same."""

# Retries of unary calls.
RETRY_ATTEMPTS_MAX: Final = 20
RETRY_WAIT_INITIAL_S: Final = 0.05
RETRY_WAIT_MAX_S: Final = 2.0
SOCKET_PATH_BYTES_MAX: Final = 105
"""The kernel's 108 bytes hold an end mark too, and gRPC counts the two slashes of `unix://` as part of the path."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that one side of a connection can bear; see the proto message of the same name.

    Attributes:
        message_bytes_max: Largest gRPC message.
        frame_bytes_target: Size that a batch frame aims at under load.
        row_bytes_max: Largest single row.
        frames_unacked_max: Frames that may be under way on one stream.
        bytes_unacked_max: Bytes that may be under way on one stream.
    """

    message_bytes_max: int = MESSAGE_BYTES_MAX
    frame_bytes_target: int = FRAME_BYTES_TARGET
    row_bytes_max: int = ROW_BYTES_MAX
    frames_unacked_max: int = FRAMES_UNACKED_MAX
    bytes_unacked_max: int = BYTES_UNACKED_MAX

    def meet(self, other: Limits) -> Limits:
        """Returns the limits that hold between two sides: the smaller of each."""
        return Limits(
            min(self.message_bytes_max, other.message_bytes_max),
            min(self.frame_bytes_target, other.frame_bytes_target),
            min(self.row_bytes_max, other.row_bytes_max),
            min(self.frames_unacked_max, other.frames_unacked_max),
            min(self.bytes_unacked_max, other.bytes_unacked_max),
        )
