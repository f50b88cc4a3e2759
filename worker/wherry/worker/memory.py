"""Keeping a lease small: how memory is taken from the system and given back.

By itself glibc gives each thread an arena of its own and keeps what was freed, and Arrow's allocator keeps its own
share; a lease that once moved 300,000 records a second then holds 100 MB for ever. Here all take from few arenas that
are trimmed, and a lease that comes to rest gives back what it doesn't need. Without glibc nothing is done.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Final

import pyarrow as pa

# Numbers of glibc's mallopt.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

ARENAS_MAX: Final = 2
# Freed memory at the top of the heap beyond this goes back to the system at once.
KEPT_BYTES: Final = 8 * 1024 * 1024
# Batches come from the heap, where their memory is used again; mapping them anew each time costs page faults.
MAPPED_BYTES_MIN: Final = 32 * 1024 * 1024


@functools.cache
def bound_allocator() -> None:
    """Bounds what allocators keep, once in a process."""
    library = _glibc()
    if library is None:
        return
    library.mallopt(_M_ARENA_MAX, ARENAS_MAX)
    library.mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES_MIN)
    library.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back() -> None:
    """Returns free memory to the system; takes about a millisecond."""
    pa.default_memory_pool().release_unused()
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


@functools.cache
def _glibc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
