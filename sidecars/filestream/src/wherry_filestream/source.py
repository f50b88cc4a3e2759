"""FileStreamSource: follows a file and sends each line, with the time at which it was read.

Where Kafka Connect's own is defective this one is not: positions count bytes, a file that was truncated or replaced is
noticed, and no line is kept back because `batch.size` lines were read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.contract.batch import Constants
from wherry.contract.errors import ConfigError
from wherry.sdk import Batch, CaughtUp, Config, Mark, Offsets, Plan, Source, Task, Work, key
from wherry_filestream.lines import cut

FILENAME = "filename"
POSITION = "position"
READ_BYTES = 2 << 20
LINE_BYTES_MAX = 64 << 20
IDLE_WAIT_S = 0.05
BATCH_SIZE_DEFAULT = 2_000
LINES = pa.schema([pa.field("value", pa.string(), nullable=False)])
"""Kafka Connect's schema of a line: a required text."""


class FileStreamSourceConfig(Config):
    """Kafka Connect's keys."""

    file: str | None = key(default=None, doc="Source filename.", importance="high")
    topic: str = key(doc="The topic to publish data to.", importance="high", non_empty=True)
    batch_size: int = key(
        default=BATCH_SIZE_DEFAULT,
        doc="The maximum number of records the source task can read from the file each time it is polled.",
        importance="low",
    )


class FileStreamSource(Source[FileStreamSourceConfig]):
    """Follows a text file and sends each complete line."""

    class_name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    aliases = ("FileStreamSource", "FileStreamSourceConnector")
    parkable = False  # the file grows without telling anyone

    @classmethod
    def validate(cls, config: FileStreamSourceConfig, connect: bool) -> Mapping[str, str]:
        """A sidecar has no standard input to read instead of a file."""
        if not config.file:
            return {"file": "A file must be named: a connector in a process of its own has no standard input."}
        return {}

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """Always one task."""
        return Plan(tasks=[Task(partitions=[{FILENAME: self.config.file}])])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch | Mark | CaughtUp]:
        """Reads from the stored position on, for as long as the task runs."""
        if not self.config.file:
            raise ConfigError(
                "A file must be named: a connector in a process of its own has no standard input.", key="file"
            )
        path = Path(self.config.file)
        stored = offsets.get({FILENAME: self.config.file}) or {}
        position = int(stored.get(POSITION, 0))
        while not self.stopping:
            descriptor = yield from self._opened(path)
            if descriptor is None:
                return
            try:
                yield from self._follow(path, descriptor, position)
            finally:
                os.close(descriptor)
            position = 0  # whatever is there next is another file

    def _opened(self, path: Path) -> Any:
        """Waits for the file; returns None when the work ends before it comes."""
        told = False
        while not self.stopping:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                if path.is_dir():
                    os.close(descriptor)
                    raise IsADirectoryError(f"{path} is a directory")
                return descriptor
            except OSError as error:
                if not told:
                    self.log.warning(f"waiting for {path}: {error.strerror or error}")
                    told = True
                yield CaughtUp()
                self.wait(1.0)
        return None

    def _follow(self, path: Path, descriptor: int, position: int) -> Iterator[Batch | Mark | CaughtUp]:
        """Sends lines until the file is replaced or the work ends."""
        if position > os.fstat(descriptor).st_size:
            self.log.warning(f"{path} is shorter than position {position}: it was truncated; reading from its start")
            position = 0
        held, idle = b"", False
        while not self.stopping:
            data = os.pread(descriptor, READ_BYTES, position + len(held))
            if data:
                held, position = yield from self._send(held + data, position)
                idle = False
                continue
            if not idle:
                idle = True
                yield CaughtUp()
            change = _change(path, descriptor, position + len(held))
            if change == "truncated":
                self.log.warning(f"{path} was truncated; reading from its start")
                held, position = b"", 0
                yield Mark(0, {FILENAME: self.config.file}, {POSITION: 0})
            elif change == "replaced" and os.pread(descriptor, 1, position + len(held)):
                continue  # written between the look at its end and the look at its name
            elif change == "replaced":
                self.log.info(f"{path} was replaced; reading the new file")
                yield from self._send(held, position, last=True)
                yield Mark(0, {FILENAME: self.config.file}, {POSITION: 0})
                return
            else:
                self.wait(IDLE_WAIT_S)

    def _send(self, data: bytes, position: int, *, last: bool = False) -> Any:
        """Sends the complete lines of some bytes; returns what is left, and the position it starts at."""
        found = cut(data, last=last)
        if len(data) - found.byte_count > LINE_BYTES_MAX:
            raise ConfigError(
                f"The line at byte {position + found.byte_count} of {self.config.file} is longer than "
                f"{LINE_BYTES_MAX >> 20} MiB; this isn't a file of lines.",
                key="file",
            )
        now = Constants(topic=self.config.topic, timestamp_ms=time.time_ns() // 1_000_000)
        for start in range(0, len(found.lines), self._rows_max):
            lines = found.lines.slice(start, self._rows_max)
            done = start + len(lines) == len(found.lines)
            marks = (
                [Mark(len(lines), {FILENAME: self.config.file}, {POSITION: position + found.byte_count})]
                if done
                else []
            )
            yield Batch(pa.RecordBatch.from_arrays([lines], schema=LINES), constants=now, marks=marks)
        return data[found.byte_count :], position + found.byte_count

    @property
    def _rows_max(self) -> int:
        """Only a `batch.size` below its default cuts batches; larger ones are cut by bytes."""
        size = self.config.batch_size
        return size if 0 < size < BATCH_SIZE_DEFAULT else READ_BYTES

    @classmethod
    def alter_offsets(
        cls,
        config: FileStreamSourceConfig,
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
        validate_only: bool,
    ) -> bool:
        """Positions must be whole numbers that aren't negative."""
        for partition, offset in offsets:
            if offset is None:
                continue
            if POSITION not in offset:
                raise ConfigError(f"Offset objects should either be null or contain the key '{POSITION}'")
            position = offset[POSITION]
            if isinstance(position, bool) or not isinstance(position, int):
                raise ConfigError(f"The value for the '{POSITION}' key in the offset is expected to be a Long value")
            if position < 0:
                raise ConfigError(f"The value for the '{POSITION}' key in the offset should be a non-negative value")
            if FILENAME not in partition:
                raise ConfigError(f"Partition objects should contain the key '{FILENAME}'")
        return True


def _change(path: Path, descriptor: int, reached: int) -> str:
    """What happened to a file that has no more bytes: nothing, truncated, or replaced by another of its name."""
    held = os.fstat(descriptor)
    try:
        named = path.stat()
    except FileNotFoundError:
        return ""  # taken away; the next of its name will be another
    if (named.st_ino, named.st_dev) != (held.st_ino, held.st_dev):
        return "replaced"
    return "truncated" if held.st_size < reached else ""
