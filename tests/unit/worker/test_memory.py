"""Keeping a lease small."""

from __future__ import annotations

import sys

import psutil
import pyarrow as pa
import pytest

from wherry.worker import memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is tuned")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    memory.bound_allocator()
    process = psutil.Process()
    buffers = [pa.allocate_buffer(1 << 20) for _ in range(64)]
    for buffer in buffers:
        memoryview(buffer).cast("B")[:] = bytes(1 << 20)
    full = process.memory_info().rss
    buffers.clear()
    del buffer
    memory.give_back()
    assert process.memory_info().rss < full - (48 << 20)


def test_bounding_the_allocator_twice_is_harmless() -> None:
    memory.bound_allocator()
    memory.bound_allocator()
    assert pa.default_memory_pool().backend_name in {"system", "mimalloc", "jemalloc"}
