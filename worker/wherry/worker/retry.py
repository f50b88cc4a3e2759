"""Trying steps again that may succeed later: a schema registry that is away, a transformation that was throttled.

As in Kafka Connect, only operations on records are tried again under `errors.retry.*`, that is transformations and
converters; polling and writing have their own ways of going on. A step is applied to its whole batch once more, so that
the order within a partition is kept; steps have no effects, so nothing comes twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wherry.contract.batch import Batch
from wherry.contract.errors import ErrorClass, ThrottledError, TransientError, WherryError
from wherry.worker.convert.step import Stage, StageFailure, Stepped
from wherry.worker.counts import Counts
from wherry.worker.policy import RetryPolicy

RETRIED_STAGES: Final = frozenset(
    {Stage.TRANSFORMATION, Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER}
)
RETRIED_CLASSES: Final = frozenset({ErrorClass.TRANSIENT, ErrorClass.THROTTLED})


class BrokenOffError(Exception):
    """The wait before another attempt was broken off: the lease is to end, and the batch is read again."""


class Retrying:
    """Applies steps, more than once if need be.

    Args:
        policy: How often and how long.
        clock: Seconds, rising.
        wait: Waits so many seconds, told what for; False when the lease is to end.
    """

    def __init__(self, policy: RetryPolicy, clock: Callable[[], float], wait: Callable[[float, str], bool]) -> None:
        self._policy = policy
        self._clock = clock
        self._wait = wait

    def apply(self, step: Callable[[Batch, Batch], Stepped], batch: Batch, raw: Batch, counts: Counts) -> Stepped:
        """Answers with what becomes of a batch, after as many attempts as it takes and the policy allows.

        Raises:
            BrokenOffError: The lease is to end.
            WherryError: The step failed as a whole, and further attempts are not allowed or would change nothing.
        """
        begun = self._clock()
        attempt = 0
        while True:
            attempt += 1
            failed, reason, asked_s = 1, "", 0.0
            try:
                stepped = step(batch, raw)
            except (TransientError, ThrottledError) as error:
                reason, asked_s = str(error), _asked_s(error)
                delay_s = self._policy.delay_s(attempt, begun, self._clock())
                if delay_s is None:
                    raise
            else:
                passing = [failure for failure in stepped.failures if _is_passing(failure)]
                if not passing:
                    return stepped
                failed, reason = len(passing), passing[0].error.message
                delay_s = self._policy.delay_s(attempt, begun, self._clock())
                if delay_s is None:
                    return stepped
            counts.failures += failed
            if not self._wait(max(delay_s, asked_s), reason):
                raise BrokenOffError
            counts.retries += failed


def _is_passing(failure: StageFailure) -> bool:
    return failure.stage in RETRIED_STAGES and failure.error.error_class in RETRIED_CLASSES


def _asked_s(error: WherryError) -> float:
    return error.retry_after_ms / 1000 if isinstance(error, ThrottledError) else 0.0
