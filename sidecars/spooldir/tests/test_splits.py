"""A file read in splits gives the records it gives when read whole, once each and in order."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wherry_spooldir.formats import BadFileError, Format, compression_of, format_of
from wherry_spooldir.readers import CsvDialect, csv_columns, read_avro, read_csv, read_json_lines, read_parquet
from wherry_spooldir.splits import Range, ranges


def csv_rows(path: Path, split_bytes: int, dialect: CsvDialect | None = None) -> list[tuple[object, ...]]:
    dialect = dialect or CsvDialect()
    columns = csv_columns(path, dialect, {})
    parts = ranges(path, Format.CSV, split_bytes=split_bytes, quote=dialect.quote)
    compressed = compression_of(path) is not None
    batches = [
        batch
        for i, part in enumerate(parts)
        for batch in read_csv(path, part, dialect, columns, first=i == 0, compressed=compressed)
    ]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


FIELDS = st.text(st.sampled_from('ab,"\n é'), max_size=6).map(lambda text: text.strip() and "x" + text)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=30), st.integers(1, 60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_csv_with_quotes_and_line_ends_in_values_survives_any_cut(
    tmp_path: Path, rows: list[tuple[str, str]], split_bytes: int
) -> None:
    path = tmp_path / "a.csv"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("a", "b"), ("start", "end"), *rows])
    path.write_bytes(text.getvalue().encode())
    expected = [("start", "end"), *((a or None, b or None) for a, b in rows)]
    assert csv_rows(path, split_bytes) == expected == csv_rows(path, 1 << 20)


def test_types_are_guessed_but_dates_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("i,f,b,d,s\n1,1.5,true,2024-01-02,x\n,,,,\n")
    assert csv_columns(path, CsvDialect(), {}).types == ("long", "double", "boolean", "string", "string")
    assert csv_rows(path, 1 << 20) == [(1, 1.5, True, "2024-01-02", "x"), (None,) * 5]


def test_declared_types_win(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip,n\n01234,1\n")
    assert csv_columns(path, CsvDialect(), {"zip": "string"}).types == ("string", "long")


def test_a_compressed_file_is_one_split_with_its_header_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000))
    assert len(ranges(path, Format.CSV, split_bytes=10, quote='"')) == 1
    assert csv_rows(path, 10) == [(1, 2)] * 1000


def test_another_delimiter_without_header(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1;x\n2;y\n")
    assert csv_rows(path, 100, CsvDialect(delimiter=";", header=False)) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("text", ["a,b\n1,2,3\n", "a,b\n1\n", "a,a\n1,2\n"])
def test_a_record_with_the_wrong_number_of_fields_makes_the_file_bad(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(BadFileError):
        csv_rows(path, 100)


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("")
    assert csv_rows(path, 100) == []


@pytest.mark.parametrize("split_bytes", [1, 7, 50, 10_000])
def test_json_lines_survive_any_cut(tmp_path: Path, split_bytes: int) -> None:
    path = tmp_path / "a.jsonl"
    lines = [f'{{"i":{i}}}' for i in range(100)]
    path.write_text("\n".join(lines))
    parts = ranges(path, Format.JSON, split_bytes=split_bytes, quote=None)
    found = [text for part in parts for array in read_json_lines(path, part) for text in array.storage.to_pylist()]
    assert found == lines


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"i":1}\n{"i":\n')
    with pytest.raises(BadFileError, match="line 2 after byte 0 is not JSON"):
        list(read_json_lines(path, Range(0, 100)))


@pytest.mark.parametrize("split_bytes", [1, 100, 1_000, 4_000, 1 << 20])
def test_avro_blocks_are_read_once_each(tmp_path: Path, split_bytes: int) -> None:
    path = tmp_path / "a.avro"
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "i", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
    }
    with path.open("wb") as file:
        fastavro.writer(
            file, schema, [{"i": i, "s": None if i % 3 else "x" * 20} for i in range(2000)], sync_interval=500
        )
    parts = ranges(path, Format.AVRO, split_bytes=split_bytes, quote=None)
    found = [row["i"] for part in parts for batch in read_avro(path, part) for row in batch.to_pylist()]
    assert found == list(range(2000))


def test_parquet_is_cut_at_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"i": list(range(1000))}), path, row_group_size=100)
    parts = ranges(path, Format.PARQUET, split_bytes=1, quote=None)
    assert len(parts) == 10
    assert [row["i"] for part in parts for batch in read_parquet(path, part) for row in batch.to_pylist()] == list(
        range(1000)
    )


@pytest.mark.parametrize("kind", [Format.AVRO, Format.PARQUET])
def test_a_file_that_is_something_else_is_bad(tmp_path: Path, kind: Format) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"this is text, whatever its name says" * 10)

    def everything() -> None:
        for part in ranges(path, kind, split_bytes=1 << 20, quote=None):
            list(read_avro(path, part))

    with pytest.raises(BadFileError):
        everything()


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", "csv"), ("a.jsonl.gz", "json"), ("b.AVRO", "avro"), ("c.parquet", "parquet")]
)
def test_the_name_tells_the_format(name: str, kind: str) -> None:
    assert format_of(Path(name), "auto").value == kind


def test_a_name_that_tells_nothing_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadFileError, match="tells no format"):
        format_of(Path("readme"), "auto")
