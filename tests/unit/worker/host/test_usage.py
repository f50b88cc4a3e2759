"""What processes use."""

from __future__ import annotations

import os

from wherry.worker.host.usage import family_of, usage_of


def test_our_own_use_is_seen() -> None:
    usage = usage_of(os.getpid())
    assert usage.rss_bytes > 10_000_000
    assert usage.cpu_ms > 0


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert usage_of(2**22 - 3).rss_bytes == 0


def test_a_process_is_of_its_own_family() -> None:
    assert next(family_of(os.getpid())) == os.getpid()
