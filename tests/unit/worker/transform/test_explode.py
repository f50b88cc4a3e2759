"""Explode: rows of a record, in columns and in objects alike; what becomes of marks, failures and dead letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.errors import ConfigError
from wherry.contract.position import Position
from wherry.worker.convert.step import Stepped
from wherry.worker.transform import explode
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

CASES = json.loads((Path(__file__).parents[3] / "cases/explode.json").read_text())
MAP = pa.map_(pa.string(), pa.int64())
STRUCT = pa.struct(
    [
        ("id", pa.int64()),
        ("l", pa.list_(pa.int64())),
        ("m", MAP),
        ("s", pa.list_(pa.struct([("a", pa.int64())]))),
        ("o", pa.struct([("l", pa.list_(pa.int64())), ("z", pa.string())])),
    ]
)


def at(offset: int) -> Position:
    return Position('{"p":0}', str(offset))


def loose(*values: Any) -> pa.Array:
    texts = [None if value is None else json.dumps(value) for value in values]
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))


def typed(*values: Any) -> pa.Array:
    names = {name for value in values if value for name in value}
    kind = pa.struct([field for field in STRUCT if field.name in names])
    return pa.array([value and {**value, **entries(value)} for value in values], kind)


def entries(value: dict[str, Any]) -> dict[str, Any]:
    return {"m": list(value["m"].items())} if value.get("m") is not None else {}


def chain(*more: dict[str, str], **config: str) -> Transforms:
    links = [{"type": "wherry.transforms.Explode", **{key.replace("__", "."): text for key, text in config.items()}}]
    keys: dict[str, str] = {}
    for number, link in enumerate((*links, *more)):
        keys |= {f"transforms.t{number}.{key}": value for key, value in link.items()}
    return Transforms(
        chain_of({"transforms": ",".join(f"t{number}" for number in range(1 + len(more))), **keys}, is_sink=True)
    )


def rows(found: Batch) -> list[Any]:
    if found.value.type == JSON_TYPE:
        return [None if text is None else json.loads(text) for text in found.value.storage.to_pylist()]
    return found.value.to_pylist()


def outcome(stepped: Stepped) -> tuple[list[Any], list[str]]:
    return [row for after, _ in stepped.pieces for row in rows(after)], [str(f.error) for f in stepped.failures]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("make", [loose, typed])
def test_a_record_becomes_its_rows_with_and_without_a_schema(case: dict[str, Any], make: Any) -> None:
    value = case["value"]
    # A neighbour shows that only the record at hand is touched; a slice shows that offsets of lists are.
    other = (
        {**value, **{name: value[name] and value[name][:1] for name in ("l", "s") if name in value}} if value else None
    )
    column = make(other, value).slice(1) if value else make({"id": 1, "l": []}, value).slice(1)
    given_rows = of_value(column, constants=Constants("t", 0, 5))
    config = {key.replace(".", "__"): text for key, text in case["config"].items()}
    found, failed = outcome(chain(**config).apply(given_rows, given_rows))
    assert failed == ([case["error"]] if "error" in case else [])
    assert found == case.get("rows", [])


def test_the_value_itself_may_be_the_list() -> None:
    for column in (loose([1, 2], [3]), pa.array([[1, 2], [3]], pa.list_(pa.int64()))):
        given_rows = of_value(column, constants=Constants("t", 0, 5))
        assert outcome(chain().apply(given_rows, given_rows)) == ([1, 2, 3], [])


def test_rows_keep_key_headers_and_offset_and_marks_stand_after_the_last_of_a_record() -> None:
    headers = pa.array([[{"name": "h", "value": b"1"}], None, None], HEADERS_TYPE)
    batch = of_value(
        loose({"l": [1, 2]}, {"l": []}, {"l": [3]}),
        key=pa.array(["a", "b", "c"]),
        headers=headers,
        constants=Constants("t", 0, 10),
        marks=[Mark(row, at(row)) for row in (1, 2, 3)],
    )
    stepped = chain(field="l").apply(batch, batch)
    ((after, raw),) = stepped.pieces
    assert after.key.to_pylist() == ["a", "a", "c"]
    assert after.column("offset").to_pylist() == raw.column("offset").to_pylist() == [10, 10, 12]
    assert [len(cell or ()) for cell in after.headers.to_pylist()] == [1, 1, 0]
    assert [(mark.row_count, mark.position) for mark in after.marks] == [(2, at(1)), (2, at(2)), (3, at(3))]
    assert stepped.filtered == 1


def test_a_record_of_which_one_row_fails_further_on_fails_as_a_whole() -> None:
    batch = of_value(
        loose({"l": ["1", "x"]}, {"l": ["2", "3"]}), constants=Constants("t", 0, 10), marks=[Mark(2, at(2))]
    )
    cast = {"type": "org.apache.kafka.connect.transforms.Cast$Value", "spec": "l:int8"}
    stepped = chain(cast, field="l").apply(batch, batch)
    ((after, raw),) = stepped.pieces
    assert rows(after) == [{"l": 2}, {"l": 3}]
    assert raw.column("offset").to_pylist() == [11, 11]
    assert [failure.row for failure in stepped.failures] == [0]
    assert stepped.filtered == 0
    assert [mark.row_count for mark in after.marks] == [2]


def test_with_a_predicate_rows_of_all_records_stay_in_their_order() -> None:
    texts = [{"l": [1, 2]}, None, {"l": [3]}, None, {"l": []}]
    prefix = "org.apache.kafka.connect.transforms.predicates."
    config = {
        "transforms": "e", "transforms.e.type": "Explode", "transforms.e.field": "l",
        "transforms.e.predicate": "p", "transforms.e.negate": "true",
        "predicates": "p", "predicates.p.type": f"{prefix}RecordIsTombstone",
    }  # fmt: skip
    batch = of_value(loose(*texts), constants=Constants("t", 0, 10), marks=[Mark(row, at(row)) for row in (1, 2, 5)])
    stepped = Transforms(chain_of(config, is_sink=True)).apply(batch, batch)
    ((after, raw),) = stepped.pieces
    assert rows(after) == [{"l": 1}, {"l": 2}, None, {"l": 3}, None]
    assert after.column("offset").to_pylist() == raw.column("offset").to_pylist() == [10, 10, 11, 12, 13]
    assert [mark.row_count for mark in after.marks] == [2, 3, 5]
    assert stepped.filtered == 1


def test_a_record_that_would_become_too_large_fails_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explode, "MEASURED_FROM", 2)
    monkeypatch.setattr(explode, "RECORD_BYTES_MAX", 1000)
    kind = pa.struct([("t", pa.string()), ("l", pa.list_(pa.int64()))])
    batch = of_value(pa.array([{"t": "x" * 600, "l": [1, 2]}, {"t": "y", "l": [1, 2]}], kind))
    stepped = chain(field="l").apply(batch, batch)
    assert [row["t"] for row in outcome(stepped)[0]] == ["y", "y"]
    assert "would become 2 rows" in str(stepped.failures[0].error)


def test_a_schema_without_the_field_fails_its_records() -> None:
    batch = of_value(pa.array([{"a": 1}], pa.struct([("a", pa.int64())])))
    assert outcome(chain(field="l").apply(batch, batch)) == ([], ["The value has no field l to explode; it has a"])


def test_a_path_through_what_has_no_fields_fails_its_records() -> None:
    config = {"field": "a.l", "field__syntax__version": "V2"}
    told = {
        "The value has no field a.l to explode; it has a, and something on the way to it has no fields",
        "Only Map objects supported in absence of schema for [nested field access], found: java.lang.Long",
    }
    found = set()
    for column in (pa.array([{"a": 1}], pa.struct([("a", pa.int64())])), loose({"a": 1})):
        batch = of_value(column)
        given, failed = outcome(chain(**config).apply(batch, batch))
        assert given == []
        found |= set(failed)
    assert found == told


def test_a_dot_is_part_of_a_name_unless_paths_are_asked_for() -> None:
    batch = of_value(loose({"o.l": [1, 2], "o": {"l": [3]}}))
    assert outcome(chain(field="o.l", keep__fields="false").apply(batch, batch)) == ([1, 2], [])
    paths = {"field": "o.l", "keep__fields": "false", "field__syntax__version": "V2"}
    assert outcome(chain(**paths).apply(batch, batch)) == ([3], [])


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"on__empty": "maybe"}, "transforms.t0.on.empty: Invalid value maybe"),
        ({"index__field": "n"}, "index.field adds a field to the record"),
        ({"field": "l", "elements__max": "0"}, "it must be a whole number from 1 to 1000000"),
        ({"field": "l", "keep__fields": "perhaps"}, "Expected value to be either true or false"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        chain(**config)


numbers = st.none() | st.integers(-5, 5)
records = st.none() | st.fixed_dictionaries(
    {
        "id": numbers,
        "l": st.none() | st.lists(numbers, max_size=3),
        "m": st.none() | st.dictionaries(st.sampled_from("ab"), numbers),
    }
)


@given(
    values=st.lists(records, min_size=1, max_size=6),
    field=st.sampled_from(["l", "m"]),
    empty=st.sampled_from(["drop", "keep", "fail"]),
    kept=st.booleans(),
    start=st.integers(0, 2),
)
@settings(max_examples=150, deadline=None)
def test_columns_and_objects_explode_alike(values: list[Any], field: str, empty: str, kept: bool, start: int) -> None:
    kind = pa.struct([each for each in STRUCT if each.name not in ("s", "o")])
    columns = pa.array([value and {**value, **entries(value)} for value in values], kind)
    found = []
    for column in (columns, loose(*values)):
        batch = of_value(column, constants=Constants("t", 0, 10)).slice(min(start, len(values) - 1))
        config = {"keep__fields": "false"} if not kept else {"index__field": "n"}
        stepped = chain(field=field, on__empty=empty, **config).apply(batch, batch)
        offsets = [offset for after, _ in stepped.pieces for offset in after.column("offset").to_pylist()]
        failed = [(each.row, str(each.error)) for each in stepped.failures]
        found.append((plain(outcome(stepped)[0]), offsets, failed, stepped.filtered))
    assert found[0] == found[1]


def plain(values: list[Any]) -> list[Any]:
    """Maps that stay as members come as entries from columns."""
    return [
        {**value, "m": dict(value["m"])} if type(value) is dict and type(value.get("m")) is list else value
        for value in values
    ]
