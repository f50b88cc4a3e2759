"""What a file is: its format and compression by name, and how to open any range of its bytes."""

from __future__ import annotations

import enum
import io
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

READ_BYTES = 1 << 20


class Format(enum.StrEnum):
    """Formats of files."""

    CSV = "csv"
    JSON = "json"
    AVRO = "avro"
    PARQUET = "parquet"


SUFFIXES = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".txt": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".avro": Format.AVRO,
    ".parquet": Format.PARQUET,
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


class BadFileError(Exception):
    """The file can't be read as what it should be; its message is a sentence for the report."""


def compression_of(path: Path) -> str | None:
    """Compression by the last suffix; Parquet and Avro compress inside."""
    return COMPRESSIONS.get(path.suffix.lower())


def format_of(path: Path, wanted: str) -> Format:
    """Format of a file.

    Args:
        path: The file; its suffix decides when `wanted` is `auto`.
        wanted: `auto`, or a format.

    Raises:
        BadFileError: The suffix says nothing.
    """
    if wanted != "auto":
        return Format(wanted)
    name = Path(path.stem) if compression_of(path) else path
    if found := SUFFIXES.get(name.suffix.lower()):
        return found
    raise BadFileError(f"the name {path.name} tells no format; set format, or name files {', '.join(SUFFIXES)}")


def open_range(path: Path, start: int = 0, end: int | None = None) -> IO[bytes]:
    """Opens a range of a file's bytes; a compressed file is opened whole and decompressed."""
    if compression := compression_of(path):
        stream: Any = pa.CompressedInputStream(pa.OSFile(str(path)), compression)
        return io.BufferedReader(_Arrow(stream), READ_BYTES)
    size = path.stat().st_size
    return io.BufferedReader(_Range(path, start, size if end is None else min(end, size)), READ_BYTES)


class _Range(io.RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._file.seek(start)
        self._left = end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[: max(0, self._left)]
        count = self._file.readinto(view) or 0
        self._left -= count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Arrow(io.RawIOBase):
    """An Arrow input stream, as a file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            raise BadFileError(f"the file can't be decompressed: {error}") from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()
