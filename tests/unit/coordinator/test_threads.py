"""Threads come with work and go without."""

from __future__ import annotations

import threading
import time

import pytest

from wherry.coordinator.threads import Threads

DEADLINE_S = 60.0


def eventually(threads: Threads, count: int) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while threads.count != count and time.monotonic() < deadline:
        time.sleep(0.005)
    return threads.count == count


def test_what_hangs_holds_up_nothing_else() -> None:
    threads, hang, done = Threads("t", 8), threading.Event(), threading.Event()
    threads.submit(lambda: hang.wait(DEADLINE_S) and None)
    threads.submit(done.set)
    assert done.wait(DEADLINE_S)
    hang.set()


def test_there_are_never_more_than_may_be_and_all_work_is_done() -> None:
    threads, hang, done = Threads("t", 3), threading.Event(), threading.Semaphore(0)

    def act() -> None:
        assert hang.wait(DEADLINE_S)
        done.release()

    for _ in range(50):
        threads.submit(act)
    assert threads.count == 3
    hang.set()
    assert all(done.acquire(timeout=DEADLINE_S) for _ in range(50))


def test_threads_without_work_go_and_new_ones_come() -> None:
    threads, hang, done = Threads("t", 20, idle_s=0.05), threading.Event(), threading.Semaphore(0)
    for _ in range(20):
        threads.submit(lambda: hang.wait(DEADLINE_S) and None)
    assert threads.count == 20
    hang.set()
    assert eventually(threads, 0)
    threads.submit(done.release)
    assert done.acquire(timeout=DEADLINE_S)


def test_a_thread_that_has_work_now_and_then_is_kept() -> None:
    threads, seen = Threads("t", 20, idle_s=DEADLINE_S), set()
    for _ in range(10):
        done = threading.Event()

        def act(done: threading.Event = done) -> None:
            seen.add(threading.get_ident())
            done.set()

        threads.submit(act)
        assert done.wait(DEADLINE_S)
        until = time.monotonic() + DEADLINE_S
        while threads._idle < threads.count and time.monotonic() < until:
            time.sleep(0.001)
    threads.close()
    assert len(seen) == 1


def test_something_unforeseen_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    threads, done = Threads("t", 1), threading.Event()
    threads.submit(lambda: [][0])
    threads.submit(done.set)
    assert done.wait(DEADLINE_S)
    assert "unforeseen" in caplog.text


def test_after_the_end_nothing_is_begun() -> None:
    threads, hang, done = Threads("t", 1), threading.Event(), threading.Event()
    threads.submit(lambda: hang.wait(DEADLINE_S) and None)
    threads.submit(done.set)
    threads.close()
    hang.set()
    threads.submit(done.set)
    assert eventually(threads, 0)
    assert not done.is_set()
