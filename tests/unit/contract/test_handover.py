"""The bounded queue between threads."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from wherry.contract.handover import Handover


def test_items_come_in_the_order_they_were_put() -> None:
    handover: Handover[int] = Handover(3)
    for item in range(3):
        handover.put(item)
    assert [handover.get() for _ in range(3)] == [0, 1, 2]


def test_a_full_queue_refuses_after_the_time_given() -> None:
    handover: Handover[int] = Handover(1)
    handover.put(1)
    with pytest.raises(queue.Full):
        handover.put_nowait(2)
    begun = time.monotonic()
    with pytest.raises(queue.Full):
        handover.put(2, timeout=0.05)
    assert 0.05 <= time.monotonic() - begun < 60.0


def test_who_waits_for_room_goes_on_when_there_is_some() -> None:
    handover: Handover[int] = Handover(1)
    handover.put(1)
    waiter = threading.Thread(target=handover.put, args=(2,), daemon=True)
    waiter.start()
    assert handover.get() == 1
    assert handover.get(timeout=60.0) == 2
    waiter.join(60.0)


def test_an_empty_queue_says_so_at_once_or_after_the_time_given() -> None:
    handover: Handover[int] = Handover(1)
    with pytest.raises(queue.Empty):
        handover.get_nowait()
    with pytest.raises(queue.Empty):
        handover.get(timeout=0.01)
