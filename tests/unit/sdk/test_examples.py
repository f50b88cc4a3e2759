"""The examples: short, whole, and doing what they say."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import of_value
from wherry.sdk import Record
from wherry.sdk.testing import run_sink, run_source, run_transform

EXAMPLES = Path(__file__).parents[3] / "sdk" / "python" / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_fewer_than_25_lines_of_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len([line for line in text.splitlines() if line.strip()]) < 25


def test_the_counter_counts_and_goes_on_where_it_was() -> None:
    counter = load("counter").Counter
    run = run_source(counter, {"topic": "t", "count": "3"})
    assert [(record.key, record.value, record.topic) for record in run.records] == [
        ("1", {"n": 1}, "t"),
        ("2", {"n": 2}, "t"),
        ("3", {"n": 3}, "t"),
    ]
    again = run_source(counter, {"topic": "t", "count": "4"}, run.offsets)
    assert [record.value for record in again.records] == [{"n": 4}]
    assert again.offsets == {'{"counter":0}': {"n": 4}}


def test_the_ranges_are_read_split_by_split_and_not_again() -> None:
    ranges = load("ranges").Ranges
    run = run_source(ranges, {"topic": "t", "splits": "2"})
    assert run.complete == ["0", "1"]
    assert [record.value for record in run.records] == list(range(200_000))
    again = run_source(ranges, {"topic": "t", "splits": "2"}, run.offsets)
    assert (again.records, again.plan.complete) == ([], True)


def test_the_shouter_shouts_and_leaves_silence_out() -> None:
    run = run_transform(load("shout").Shout, {"times": "2"}, [Record("a"), Record(" "), Record(1)])
    assert [record.value for record in run.records] == ["A!!"]
    assert (run.lineage, [error.row for error in run.row_errors]) == ([0], [2])


def test_the_printer_prints_rows_and_refuses_nulls(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_sink(load("printer").Printer, {"prefix": ">"}, [Record("a"), Record(None), Record({"x": 1})])
    assert capsys.readouterr().out.splitlines() == ["> a", "> {'x': 1}"]
    assert [(error.row, error.reason) for error in run.row_errors] == [(1, "NULL_VALUE")]
    assert (run.rows_written, run.rows_failed) == (2, 1)


def test_the_tally_adds_up(capfd: pytest.CaptureFixture[str]) -> None:
    run = run_sink(load("tally").Tally, {}, [of_value(pa.array([1, 2])), of_value(pa.array([4]))])
    assert run.rows_written == 3
    assert "total=7" in capfd.readouterr().err
