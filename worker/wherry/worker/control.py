"""The worker's line to the coordinator: takes up leases and opens Progress streams.

Decides which of the coordinator's endpoints to use. Channels are made here, after the fork, and never at import.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from wherry.contract import rpc
from wherry.contract.errors import ErrorClass, TransientError, WherryError
from wherry.control.v1 import lease_pb2, lease_pb2_grpc
from wherry.worker import executor

OPEN_TIMEOUT_S: Final = 10.0
# One try of OpenLease; the coordinator only looks something up.
OPEN_CALL_TIMEOUT_S: Final = 3.0
OPEN_PAUSE_FIRST_S: Final = 0.05
OPEN_PAUSE_MAX_S: Final = 1.0
UNIX_PREFIX: Final = "unix://"

_RETRIED: Final = frozenset({ErrorClass.TRANSIENT, ErrorClass.THROTTLED})


class Coordinator:
    """A connection to the coordinator that made a lease. Used by one lease."""

    def __init__(self, spec: lease_pb2.LeaseSpec, attempt: int) -> None:
        self._spec = spec
        self._attempt = attempt
        self._endpoints = usable_endpoints(spec.coordinator_endpoints)
        self._channel: Any = None
        self._turn = 0

    def open_lease(self, timeout_s: float = OPEN_TIMEOUT_S) -> lease_pb2.OpenLeaseResponse:
        """Take up the lease.

        Raises:
            FencedError: It is no longer ours to run.
            TransientError: The coordinator could not be reached in time.
        """
        request = lease_pb2.OpenLeaseRequest(
            lease_id=self._spec.lease_id,
            generation=self._spec.generation,
            attempt=self._attempt,
            worker=lease_pb2.WorkerIdentity(host=socket.gethostname(), pid=os.getpid(), executor=executor.own_id()),
            token=self._spec.token,
        )
        deadline = time.monotonic() + timeout_s
        pause_s = OPEN_PAUSE_FIRST_S
        while True:
            try:
                call_timeout_s = min(OPEN_CALL_TIMEOUT_S, max(0.1, deadline - time.monotonic()))
                answer: lease_pb2.OpenLeaseResponse = self._stub().OpenLease(request, timeout=call_timeout_s)
                return answer
            except grpc.RpcError as error:
                told = rpc.from_rpc_error(error)
            if told.error_class not in _RETRIED:
                raise told
            if time.monotonic() + pause_s >= deadline:
                raise TransientError(
                    f"the coordinator at {', '.join(self._endpoints)} did not hand out lease {self._spec.lease_id} "
                    f"within {timeout_s:g} s: {told}"
                )
            self.try_next()
            time.sleep(pause_s)
            pause_s = min(OPEN_PAUSE_MAX_S, pause_s * 2)

    def opening(self) -> lease_pb2.ProgressRequest:
        """Return the first message of a Progress stream."""
        return lease_pb2.ProgressRequest(
            open=lease_pb2.ProgressOpen(
                lease_id=self._spec.lease_id,
                generation=self._spec.generation,
                attempt=self._attempt,
                token=self._spec.token,
            )
        )

    def progress(self, requests: Iterator[lease_pb2.ProgressRequest]) -> Any:
        """Open a Progress stream and return its call."""
        return self._stub().Progress(requests)

    def try_next(self) -> None:
        """Give up the present connection; the next call uses the next endpoint."""
        if len(self._endpoints) > 1:
            self._turn += 1
            self.close()

    def close(self) -> None:
        """Close the connection. A later call opens another."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _stub(self) -> lease_pb2_grpc.LeaseServiceStub:
        if self._channel is None:
            endpoint = self._endpoints[self._turn % len(self._endpoints)]
            credentials = None
            if not endpoint.startswith(UNIX_PREFIX) and self._spec.coordinator_certificate:
                credentials = grpc.ssl_channel_credentials(self._spec.coordinator_certificate)
            self._channel = rpc.channel(endpoint, credentials=credentials)
        return lease_pb2_grpc.LeaseServiceStub(self._channel)  # type: ignore[no-untyped-call]  # generated


def usable_endpoints(endpoints: Sequence[str]) -> list[str]:
    """Return the endpoints that may be reached from this machine, best first.

    Raises:
        TransientError: There is none; on another machine a Unix socket of the coordinator means nothing.
    """
    usable = [
        endpoint
        for endpoint in endpoints
        if not endpoint.startswith(UNIX_PREFIX) or Path(endpoint.removeprefix(UNIX_PREFIX)).is_socket()
    ]
    if not usable:
        raise TransientError(f"none of the coordinator's endpoints ({', '.join(endpoints)}) is on this machine")
    return usable


def is_retried(error: WherryError) -> bool:
    """Whether the same call may succeed later."""
    return error.error_class in _RETRIED
