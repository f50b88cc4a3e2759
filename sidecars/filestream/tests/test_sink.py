"""What is appended to a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from wherry.contract.errors import ConfigError, TransientError
from wherry.sdk import JSON_TYPE, Batch, Context, SinkTask
from wherry_filestream.sink import FileStreamSink, FileStreamSinkConfig


def opened(path: str) -> FileStreamSink:
    sink = FileStreamSink(FileStreamSinkConfig.parse({"file": path}), Context("c", 1))
    sink.open(SinkTask("c"))
    return sink


def test_each_value_is_a_line_after_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    sink = opened(str(path))
    sink.write_batch(Batch(value=pa.array(["a", None, "é"])))
    sink.write_batch(Batch(value=pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"k":1}']))))
    sink.flush(True)
    sink.close()
    assert path.read_text() == "before\na\nnull\né\n{k=1}\n"


def test_a_full_disk_is_an_error_that_may_pass() -> None:
    sink = opened("/dev/full")
    with pytest.raises(TransientError, match="No space left"):
        sink.write_batch(Batch(value=pa.array(["a"])))


def test_a_file_that_can_not_be_made_is_told_in_kafka_connects_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Couldn't find or create file"):
        opened(str(tmp_path / "no" / "out.txt"))


def test_a_device_can_be_flushed() -> None:
    sink = opened("/dev/null")
    sink.write_batch(Batch(value=pa.array(["a"])))
    sink.flush(True)


def test_what_is_no_json_is_an_error_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    sink = opened(str(path))
    texts = pa.array(['{"k":1}', "nope", None])
    errors = sink.write_batch(Batch(value=pa.ExtensionArray.from_storage(JSON_TYPE, texts)))
    sink.close()
    assert [(error.row, error.reason) for error in errors] == [(1, "BAD_JSON")]
    assert path.read_text() == "{k=1}\nnull\n"
