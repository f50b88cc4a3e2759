"""Stopping by signal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from wherry.coordinator.cli import signals


@pytest.fixture(autouse=True)
def handlers_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_unwinds_and_the_second_would_kill(number: signal.Signals, code: int) -> None:
    signals.install()
    with pytest.raises(signals.StopRequested) as stop:
        os.kill(os.getpid(), number)
    assert stop.value.exit_code == code
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_no_library_takes_a_stop_for_a_failure() -> None:
    assert not issubclass(signals.StopRequested, Exception)
