"""Large record batches as Arrow's IPC message, without a copy of what they hold: pieces that lie where they are."""

from __future__ import annotations

import bisect
import itertools

import pyarrow as pa


class Pieces:
    """The bytes of a record batch message, as `RecordBatch.serialize` would give them in one."""

    def __init__(self, records: pa.RecordBatch) -> None:
        sink = _Sink()
        with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), records.schema) as writer:
            # The first write brings the schema's message, too.
            writer.write_batch(records)
            parts = sink.parts.copy()
        skipped = records.schema.serialize().size
        ends = list(itertools.accumulate(part.size for part in parts))
        first = bisect.bisect_right(ends, skipped)
        self._parts = parts[first:]
        self._starts = [end - part.size - skipped for end, part in zip(ends[first:], self._parts, strict=True)]
        self.size = ends[-1] - skipped

    def slice(self, start: int, length: int) -> pa.Buffer:
        """Returns some of the bytes; a copy only where they lie in several places."""
        place = bisect.bisect_right(self._starts, start) - 1
        within = start - self._starts[place]
        if within + length <= self._parts[place].size:
            return self._parts[place].slice(within, length)
        views = []
        while length > 0:
            view = memoryview(self._parts[place])[within : within + length]
            views.append(view)
            length -= len(view)
            place, within = place + 1, 0
        return pa.py_buffer(b"".join(views))


class _Sink:
    """A file that keeps what is written, buffer by buffer: Arrow hands over its own."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[pa.Buffer] = []

    def write(self, data: bytes | pa.Buffer) -> int:
        """Takes the next bytes."""
        part = pa.py_buffer(data) if isinstance(data, bytes) else data
        if part.size:
            self.parts.append(part)
        return int(part.size)

    def tell(self) -> int:
        """Returns how much has been written."""
        return sum(part.size for part in self.parts)

    def flush(self) -> None:
        """Does nothing: nothing is held back."""

    def close(self) -> None:
        """Does nothing: the parts stay."""
