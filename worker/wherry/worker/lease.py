"""The life of a lease in a worker: taken up, run until it ends, and told about. Spark's task calls `run`.

Decides what becomes of an error: replace the sidecar and go on, or end the lease with its class. Invariants: `run`
never raises, because one failing task cancels the others of its Spark job; a fenced lease says nothing more than that;
a new pipeline starts from the positions that are durable, so that nothing is lost and only what was not flushed is
read again.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
import traceback
from dataclasses import dataclass
from typing import Any, Final

from wherry.contract import from_proto, telemetry, to_proto, trace
from wherry.contract.errors import ErrorClass, FencedError, ThrottledError, WherryError
from wherry.control.v1 import lease_pb2
from wherry.worker import control, orphans, pipeline, pump
from wherry.worker.policy import LeasePolicy
from wherry.worker.progress import (
    DEFAULT_COORDINATOR_TIMEOUT_S,
    DEFAULT_REPORT_INTERVAL_S,
    Progress,
)
from wherry.worker.recovery import Recovery
from wherry.worker.sidecars import Sidecars
from wherry.worker.signals import Assignment, EndReason, Phase, Signals

SPLIT_WAIT_S: Final = 0.5
TRACE_CHARACTERS_MAX: Final = 16_000
UNSURE: Final = "The lease was to end while it was not known what had become of its last transaction."
# How long the end of a lease waits for a collector of traces.
TRACES_FLUSH_S: Final = 0.5

_log = logging.getLogger(__name__)


def run(spec_bytes: bytes) -> dict[str, Any]:
    """Run one lease to its end. Never raises.

    Args:
        spec_bytes: A serialized LeaseSpec.

    Returns:
        lease_id, connector, reason (number of EndReason), error_class (number, 0 for none), message, trace, and whether
        the coordinator was `told` through the Progress stream.
    """
    spec = lease_pb2.LeaseSpec()
    outcome, told = Outcome(EndReason.FAILED), False
    try:
        orphans.end_with_parent()
        spec.ParseFromString(spec_bytes)
        _set_up_tracing()
        outcome, told = _run(spec, attempt_number())
    except BaseException as error:
        outcome = _failure(error)
    return {
        "lease_id": spec.lease_id,
        "connector": spec.connector,
        "reason": int(outcome.reason),
        "error_class": int(outcome.error_class or 0),
        "message": outcome.message,
        "trace": outcome.trace,
        "told": told,
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a lease ended; the fields are those of the wire's LeaseEnded."""

    reason: EndReason
    error_class: ErrorClass | None = None
    message: str = ""
    trace: str = ""


class LeaseSignals(Signals):
    """Signals that remember which split the pump has taken, so that a new pipeline can go on with it."""

    def __init__(self, first: Assignment | None, *, paused: bool) -> None:
        super().__init__(paused=paused)
        self.taken = first

    def take_assignment(self) -> Assignment | None:
        """Take the next assignment; None when there is none yet."""
        assignment = super().take_assignment()
        if assignment is not None:
            self.taken = assignment
        return assignment

    @property
    def interrupted(self) -> bool:
        """Whether there is no use in waiting for anything more."""
        return self.fenced is not None or self.drain_seconds is not None


class Lease:
    """One lease from its grant to its end."""

    def __init__(
        self, grant: lease_pb2.OpenLeaseResponse, signals: LeaseSignals, progress: Progress, sidecars: Sidecars
    ) -> None:
        self._grant = grant
        self._signals = signals
        self._progress = progress
        self._sidecars = sidecars
        self._recovery = Recovery()
        self._unsure = False
        """A transaction was left to itself: its commit may have been on its way."""
        wire = grant.policy
        self._policy = LeasePolicy.of(
            grant.worker_config,
            report_interval_ms=wire.report_interval_ms,
            commit_interval_ms=wire.commit_interval_ms,
            idle_park_ms=wire.idle_park_ms,
            drain_timeout_ms=wire.drain_timeout_ms,
        )

    def run(self) -> Outcome:
        """Run pipelines, one after another, until the lease ends."""
        while True:
            try:
                return Outcome(self._run_pipeline())
            except InterruptedError:
                return self._interruption()
            except FencedError as error:
                return Outcome(EndReason.FENCED, ErrorClass.FENCED, str(error))
            except WherryError as error:
                self._unsure = self._grant.HasField("exactly_once")
                if self._signals.fenced is not None:
                    return self._interruption()
                if not self._may_try_again(error):
                    return _failure(error)

    def _run_pipeline(self) -> EndReason:
        grant = self._current_grant()
        if grant is None:
            return EndReason.SPLITS_DONE
        endpoints = self._sidecars.acquire(grant.sidecars, interrupted=lambda: self._signals.interrupted)
        self._progress.use_sidecars(self._sidecars.pids)
        built = pipeline.build(
            grant,
            endpoints,
            lookup=self._progress.query,
            transforms=self._sidecars.transforms,
            interrupted=lambda: self._signals.interrupted,
            confirm=self._progress.confirm,
        )
        self._unsure = False
        # Told at once: others may be waiting for their turn to start.
        self._progress.report(phase=Phase.PAUSED if grant.paused else Phase.RUNNING)
        try:
            return pump.run(built, self._policy, self._signals, self._progress)
        finally:
            built.close()

    def _current_grant(self) -> lease_pb2.OpenLeaseResponse | None:
        """Return the grant as it would be made now: with the split taken last and the durable positions."""
        grant = lease_pb2.OpenLeaseResponse()
        grant.CopyFrom(self._grant)
        positions = {position.partition_json: position for position in grant.positions}
        if grant.split:
            taken = self._signals.taken
            if taken is None or taken.work is None or self._progress.is_split_done(taken.work.id):
                taken = self._next_split()
            if taken.work is None:
                return None
            grant.work.CopyFrom(to_proto.work(taken.work))
            positions.update({position.partition: to_proto.position(position) for position in taken.positions})
        positions.update({position.partition: to_proto.position(position) for position in self._progress.durable})
        grant.ClearField("positions")
        grant.positions.extend(positions.values())
        grant.paused = self._signals.paused
        return grant

    def _next_split(self) -> Assignment:
        assignment = self._signals.take_assignment()
        if assignment is None:
            self._progress.report(phase=Phase.RUNNING, want_split=True)
        while assignment is None:
            if self._signals.interrupted:
                raise InterruptedError
            self._signals.wait(SPLIT_WAIT_S)
            assignment = self._signals.take_assignment()
        return assignment

    def _may_try_again(self, error: WherryError) -> bool:
        """Wait and return true, or return false when the fault is for the coordinator to judge."""
        if not control.is_retried(error):
            return False
        retry_after_s = error.retry_after_ms / 1000 if isinstance(error, ThrottledError) else 0.0
        pause_s = self._recovery.pause_s(time.monotonic(), retry_after_s)
        if pause_s is None:
            return False
        _log.warning("lease goes on in %g s after fault %d: %s", pause_s, self._recovery.count, error)
        self._progress.report(phase=Phase.RETRYING, trouble=str(error))
        deadline = time.monotonic() + pause_s
        while not self._signals.interrupted and time.monotonic() < deadline:
            self._signals.wait(min(SPLIT_WAIT_S, max(0.001, deadline - time.monotonic())))
        return True

    def _interruption(self) -> Outcome:
        fenced = self._signals.fenced
        if fenced is not None:
            return Outcome(EndReason.FENCED, ErrorClass.FENCED, fenced)
        if self._unsure:
            return Outcome(EndReason.FAILED, ErrorClass.TRANSIENT, UNSURE)
        # A drain came while nothing was open: what is durable has been reported.
        return Outcome(EndReason.DRAINED)


