r"""Cuts bytes into lines. Pure: no file, no clock.

A line ends with `\n`, `\r\n` or `\r`, as in Kafka Connect; a `\r` at the very end waits for the byte after it. A last
line without an end is held back until it has one. Positions count bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Cut:
    """What a run of bytes holds."""

    lines: pa.StringArray
    """Complete lines without their ends; bytes that aren't UTF-8 are U+FFFD."""
    byte_count: int
    """Bytes of the complete lines with their ends."""


def cut(data: bytes, *, last: bool = False) -> Cut:
    """Cuts the complete lines off the front of some bytes.

    Args:
        data: Bytes from the start of a line on.
        last: Nothing will ever follow, so that what is left is a line too.
    """
    if b"\r" in data:
        return _cut_any(data, last)
    end = len(data) if last else data.rfind(b"\n") + 1
    if end == 0:
        return Cut(pa.array([], pa.string()), 0)
    body = data[: end - 1] if data[end - 1 : end] == b"\n" else data[:end]
    lines = pc.split_pattern(pa.array([body], pa.binary()), pattern=b"\n")[0].values
    return Cut(_as_text(lines), end)


def _cut_any(data: bytes, last: bool) -> Cut:
    lines: list[bytes] = []
    start = 0
    for match in _LINE_END.finditer(data):
        if match.end() == len(data) and match.group() == b"\r" and not last:
            break  # the next byte may be the other half of this end
        lines.append(data[start : match.start()])
        start = match.end()
    if last and start < len(data):
        lines.append(data[start:])
        start = len(data)
    return Cut(_as_text(pa.array(lines, pa.binary())), start)


def _as_text(lines: pa.BinaryArray) -> pa.StringArray:
    try:
        return lines.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([line.decode("utf-8", "replace") for line in lines.to_pylist()], pa.string())
