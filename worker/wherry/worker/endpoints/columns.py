"""Arrow columns from Python lists, made the quick way.

`pyarrow.array` walks a list of bytes one by one and grows its buffers as it goes, which costs ten times as much per
record as joining the bytes and adding up their lengths.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, TIMESTAMP_TYPE

_SECOND: Final = operator.itemgetter(1)


def binary_array(values: list[bytes | None]) -> pa.Array:
    """Makes a binary column; None is null. The bytes together must stay below 2 GiB, as every batch does."""
    rows = len(values)
    validity, nulls = None, values.count(None)
    filled: Sequence[bytes] = values  # type: ignore[assignment]  # no None is left in it below
    if nulls:
        present = np.fromiter((value is not None for value in values), np.bool_, rows)
        validity = pa.py_buffer(np.packbits(present, bitorder="little"))
        filled = [value or b"" for value in values]
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.fromiter(map(len, filled), np.int32, rows), out=offsets[1:])
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(filled))]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, null_count=nulls)


def timestamp_array(timestamps: list[tuple[int, int]]) -> pa.Array:
    """Makes a timestamp column from what `Message.timestamp` says: kind and ms, negative where there is none."""
    times = np.fromiter(map(_SECOND, timestamps), np.int64, len(timestamps))
    missing = times < 0
    if missing.any():
        return pa.array(times, pa.int64(), mask=missing).cast(TIMESTAMP_TYPE)
    return pa.Array.from_buffers(TIMESTAMP_TYPE, len(times), [None, pa.py_buffer(times)], null_count=0)


def headers_array(headers: Sequence[list[tuple[str, bytes | None]] | None]) -> pa.Array:
    """Makes a column of HEADERS_TYPE from the headers of messages; None means none."""
    offsets: list[int] = [0]
    names: list[str] = []
    values: list[bytes | None] = []
    for pairs in headers:
        for name, value in pairs or ():
            names.append(name)
            values.append(value)
        offsets.append(len(names))
    fields = [HEADERS_TYPE.value_type.field(0), HEADERS_TYPE.value_type.field(1)]
    structs = pa.StructArray.from_arrays([pa.array(names, pa.string()), binary_array(values)], fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=HEADERS_TYPE)