def attempt_number() -> int:
    """Return Spark's number of this attempt, 0 outside of Spark."""
    try:
        from pyspark import TaskContext
    except ImportError:
        return 0
    context = TaskContext.get()
    return int(context.attemptNumber()) if context is not None else 0


@functools.cache
def _set_up_tracing() -> None:
    """Turn tracing on where it is asked for, once in a process: Spark gives a worker one lease after another."""
    telemetry.setup("wherry-worker")


def _run(spec: lease_pb2.LeaseSpec, attempt: int) -> tuple[Outcome, bool]:
    """Take up a lease and run it; return how it ended, and whether the coordinator was told."""
    coordinator = control.Coordinator(spec, attempt)
    try:
        try:
            grant = coordinator.open_lease()
        except FencedError as error:
            return Outcome(EndReason.FENCED, ErrorClass.FENCED, str(error)), False
        return _follow(coordinator, grant, spec, f"{spec.lease_id}/{attempt}")
    finally:
        coordinator.close()


def _follow(
    coordinator: control.Coordinator, grant: lease_pb2.OpenLeaseResponse, spec: lease_pb2.LeaseSpec, holder: str
) -> tuple[Outcome, bool]:
    first = None
    if grant.split and grant.HasField("work"):
        first = Assignment(from_proto.work(grant.work), from_proto.positions(grant.positions))
    signals = LeaseSignals(first, paused=grant.paused)
    progress = Progress(
        coordinator,
        signals,
        report_interval_s=grant.policy.report_interval_ms / 1000 or DEFAULT_REPORT_INTERVAL_S,
        coordinator_timeout_s=grant.policy.coordinator_timeout_ms / 1000 or DEFAULT_COORDINATOR_TIMEOUT_S,
    )
    sidecars = Sidecars(grant.host_endpoint, holder)
    progress.start()
    try:
        attributes = {"wherry.connector": spec.connector, "wherry.lease": spec.lease_id}
        with trace.span("lease", parent=spec.traceparent, attributes=attributes):
            outcome = Lease(grant, signals, progress, sidecars).run()
    except Exception as error:
        outcome = _failure(error)
    if trace.enabled():
        # Before the coordinator knows: when its last lease has ended it ends this process.
        telemetry.flush(TRACES_FLUSH_S)
    ended = lease_pb2.LeaseEnded(
        reason=int(outcome.reason),  # type: ignore[arg-type]  # the enums share their numbers
        error_class=int(outcome.error_class or 0),  # type: ignore[arg-type]
        message=outcome.message,
        trace=outcome.trace,
    )
    told = progress.finish(ended)
    with contextlib.suppress(WherryError):
        sidecars.release()
    return outcome, told


def _failure(error: BaseException) -> Outcome:
    """Return how a lease ends with an error. One that is not of the contract is our own fault: it is told whole."""
    if isinstance(error, FencedError):
        return Outcome(EndReason.FENCED, ErrorClass.FENCED, str(error))
    text = "".join(traceback.format_exception(error))[-TRACE_CHARACTERS_MAX:]
    if isinstance(error, WherryError):
        return Outcome(EndReason.FAILED, error.error_class, str(error), text)
    return Outcome(EndReason.FAILED, ErrorClass.BUG, f"{type(error).__name__}: {error}", text)
