"""Who shares a call with whom."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from wherry.coordinator.coalesce import Coalesced

DEADLINE_S = 60.0


class Slow:
    """Answers with the number of the call, once it is let."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)

    def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        self.begun.release()
        assert self.may_end.acquire(timeout=DEADLINE_S)
        if number == 3:
            raise LookupError("gone")
        return number


def test_askers_during_a_call_share_the_next_one_and_never_that_under_way() -> None:
    slow = Slow()
    ask = Coalesced(slow)
    with ThreadPoolExecutor(16) as pool:
        first = pool.submit(ask)
        assert slow.begun.acquire(timeout=DEADLINE_S)
        others = [pool.submit(ask) for _ in range(10)]
        deadline = time.monotonic() + DEADLINE_S
        while len(ask._changed._waiters) < len(others) and time.monotonic() < deadline:  # type: ignore[attr-defined]
            time.sleep(0.001)
        slow.may_end.release()
        assert first.result(DEADLINE_S) == 1
        slow.may_end.release()
        assert {other.result(DEADLINE_S) for other in others} <= {2}
    assert slow.calls == 2


def test_an_error_is_everybodys_and_not_kept() -> None:
    slow = Slow()
    slow.may_end.release(4)
    ask = Coalesced(slow)
    assert [ask(), ask()] == [1, 2]
    with pytest.raises(LookupError):
        ask()
    assert ask() == 4
