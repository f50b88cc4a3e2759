"""How a file is followed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.position import Position
from wherry.sdk import Batch, CaughtUp, Context, Mark, Offsets, Work
from wherry_filestream.source import FileStreamSource, FileStreamSourceConfig


class Reader:
    """Runs `read` in a thread and gathers lines and the last position."""

    def __init__(self, path: Path, position: int | None = None, **config: str) -> None:
        texts = {"file": str(path), "topic": "t", **{name.replace("_", "."): value for name, value in config.items()}}
        self.source = FileStreamSource(FileStreamSourceConfig.parse(texts), Context("c", 1))
        stored = [] if position is None else [Position.of({"filename": str(path)}, {"position": position})]
        self.lines: list[str] = []
        self.position: Any = None
        self._items = self.source.read(Work("0"), Offsets(stored))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        for item in self._items:
            if isinstance(item, Batch):
                self.lines += item.value.to_pylist()
                self.stamp_ms = item.constants.timestamp_ms or 0
                for mark in item.marks:
                    self.position = mark.position.offset_map
            elif isinstance(item, Mark):
                self.position = item.position.offset_map

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.source.end()
        self._thread.join(5)

    def until(self, done: Callable[[], bool]) -> None:
        wait = threading.Event()
        for _ in range(500):
            if done():
                return
            wait.wait(0.01)
        raise AssertionError(f"it has {self.lines} at {self.position}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def test_lines_bear_the_time_of_their_reading(path: Path) -> None:
    path.write_text("one\n")
    begun_ms = time.time_ns() // 1_000_000
    with Reader(path) as reader:
        reader.until(lambda: reader.lines == ["one"])
    assert begun_ms <= reader.stamp_ms <= time.time_ns() // 1_000_000


def test_lines_come_as_they_are_written_and_positions_count_bytes(path: Path) -> None:
    path.write_text("one\n€\npart")
    with Reader(path) as reader:
        reader.until(lambda: reader.lines == ["one", "€"])
        assert reader.position == {"position": 8}
        with path.open("a") as file:
            file.write("ial\n")
        reader.until(lambda: reader.lines[2:] == ["partial"])
    assert reader.position == {"position": 16}


def test_reading_goes_on_at_the_stored_position(path: Path) -> None:
    path.write_text("one\ntwo\n")
    with Reader(path, 4) as reader:
        reader.until(lambda: reader.lines == ["two"])


def test_a_missing_file_is_waited_for(path: Path) -> None:
    with Reader(path) as reader:
        path.write_text("late\n")
        reader.until(lambda: reader.lines == ["late"])


def test_a_truncated_file_is_read_from_its_start(path: Path) -> None:
    path.write_text("first\nsecond\n")
    with Reader(path) as reader:
        reader.until(lambda: len(reader.lines) == 2)
        path.write_text("new\n")
        reader.until(lambda: reader.lines[2:] == ["new"])
    assert reader.position == {"position": 4}


def test_a_stored_position_beyond_the_end_means_that_the_file_is_another(path: Path) -> None:
    path.write_text("new\n")
    with Reader(path, 1_000) as reader:
        reader.until(lambda: reader.lines == ["new"])


def test_a_replaced_file_is_finished_and_the_new_one_read(path: Path) -> None:
    path.write_text("old\nlast without end")
    with Reader(path) as reader:
        reader.until(lambda: reader.lines == ["old"])
        path.with_suffix(".new").write_text("new\n")
        os.replace(path.with_suffix(".new"), path)  # noqa: PTH105
        reader.until(lambda: reader.lines == ["old", "last without end", "new"])
    assert reader.position == {"position": 4}


def test_what_is_written_just_before_a_file_is_replaced_is_read(path: Path) -> None:
    path.write_text("old\n")
    source = FileStreamSource(FileStreamSourceConfig.parse({"file": str(path), "topic": "t"}), Context("c", 1))
    lines: list[str] = []
    for item in source.read(Work("0"), Offsets([])):
        if isinstance(item, Batch):
            lines += item.value.to_pylist()
        elif isinstance(item, CaughtUp) and lines == ["old"]:  # its end has been met, and its name not looked at yet
            with path.open("a") as file:
                file.write("late\n")
            path.with_suffix(".new").write_text("new\n")
            os.replace(path.with_suffix(".new"), path)  # noqa: PTH105
        if lines[-1] == "new":
            source.end()
    assert lines == ["old", "late", "new"]


def test_no_line_is_kept_back_by_the_batch_size(path: Path) -> None:
    path.write_text("".join(f"{i}\n" for i in range(7)))
    with Reader(path, batch_size="2") as reader:
        reader.until(lambda: len(reader.lines) == 7)


@pytest.mark.parametrize(
    ("partition", "offset", "said"),
    [
        ({"name": "x"}, {"position": 1}, "filename"),
        ({"filename": "x"}, {}, "position"),
        ({"name": "x"}, {}, "position"),
        ({"filename": "x"}, {"position": "1"}, "Long"),
        ({"filename": "x"}, {"position": -1}, "non-negative"),
    ],
)
def test_an_offset_that_is_no_position_is_refused(partition: Any, offset: Any, said: str) -> None:
    config = FileStreamSourceConfig.parse({"file": "x", "topic": "t"})
    with pytest.raises(ConfigError, match=said):
        FileStreamSource.alter_offsets(config, [(partition, offset)], False)


def test_a_reset_is_allowed() -> None:
    config = FileStreamSourceConfig.parse({"file": "x", "topic": "t"})
    assert FileStreamSource.alter_offsets(config, [({"filename": "x"}, None)], False)
