"""Cuts a file into splits that can be read on their own, without loading it whole.

CSV is cut at record ends, which are line ends outside quotes: while the file streams by, quotes are counted, and an
even count says "outside". JSON lines are cut at line ends, Parquet at row groups, Avro at its sync markers (found by
the reader). A compressed file is one split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from wherry_spooldir.formats import BadFileError, Format, compression_of

BLOCK_BYTES = 4 << 20
LINE_END_SEARCH_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """A split: bytes of the file, or row groups of a Parquet file; `end` is exclusive."""

    start: int
    end: int


def ranges(path: Path, kind: Format, *, split_bytes: int, quote: str | None) -> list[Range]:
    """Cuts a file.

    Args:
        path: The file.
        kind: Its format.
        split_bytes: Size that a split should have.
        quote: Quote character of CSV, or None where none can be trusted: then the file is one split.

    Raises:
        BadFileError: The file isn't what its format says.
    """
    size = path.stat().st_size
    if kind is Format.PARQUET:
        return _row_groups(path, split_bytes)
    if compression_of(path) or size <= split_bytes or (kind is Format.CSV and quote is None):
        return [Range(0, size)]
    if kind is Format.AVRO:
        edges = [*range(0, size, split_bytes), size]
    else:
        mark = (quote or "").encode() if kind is Format.CSV else b""
        edges = [0, *_record_ends(path, size, split_bytes, mark), size]
    return [Range(a, b) for a, b in pairwise(edges) if b > a]


def _record_ends(path: Path, size: int, split_bytes: int, quote: bytes) -> Iterator[int]:
    """The first record end at or after each multiple of the split size."""
    with path.open("rb") as file:
        at, quotes, wanted = 0, 0, split_bytes
        while wanted < size:
            quotes = _count_to(file.read, wanted - at, quote, quotes)
            at = wanted
            end = _next_record_end(file.read, at, quote, quotes)
            if end is None or end >= size:
                return
            yield end
            quotes, at = 0, end  # a record end is outside quotes by definition
            file.seek(end)
            wanted = max(end + split_bytes, end + 1)


def _count_to(read: Callable[[int], bytes], count: int, quote: bytes, quotes: int) -> int:
    while count > 0:
        block = read(min(count, BLOCK_BYTES))
        if not block:
            break
        count -= len(block)
        if quote:
            quotes += block.count(quote)
    return quotes


def _next_record_end(read: Callable[[int], bytes], at: int, quote: bytes, quotes: int) -> int | None:
    searched = 0
    while searched < LINE_END_SEARCH_BYTES_MAX:
        block = read(BLOCK_BYTES)
        if not block:
            return None
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            quotes += block.count(quote, start, end) if quote else 0
            if quotes % 2 == 0:
                return at + searched + end + 1
            start = end + 1
        quotes += block.count(quote, start) if quote else 0
        searched += len(block)
    raise BadFileError(f"no record ends within {LINE_END_SEARCH_BYTES_MAX >> 20} MiB after byte {at}; is a quote open?")


def _row_groups(path: Path, split_bytes: int) -> list[Range]:
    import pyarrow.parquet as pq  # heavy; only where there is Parquet

    try:
        with pq.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFileError(f"this is not a Parquet file: {error}") from None
    found: list[Range] = []
    start, gathered = 0, 0
    for i, size in enumerate(sizes):
        gathered += size
        if gathered >= split_bytes:
            found.append(Range(start, i + 1))
            start, gathered = i + 1, 0
    if start < len(sizes) or not found:
        found.append(Range(start, len(sizes)))
    return found
