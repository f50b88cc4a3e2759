"""Keeps a small process small: what a data process would load or keep without need.

Call these once, early, in processes that move batches: sidecars and workers. They change nothing that such a process
does with Arrow.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from collections.abc import Sequence
from typing import Any, Final

# Of glibc's mallopt.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


class _Absent(importlib.abc.MetaPathFinder):
    """Says that a package isn't installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Refuses the package; everything else goes on to the other finders."""
        if fullname.partition(".")[0] == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def keep_pandas_out() -> None:
    """Makes pyarrow do without pandas in this process, unless the process has imported it already.

    The first `pa.array` of a process imports pandas where it is installed, only to ask whether its argument is a
    Series: 42 MB and a quarter of a second for nothing. pyarrow asks once and remembers.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _Absent("pandas")
    sys.meta_path.insert(0, finder)
    try:
        pa.array([""])
    finally:
        sys.meta_path.remove(finder)


def give_memory_back(*, arenas: int = 2, mmap_threshold: int = 4 << 20, trim_threshold: int = 4 << 20) -> None:
    """Has Arrow use the C library's heap, and glibc few arenas and return freed memory.

    Args:
        arenas: Heaps shared by all threads; by default glibc makes up to eight per core, each keeping what it had.
        mmap_threshold: Bytes from which a block is its own mapping, returned as soon as it is freed.
        trim_threshold: Free bytes at the end of a heap that are kept.
    """
    import ctypes

    import pyarrow as pa

    # Arrow's own allocator keeps what was freed; one heap is better than two.
    pa.set_memory_pool(pa.system_memory_pool())
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, arenas)
        mallopt(_M_MMAP_THRESHOLD, mmap_threshold)
        mallopt(_M_TRIM_THRESHOLD, trim_threshold)
