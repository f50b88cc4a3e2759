"""Which failures of a step are tried again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, of_value
from wherry.contract.errors import ConfigError, ErrorClass, ThrottledError, TransientError, WherryError
from wherry.worker.convert import DataError
from wherry.worker.convert.step import Stage, StageFailure, Stepped
from wherry.worker.counts import Counts
from wherry.worker.policy import RetryPolicy
from wherry.worker.retry import RETRIED_STAGES, BrokenOffError, Retrying

BATCH = of_value(pa.array([b"1"], pa.binary()))


class Scripted:
    """Fails as told, one outcome an attempt, then works."""

    def __init__(self, *outcomes: WherryError | tuple[Stage, ErrorClass]) -> None:
        self._outcomes = list(outcomes)
        self.calls = 0

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        self.calls += 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, WherryError):
            raise outcome
        if outcome is None:
            return Stepped(((batch, raw),))
        stage, error_class = outcome
        return Stepped((), (StageFailure(raw, 0, stage, "x", DataError("No.", error_class=error_class)),))


class Waits:
    def __init__(self, *, until: int = 1_000) -> None:
        self.seconds: list[float] = []
        self._until = until

    def __call__(self, seconds: float, reason: str) -> bool:
        self.seconds.append(seconds)
        return len(self.seconds) < self._until


def apply(step: Scripted, waits: Waits, timeout_s: float = -1) -> Stepped:
    return Retrying(RetryPolicy(timeout_s), lambda: 0.0, waits).apply(step.apply, BATCH, BATCH, Counts())


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("error_class", list(ErrorClass))
def test_rows_are_tried_again_in_the_stages_of_kafka_connect_when_they_may_pass(
    stage: Stage, error_class: ErrorClass
) -> None:
    step = Scripted((stage, error_class))
    apply(step, Waits())
    passing = error_class in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED)
    assert step.calls == (2 if passing and stage in RETRIED_STAGES else 1)


def test_a_step_that_is_throttled_is_left_alone_as_long_as_it_asks() -> None:
    waits = Waits()
    apply(Scripted(ThrottledError("Slowly.", retry_after_ms=5_000), TransientError("Away.")), waits)
    assert waits.seconds == [5.0, 0.6]


def test_what_no_further_attempt_would_change_is_raised_at_once() -> None:
    waits = Waits()
    with pytest.raises(ConfigError):
        apply(Scripted(ConfigError("Wrong.")), waits)
    assert waits.seconds == []


def test_the_end_of_the_lease_breaks_the_wait_off() -> None:
    with pytest.raises(BrokenOffError):
        apply(Scripted(*[TransientError("Away.")] * 5), Waits(until=3))
