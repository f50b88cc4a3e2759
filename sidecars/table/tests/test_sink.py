"""What lands in DuckDB and SQLite files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from wherry.contract.batch import Constants, Mark
from wherry.contract.errors import ConfigError, FencedError
from wherry.contract.position import kafka_position
from wherry.sdk import JSON_TYPE, Batch, Context, SinkTask
from wherry_table.sink import TableConfig, TableSink

PLACE = {"kafka_topic": "orders", "kafka_partition": 0}


def opened(path: Path, **config: str) -> tuple[TableSink, list[Any]]:
    sink = TableSink(TableConfig.parse({"database": str(path), **config}), Context("c", 1))
    stored = list(sink.open(SinkTask("c", partitions=[PLACE])))
    return sink, stored


def json_batch(*texts: str | None, end: int = 0) -> Batch:
    value = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))
    marks = [Mark(len(texts), kafka_position("orders", 0, end))] if end else []
    return Batch(value=value, constants=Constants(topic="orders"), marks=marks)


def rows(path: Path) -> list[tuple[Any, ...]]:
    query = "SELECT * FROM orders ORDER BY 1"
    if path.suffix == ".db":
        return sqlite3.connect(path).execute(query).fetchall()
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", ["a.duckdb", "a.db"])
def test_records_become_rows_and_new_fields_columns(tmp_path: Path, name: str) -> None:
    sink, _ = opened(tmp_path / name)
    assert sink.write_batch(json_batch('{"i":1,"s":"é"}', '{"i":2,"s":null}')) == []
    assert sink.write_batch(json_batch('{"i":3,"more":1.5}')) == []
    sink.flush(True)
    sink.close()
    assert rows(tmp_path / name) == [(1, "é", None), (2, None, None), (3, None, 1.5)]


@pytest.mark.parametrize("name", ["a.duckdb", "a.db"])
def test_positions_come_back_with_the_data(tmp_path: Path, name: str) -> None:
    sink, stored = opened(tmp_path / name)
    assert stored == []
    sink.write_batch(json_batch('{"i":1}', end=1))
    sink.flush(True)
    sink.close()
    sink, stored = opened(tmp_path / name)
    sink.close()
    assert stored == [kafka_position("orders", 0, 1)]


def test_rows_wait_for_the_mark_that_covers_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wherry_table.sink.GATHERED_BYTES_MAX", 1)
    path = tmp_path / "a.db"
    sink, _ = opened(path)
    sink.write_batch(json_batch('{"i":1}', end=1))
    sink.write_batch(json_batch('{"i":2}'))
    assert rows(path) == [(1,)]
    sink.write_batch(json_batch('{"i":3}', end=3))
    assert rows(path) == [(1,), (2,), (3,)]
    sink.write_batch(json_batch('{"i":4}'))
    sink.close()
    sink, stored = opened(path)
    sink.close()
    assert (rows(path), stored) == ([(1,), (2,), (3,)], [kafka_position("orders", 0, 3)])


def test_rows_that_no_mark_ever_covers_are_written_out_when_there_is_no_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wherry_table.sink.UNMARKED_BYTES_MAX", 1)
    sink, _ = opened(tmp_path / "a.db")
    sink.write_batch(json_batch('{"i":1}'))
    assert rows(tmp_path / "a.db") == [(1,)]
    sink.close()


@pytest.mark.parametrize("name", ["a.duckdb", "a.db"])
def test_an_operators_change_of_offsets_reaches_the_file(tmp_path: Path, name: str) -> None:
    config = TableConfig.parse({"name": "c", "database": str(tmp_path / name)})
    assert TableSink.alter_offsets(config, [(PLACE, None)], False)  # nothing is there yet
    assert not (tmp_path / name).exists()
    sink, _ = opened(tmp_path / name)
    sink.write_batch(json_batch('{"i":1}', end=1))
    sink.flush(True)
    sink.close()

    def stored() -> list[Any]:
        sink, found = opened(tmp_path / name)
        sink.close()
        return found

    assert not TableSink.alter_offsets(config, [(PLACE, None)], True)
    assert stored() == [kafka_position("orders", 0, 1)]
    assert TableSink.alter_offsets(config, [(PLACE, {"kafka_offset": 0})], False)
    assert stored() == [kafka_position("orders", 0, 0)]
    other = TableConfig.parse({"name": "other", "database": str(tmp_path / name)})
    TableSink.alter_offsets(other, [(PLACE, None)], False)
    assert stored() == [kafka_position("orders", 0, 0)]
    TableSink.alter_offsets(config, [(PLACE, None)], False)
    assert stored() == []
    assert TableSink.capabilities().alter_offsets


@pytest.mark.parametrize("name", ["a.duckdb", "a.db"])
def test_rows_that_are_no_objects_are_errors_and_the_others_land(tmp_path: Path, name: str) -> None:
    sink, _ = opened(tmp_path / name)
    errors = sink.write_batch(json_batch('{"i":1}', "[1]", "nope", None, '{"i":2}'))
    sink.flush(True)
    sink.close()
    assert [error.row for error in errors] == [1, 2, 3]
    assert rows(tmp_path / name) == [(1,), (2,)]


@pytest.mark.parametrize("name", ["a.duckdb", "a.db"])
def test_typed_values_and_nested_ones_land(tmp_path: Path, name: str) -> None:
    sink, _ = opened(tmp_path / name)
    kind = pa.struct([("i", pa.int32()), ("at", pa.timestamp("ms", "UTC")), ("in", pa.list_(pa.int64()))])
    value = pa.array([{"i": 1, "at": 0, "in": [1, 2]}], kind)
    assert sink.write_batch(Batch(value=value, constants=Constants(topic="orders"))) == []
    sink.flush(True)
    sink.close()
    found = rows(tmp_path / name)[0]
    assert found[0] == 1
    assert found[2] == "[1,2]"


def test_a_file_that_is_something_else_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(ConfigError, match="can't be opened as a DuckDB file"):
        opened(path)


def test_a_missing_folder_is_found_before_anything_runs(tmp_path: Path) -> None:
    config = TableConfig.parse({"database": str(tmp_path / "no" / "a.duckdb")})
    assert "no folder" in TableSink.validate(config, False)["database"]


def test_rows_that_were_not_flushed_leave_nothing_behind(tmp_path: Path) -> None:
    sink, _ = opened(tmp_path / "a.duckdb")
    sink.write_batch(json_batch('{"i":1}', end=1))
    sink.flush(False)
    sink.write_batch(json_batch('{"i":2}', end=2))
    sink.close()
    assert rows(tmp_path / "a.duckdb") == [(1,)]
    sink, stored = opened(tmp_path / "a.duckdb")
    sink.close()
    assert stored == [kafka_position("orders", 0, 1)]


def test_a_stream_that_a_dead_worker_left_behind_can_write_nothing_any_more(tmp_path: Path) -> None:
    left, _ = opened(tmp_path / "a.duckdb")
    left.write_batch(json_batch('{"i":1}', end=1))
    taking, stored = opened(tmp_path / "a.duckdb")
    assert stored == []
    with pytest.raises(FencedError):
        left.flush(False)
    taking.write_batch(json_batch('{"i":1}', end=1))
    taking.flush(True)
    left.close()
    taking.close()
    assert rows(tmp_path / "a.duckdb") == [(1,)]
