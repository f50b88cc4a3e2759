"""FileStreamSink: appends the text form of each value to a file, one line each."""

from __future__ import annotations

import errno
import os
import threading
from collections import defaultdict
from collections.abc import Iterable

from wherry.contract.batch import RowError
from wherry.contract.errors import ConfigError, ErrorClass, TransientError
from wherry.contract.position import Position
from wherry.contract.schemaless import bad_json
from wherry.sdk import Batch, Config, Sink, SinkTask, key
from wherry_filestream.text import texts_of

# Tasks of one connector share the file; each batch goes in whole.
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class FileStreamSinkConfig(Config):
    """Kafka Connect's key."""

    file: str | None = key(
        default=None, doc="Destination filename. If not specified, the standard output will be used", importance="high"
    )


class FileStreamSink(Sink[FileStreamSinkConfig]):
    """Appends the text form of each value to a file, one line each."""

    class_name = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    aliases = ("FileStreamSink", "FileStreamSinkConnector")
    deletes = False

    def open(self, task: SinkTask) -> Iterable[Position] | None:
        """Opens the file for appending; without one the sidecar's standard output, which is its log."""
        self._descriptor = 1
        if self.config.file:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                self._descriptor = os.open(self.config.file, flags, 0o644)
            except OSError as error:
                raise ConfigError(
                    f"Couldn't find or create file '{self.config.file}' for FileStreamSinkTask: {error.strerror}",
                    key="file",
                ) from None
        return None

    def write_batch(self, batch: Batch) -> list[RowError]:
        """Appends a batch, or nothing of it; what is no JSON can't become a line."""
        if batch.num_rows == 0:
            return []
        values, errors = batch.value, []
        try:
            texts = texts_of(values)
        except ValueError:
            bad = bad_json(values)
            errors = [RowError(row, ErrorClass.SCHEMA, "BAD_JSON", message=why) for row, why in bad.items()]
            texts = texts_of(values.take([row for row in range(len(values)) if row not in bad]))
        if texts:
            with _locks[self.config.file or ""]:
                self._append(("\n".join(texts) + "\n").encode("utf-8", "surrogatepass"))
        return errors

    def flush(self, final: bool) -> None:
        """Makes the lines durable where the file is on a disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):  # a device or pipe has nothing to sync
                raise TransientError(f"{self.config.file} can't be written: {error.strerror}") from None

    def close(self) -> None:
        """Closes the file."""
        if getattr(self, "_descriptor", 1) > 1:
            os.close(self._descriptor)
            self._descriptor = 1

    def _append(self, data: bytes) -> None:
        """Writes all bytes; where that fails half-way the file is cut back, so that a retry repeats no half line."""
        before = os.fstat(self._descriptor).st_size
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            if len(view) < len(data):
                os.ftruncate(self._descriptor, before)
            raise TransientError(f"{self.config.file} can't be written: {error.strerror}") from None
