"""Dedupe: what counts as the same, how far back it remembers, and that nothing is lost when batches come again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import JSON_TYPE, Batch, Constants, of_value
from wherry.contract.errors import ConfigError
from wherry.worker.transform import lift
from wherry.worker.transform.dedupe import Dedupe
from wherry.worker.transform.registry import Link, chain_of
from wherry.worker.transform.step import Transforms


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def step(clock: Clock | None = None, **config: str) -> Transforms:
    keys = {key.replace("__", "."): text for key, text in config.items()}
    return Transforms([Link("d", Dedupe(keys, clock or Clock()))])


def keyed(*keys: str | None) -> Batch:
    return of_value(pa.array(range(len(keys))), key=pa.array(keys, pa.string()), constants=Constants("t", 0, 0))


def valued(*values: Any) -> Batch:
    texts = [None if value is None else json.dumps(value) for value in values]
    return of_value(
        pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string())), constants=Constants("t", 0, 0)
    )


def passed(chain: Transforms, batch: Batch) -> list[int]:
    return [row for after, _ in chain.apply(batch, batch).pieces for row in after.column("offset").to_pylist()]


def test_rows_of_a_key_that_came_before_are_left_out_and_counted() -> None:
    chain = step()
    batch = keyed("a", "b", "a")
    assert passed(chain, batch) == [0, 1]
    assert chain.apply(keyed("b", "c", "b"), batch).filtered == 2


def test_rows_without_a_key_pass_each_time() -> None:
    assert passed(step(), keyed(None, None, "a", None)) == [0, 1, 2, 3]


def test_fields_tell_rows_apart_whatever_else_they_hold() -> None:
    chain = step(fields="a,b")
    rows = [
        {"a": 1, "b": "x", "c": 1},
        {"b": "x", "c": 2, "a": 1},
        {"a": 1},
        {"a": 1, "b": None},
        {"c": 1},
        {"c": 1},
        None,
        None,
    ]
    assert passed(chain, valued(*rows)) == [0, 2, 4, 5, 6, 7]


def test_numbers_texts_and_truths_are_never_the_same() -> None:
    assert passed(step(fields="a"), valued(*[{"a": value} for value in (1, "1", 1.0, True, [1], {"a": 1})])) == list(
        range(6)
    )


def test_objects_are_the_same_in_any_order_of_their_members() -> None:
    assert passed(step(fields="a"), valued({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2], "x": 1}})) == [0]


def test_a_row_comes_through_again_when_the_time_is_over() -> None:
    clock = Clock()
    chain = step(clock, window__ms="1000")
    assert passed(chain, keyed("a")) == [0]
    clock.now += 0.9
    assert passed(chain, keyed("a")) == []
    clock.now += 0.2
    assert passed(chain, keyed("a", "a")) == [0]


def test_it_remembers_so_many_keys_and_no_more() -> None:
    chain = step(window__records="2")
    for batch in (keyed("a"), keyed("b"), keyed("c")):
        passed(chain, batch)
    assert passed(chain, keyed("b", "c")) == []
    assert passed(chain, keyed("a")) == [0]


def test_a_batch_that_is_tried_again_loses_nothing() -> None:
    chain = step()
    batch = keyed("a", "b", "a")
    assert passed(chain, batch) == passed(chain, batch) == [0, 1]
    assert passed(chain, keyed("a")) == []


def test_rows_offered_to_the_destination_once_more_pass() -> None:
    chain = step()
    batch = keyed("a")
    assert passed(chain, batch) == [0]
    ((after, _),) = chain.again(batch, batch).pieces
    assert after.num_rows == 1
    assert passed(chain, keyed("a")) == []


def test_what_is_read_again_because_the_destination_went_back_passes() -> None:
    chain = step()
    batch = keyed("a")
    passed(chain, batch)
    chain.forget()
    assert passed(chain, batch) == passed(chain, batch) == [0]


def test_fields_that_a_schema_does_not_have_fail_the_row() -> None:
    batch = of_value(pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])), constants=Constants("t", 0, 0))
    stepped = step(fields="b").apply(batch, batch)
    assert [str(each.error) for each in stepped.failures] == ["The value has no field b to tell records apart by"]
    assert [after.num_rows for after, _ in stepped.pieces] == [1]


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"window.ms": "0"}, "whole number from 1"),
        ({"window.records": "ten"}, "whole number from 1 to 5000000"),
        ({"fields": "a,a"}, "names a field twice"),
    ],
)
def test_settings_that_make_no_sense_are_refused(config: dict[str, str], told: str) -> None:
    keys = {f"transforms.d.{key}": text for key, text in config.items()}
    with pytest.raises(ConfigError, match=told):
        chain_of({"transforms": "d", "transforms.d.type": "Dedupe", **keys}, is_sink=True)


@given(st.lists(st.fixed_dictionaries({"a": st.none() | st.integers(0, 2), "b": st.sampled_from("xy")}), min_size=1))
@settings(max_examples=50, deadline=None)
def test_columns_objects_and_schemas_leave_out_the_same_rows(values: list[Any]) -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    found = [passed(step(fields="a,b"), of_value(pa.array(values, kind), constants=Constants("t", 0, 0)))]
    for rows_min in (1, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lift, "ROWS_MIN", rows_min)
            found.append(passed(step(fields="a,b"), valued(*values)))
    distinct = {json.dumps(value, sort_keys=True): None for value in values}
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(distinct)
